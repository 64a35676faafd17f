"""Headers of weight files, read from this machine or from the Hub: never the weights themselves.

Landed in a repository's document under `headers`: {"files": {name: {"header": text, "bytes": size}}} for safetensors;
{"sizes": {name: bytes}} of GGUF files, with {"gguf": {"file", "headers"}} where there is no config.json; {"total_size"}
where there are too many shards; {"missing": why} where the files are broken.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fitmart.estimator.anatomy import Anatomy
from fitmart.estimator.architectures.headers import anatomy_from_headers
from fitmart.estimator.architectures.headers_gguf import MAGIC, read_gguf
from fitmart.estimator.architectures.headers_records import Header, HeaderError, StoredTensor
from fitmart.estimator.architectures.headers_safetensors import (
    LENGTH_BYTES,
    header_length,
    parse_index,
    parse_safetensors,
)
from fitmart.flows.sources.models.reading import read_object

if TYPE_CHECKING:
    from fitmart.flows.hub_client import HubClient

WEIGHTS = (".gguf", ".safetensors")
INDEX = ".safetensors.index.json"
MAX_INDEX_BYTES = 64 * 1024**2
MAX_SHARDS = 40  # of a checkpoint on the Hub: a request each
FIRST_RANGE = 128 * 1024  # holds the header of most shards
GGUF_RANGE = 1024**2
_PART = re.compile(r"^(.+)-(\d{5})-of-(\d{5})\.(safetensors|gguf)$")
_OTHER_WEIGHTS = ("adapter", "consolidated", "optimizer", "training", "mmproj")  # beside the checkpoint, not it
_GENERIC_STEM = re.compile(r"^(config|model|pytorch_model|consolidated)$")


# ---- which files are the checkpoint --------------------------------------------------------------------------------


def weight_files(names: Iterable[str], suffix: str = "safetensors") -> tuple[str, ...]:
    """The files of one checkpoint among `names` of a folder: `model.…`, one set of shards, or the only file.

    Empty: there is none, or several and no telling which.
    """
    own = sorted(n for n in names if n.endswith(f".{suffix}") and "/" not in n and not n.startswith(_OTHER_WEIGHTS))
    if f"model.{suffix}" in own:
        return (f"model.{suffix}",)
    sets: dict[str, list[str]] = {}
    for name in own:
        found = _PART.match(name)
        sets.setdefault(found[1] if found else name, []).append(name)
    if len(sets) > 1 and "model" in sets:
        return tuple(sets["model"])
    return tuple(next(iter(sets.values()))) if len(sets) == 1 else ()


def shards_beside(path: Path) -> list[Path]:
    """`path` and the other parts of its set."""
    found = _PART.match(path.name)
    if not found:
        return [path]
    return [path.with_name(f"{found[1]}-{n:05d}-of-{found[3]}.{found[4]}") for n in range(1, int(found[3]) + 1)]


# ---- this machine --------------------------------------------------------------------------------------------------


def read_header(path: Path) -> Header:
    """The header of one .safetensors or .gguf file; HeaderError with one line, also for a file that is cut short."""
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            start = stream.read(LENGTH_BYTES)
            if start[: len(MAGIC)] == MAGIC or path.suffix == ".gguf":
                stream.seek(0)
                return read_gguf(_taker(stream, str(path)), file=str(path), file_bytes=size)
            length = header_length(start, file=str(path))
            return parse_safetensors(stream.read(length), file=str(path), data_bytes=size - LENGTH_BYTES - length)
    except OSError as error:
        raise HeaderError(f"{path}: cannot be read ({error.strerror or error})") from None


def _taker(stream: BinaryIO, file: str) -> Any:
    def take(count: int) -> bytes:
        content = stream.read(count)
        if len(content) < count:
            raise HeaderError(f"{file}: ends in the middle of its header: cut short")
        return content

    return take


def headers_of_folder(folder: Path) -> tuple[Header, ...]:
    """The headers of the checkpoint in a folder: an index's shards, safetensors, else GGUF; empty where there is none.

    `headers.json` ({file name: safetensors header}) stands for files that are elsewhere.
    """
    try:
        names = sorted(p.name for p in folder.iterdir())
    except OSError as error:
        raise HeaderError(f"{folder}: {error.strerror or error}") from None
    if "headers.json" in names:
        described = _read_json(folder / "headers.json")
        return tuple(parse_safetensors(json.dumps(value), file=f"{folder}/{name}") for name, value in described.items())
    files: Sequence[str] = weight_files(names)
    if index := next((n for n in names if n.endswith(INDEX)), None):
        listed = parse_index(_read_bytes(folder / index), file=str(folder / index)).shards
        if not any(name in names for name in listed):
            return ()  # the index alone says nothing about shapes
        files = listed
    return tuple(read_header(folder / name) for name in files or weight_files(names, "gguf"))


def anatomy_of_file(path: Path) -> Anatomy:
    """The anatomy of a checkpoint on disk: a .gguf, a .safetensors (and its shards), an index, or a folder.

    Safetensors need the config.json beside them. HeaderError or AnatomyError with one line.
    """
    is_folder = path.is_dir() or path.name.endswith(INDEX)
    folder = path if path.is_dir() else path.parent
    headers = headers_of_folder(folder) if is_folder else tuple(read_header(p) for p in shards_beside(path))
    if not headers:
        raise HeaderError(f"{path}: no weights beside it whose headers could be read")
    config, quant = folder / "config.json", folder / "hf_quant_config.json"
    is_gguf = headers[0].container == "gguf"
    return anatomy_from_headers(
        _model_name(path, folder),
        headers,
        _read_json(config) if config.exists() and not is_gguf else None,
        quant_config=_read_json(quant) if quant.exists() and not is_gguf else None,
    )


def _model_name(path: Path, folder: Path) -> str:
    found = _PART.match(path.name)
    stem = found[1] if found else path.name.split(".safetensors")[0].removesuffix(".gguf")
    name = folder.resolve().name if path.is_dir() or _GENERIC_STEM.match(stem) else stem
    return name.replace("__", "/", 1) or str(path)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise HeaderError(f"{path}: cannot be read ({error.strerror or error})") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return read_object(_read_bytes(path).decode())
    except ValueError as error:  # includes broken UTF-8
        raise HeaderError(f"{path}: {error}") from None


# ---- the Hub -------------------------------------------------------------------------------------------------------


def fetch_headers(
    client: "HubClient", repo_id: str, revision: str, names: Collection[str], *, max_shards: int = MAX_SHARDS
) -> dict[str, Any] | None:
    """What to land of a repository's headers (see the top of this file); None where it has no weights of a known kind.

    One request for an index, one or two ranged ones a shard, and none to the shards beyond `max_shards`.
    """
    files, total = weight_files(names), None
    if index := next((n for n in sorted(names) if n.endswith(INDEX) and "/" not in n), None):
        text = client.read_file(repo_id, revision, index, max_bytes=MAX_INDEX_BYTES)
        listed = parse_index(text, file=f"{repo_id}/{index}")
        files, total = listed.shards, listed.total_bytes
    if len(files) > max_shards:
        return {"total_size": total}
    if not files:
        has_gguf = any(name.endswith(".gguf") for name in names)
        return _fetch_gguf_repository(client, repo_id, revision, names) if has_gguf else None
    return {"files": {name: _fetch_safetensors(client, repo_id, revision, name) for name in files}}


def _fetch_gguf_repository(client: "HubClient", repo_id: str, revision: str, names: Collection[str]) -> dict[str, Any]:
    """The sizes of all GGUF files (one request), and the header of one where nothing else describes the model."""
    sizes = client.file_sizes(repo_id, revision)
    landed: dict[str, Any] = {"sizes": {name: size for name, size in sizes.items() if name.endswith(".gguf")}}
    if "config.json" not in names and (gguf := _typical_gguf(names)):
        headers = [fetch_gguf(client, repo_id, revision, path.as_posix()) for path in shards_beside(Path(gguf))]
        landed["gguf"] = {"file": gguf, "headers": [_to_json(header) for header in headers]}
    return landed


def _fetch_safetensors(client: "HubClient", repo_id: str, revision: str, name: str) -> dict[str, Any]:
    place = f"{repo_id}/{name}"
    content, size = client.read_range(repo_id, revision, name, 0, FIRST_RANGE)
    length = header_length(content, file=place)
    text = content[LENGTH_BYTES : LENGTH_BYTES + length]
    if len(text) < length:
        text += client.read_range(repo_id, revision, name, LENGTH_BYTES + len(text), length - len(text))[0]
    parse_safetensors(text, file=place, data_bytes=size - LENGTH_BYTES - length)
    return {"header": text.decode(), "bytes": size}


def fetch_gguf(client: "HubClient", repo_id: str, revision: str, name: str) -> Header:
    """The header of a GGUF file on the Hub, a range at a time until it has been read."""
    buffer, at, size = bytearray(), 0, 0

    def take(count: int) -> bytes:
        nonlocal at, size
        while len(buffer) < count:
            more, size = client.read_range(repo_id, revision, name, at, max(GGUF_RANGE, count - len(buffer)))
            if not more:
                raise HeaderError(f"{repo_id}/{name}: ends in the middle of its header: cut short")
            buffer.extend(more)
            at += len(more)
        taken = bytes(buffer[:count])
        del buffer[:count]
        return taken

    return read_gguf(take, file=f"{repo_id}/{name}")


def _typical_gguf(names: Iterable[str]) -> str | None:
    """The file that stands for a repository of GGUF files: its Q4_K_M, else the first in the alphabet."""
    own = sorted(n for n in names if n.endswith(".gguf") and not Path(n).name.startswith(_OTHER_WEIGHTS))
    return next((n for n in own if "q4_k_m" in n.lower()), next(iter(own), None))


def landed_headers(landed: Mapping[str, Any], repo_id: str) -> tuple[Header, ...]:
    """The headers of a landed document's `headers`. HeaderError where they cannot be read."""
    if gguf := landed.get("gguf"):
        return tuple(_from_json(value) for value in gguf["headers"])
    files = landed.get("files") or {}
    return tuple(parse_safetensors(entry["header"], file=f"{repo_id}/{name}") for name, entry in files.items())


def _to_json(header: Header) -> dict[str, Any]:
    tensors = [[t.name, t.dtype, list(t.shape), t.stored_bytes] for t in header.tensors]
    return {"container": header.container, "metadata": dict(header.metadata), "tensors": tensors}


def _from_json(value: Mapping[str, Any]) -> Header:
    tensors = tuple(StoredTensor(name, dtype, tuple(shape), size) for name, dtype, shape, size in value["tensors"])
    return Header(container=value["container"], tensors=tensors, metadata=value["metadata"])
