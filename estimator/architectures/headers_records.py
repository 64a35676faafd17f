"""What the header of a weights file says: its tensors as stored, and its metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fitmart.estimator.errors import FitmartError

Container = Literal["safetensors", "gguf"]


class HeaderError(FitmartError):
    """A header that cannot be used; the message is one clear line that names the file."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as stored: the container's own dtype name, and rows before columns in `shape`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    stored_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """One file's header. `metadata`: `__metadata__` of safetensors, the key-value pairs of GGUF (arrays cut)."""

    container: Container
    tensors: tuple[StoredTensor, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
