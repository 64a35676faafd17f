"""GGUF: key-value pairs and tensor descriptions, read forward from wherever the bytes come from.

Source: the format's specification (github.com/ggml-org/ggml/blob/master/docs/gguf.md); types and block sizes from the
`gguf` package.
"""

import struct
from collections.abc import Callable
from math import prod
from typing import Any

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from fitmart.estimator.architectures.headers_records import Header, HeaderError, StoredTensor

Take = Callable[[int], bytes]
"""Returns exactly the next n bytes, or raises HeaderError."""

MAGIC = b"GGUF"
VERSIONS = (2, 3)
KEPT_ITEMS = 4096  # of a longer array (vocabularies) only the length is kept
MAX_ITEMS = 50_000_000
MAX_STRING = 64 * 1024**2
MAX_TENSORS = 1_000_000
ALIGNMENT = 32
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


class ArrayLength(int):
    """The length of an array whose items were not kept."""


def read_gguf(take: Take, *, file: str, file_bytes: int | None = None) -> Header:
    """The header, through `take`. `file_bytes`: the file's size, where known; too small for the tensors is an error."""
    return _Reader(take, file).read(file_bytes)


class _Reader:
    def __init__(self, take: Take, file: str) -> None:
        self._source = take
        self._file = file
        self._at = 0

    def read(self, file_bytes: int | None) -> Header:
        if self._take(4) != MAGIC:
            raise HeaderError(f"{self._file}: not a GGUF file")
        version = self._scalar("I")
        if version not in VERSIONS:
            raise HeaderError(f"{self._file}: GGUF version {version} is not one of 2 and 3 (or it is big-endian)")
        tensor_count = self._count(self._scalar("Q"), MAX_TENSORS, "tensors")
        pair_count = self._count(self._scalar("Q"), MAX_TENSORS, "key-value pairs")
        metadata: dict[str, Any] = {}
        for _ in range(pair_count):
            key = self._string()
            metadata[key] = self._value(self._scalar("I"))
        described = [self._tensor() for _ in range(tensor_count)]
        alignment = metadata.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise HeaderError(f"{self._file}: general.alignment is {alignment!r}")
        start = -(-self._at // alignment) * alignment
        end = max((offset + tensor.stored_bytes for tensor, offset in described), default=0)
        if file_bytes is not None and file_bytes < start + end:
            raise HeaderError(
                f"{self._file}: cut short: its tensors end at byte {start + end:,}, the file at {file_bytes:,}"
            )
        return Header(container="gguf", tensors=tuple(tensor for tensor, _ in described), metadata=metadata)

    def _tensor(self) -> tuple[StoredTensor, int]:
        """A tensor and its offset. GGUF names the row length first; shapes here name it last."""
        name = self._string()
        dims = self._count(self._scalar("I"), 8, f"dimensions of {name}")
        shape = tuple(reversed([self._scalar("Q") for _ in range(dims)]))
        number, offset = self._scalar("I"), self._scalar("Q")
        try:
            kind = GGMLQuantizationType(number)
        except ValueError:
            raise HeaderError(f"{self._file}: {name} has the unknown ggml type {number}") from None
        elements, size = GGML_QUANT_SIZES[kind]
        stored, rest = divmod(prod(shape) * size, elements)
        if rest:
            raise HeaderError(f"{self._file}: {name} of {shape} is not whole blocks of {kind.name}")
        return StoredTensor(name, kind.name, shape, stored), offset

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._scalar(self._form(kind))
        kind = self._scalar("I")
        count = self._count(self._scalar("Q"), MAX_ITEMS, "items of an array")
        if kind == _ARRAY:
            return [self._value(_ARRAY) for _ in range(count)]
        if kind == _STRING:
            if count <= KEPT_ITEMS:
                return [self._string() for _ in range(count)]
            for _ in range(count):
                self._take(self._count(self._scalar("Q"), MAX_STRING, "bytes of a text"))
            return ArrayLength(count)
        form = self._form(kind)
        content = self._take(count * struct.calcsize(form))
        return list(struct.unpack(f"<{count}{form}", content)) if count <= KEPT_ITEMS else ArrayLength(count)

    def _form(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise HeaderError(f"{self._file}: unknown kind of value {kind}: broken, or newer than this reader")
        return _SCALARS[kind]

    def _string(self) -> str:
        return self._take(self._count(self._scalar("Q"), MAX_STRING, "bytes of a text")).decode("utf-8", "replace")

    def _scalar(self, form: str) -> Any:
        return struct.unpack("<" + form, self._take(struct.calcsize(form)))[0]

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._source(count)

    def _count(self, value: int, most: int, what: str) -> int:
        if value > most:
            raise HeaderError(f"{self._file}: {value:,} {what}: broken")
        return int(value)
