"""safetensors: a length of 8 bytes, a JSON object of tensors, their bytes; and the index of sharded checkpoints.

Source: the format's specification (github.com/huggingface/safetensors).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeGuard

from fitmart.estimator.architectures.headers_records import Header, HeaderError, StoredTensor
from fitmart.estimator.units import BITS_PER_BYTE

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # the format's own limit
METADATA = "__metadata__"
DTYPE_BITS = {
    "F4": 4,
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


@dataclass(frozen=True, slots=True)
class Index:
    """model.safetensors.index.json: the shards in order, the tensors' names, and their bytes together if stated."""

    shards: tuple[str, ...]
    names: tuple[str, ...]
    total_bytes: int | None


def header_length(start: bytes, *, file: str) -> int:
    """Bytes of the JSON, from the first LENGTH_BYTES of a file."""
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if len(start) < LENGTH_BYTES:
        raise HeaderError(f"{file}: ends after {len(start)} bytes: no safetensors file, or cut short")
    if not 2 <= length <= MAX_HEADER_BYTES:
        raise HeaderError(f"{file}: not a safetensors file (a header of {length:,} bytes)")
    return length


def parse_safetensors(content: bytes | str, *, file: str, data_bytes: int | None = None) -> Header:
    """The JSON of a header. `data_bytes`: what the file holds behind it, where known; less than needed is an error."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise HeaderError(f"{file}: its header is not JSON: broken, or cut short") from None
    if not isinstance(value, dict):
        raise HeaderError(f"{file}: its header is not an object")
    metadata = value.pop(METADATA, None)
    tensors = tuple(_tensor(name, entry, file) for name, entry in value.items())
    stored = sum(t.stored_bytes for t in tensors)
    if data_bytes is not None and data_bytes < stored:
        raise HeaderError(f"{file}: cut short: its tensors take {stored:,} bytes, {data_bytes:,} are there")
    return Header(container="safetensors", tensors=tensors, metadata=metadata if isinstance(metadata, dict) else {})


def _tensor(name: str, entry: Any, file: str) -> StoredTensor:
    if not isinstance(entry, Mapping):
        raise HeaderError(f"{file}: {name} is not described by an object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not (isinstance(dtype, str) and _are_counts(shape) and _are_counts(offsets) and len(offsets) == 2):
        raise HeaderError(f"{file}: {name} lacks a dtype, a shape or its offsets")
    if dtype not in DTYPE_BITS:
        raise HeaderError(f"{file}: {name} has the unknown dtype {dtype!r}")
    stored = offsets[1] - offsets[0]
    if stored * BITS_PER_BYTE != prod(shape) * DTYPE_BITS[dtype]:
        raise HeaderError(f"{file}: {name} of {dtype} {shape} cannot take {stored:,} bytes")
    return StoredTensor(name, dtype, tuple(shape), stored)


def _are_counts(value: Any) -> TypeGuard[list[int]]:
    """A list of whole numbers from 0 on."""
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def parse_index(content: bytes | str, *, file: str) -> Index:
    """The index of a sharded checkpoint."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise HeaderError(f"{file}: is not JSON: broken, or cut short") from None
    weight_map = value.get("weight_map") if isinstance(value, dict) else None
    if not isinstance(weight_map, dict) or not all(isinstance(shard, str) for shard in weight_map.values()):
        raise HeaderError(f"{file}: has no weight_map of tensors to files")
    metadata = value.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    whole = int(total) if isinstance(total, int | float) and total > 0 else None
    return Index(tuple(sorted(set(weight_map.values()))), tuple(weight_map), whole)
