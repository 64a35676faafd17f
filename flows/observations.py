"""What landed documents say, parsed once: a cache by content beside landing.

`observations/payload/<key>.parquet` holds what a source's parser made of one document, `span/<key>.parquet` how long
the rows of a run of versions stood (estimator/history.py), `count/<key>.parquet` how many rows each document has. A key
is a hash of the document (or the versions) and of the parser's code: a mended parser reads everything again, and
nothing else ever does. The whole folder may be lost: it is made again.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import polars as pl
from pydantic import BaseModel

from fitmart.estimator.frames import schema
from fitmart.flows.landing import read_all
from fitmart.flows.landing_files import version_of
from fitmart.flows.records import Offer, Sifted, TokenPrice
from fitmart.flows.sources.contract import Landed
from fitmart.warehouse.errors import StorageError, one_line
from fitmart.warehouse.files import remove_leftovers, replacing

RECORDS: dict[str, type[BaseModel]] = {"prices": Offer, "tokens": TokenPrice}
ROOT = Path(__file__).resolve().parent.parent
KINDS = ("payload", "span", "count")
_COUNT_SCHEMA = schema(key=pl.String, records=pl.Int64)
_IMPORT = re.compile(r"^from (fitmart[\w.]*) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)  # not those for type checkers


@cache
def columns(kind: str) -> pl.Schema:
    """Columns of the records of a kind of source, without the moment: that is the document's."""
    fields = {n: _dtype(f.annotation) for n, f in RECORDS[kind].model_fields.items() if n != "observed_at"}
    return pl.Schema(fields)


def _dtype(annotation: Any) -> Any:
    """Decimal and float are Float64, a tuple of words one text joined by |."""
    names = str([annotation, *get_args(annotation)])
    if "tuple" in names:
        return pl.String
    for word, dtype in (("Decimal", pl.Float64), ("float", pl.Float64), ("bool", pl.Boolean), ("int", pl.Int64)):
        if re.search(rf"\b{word}\b", names):
            return dtype
    return pl.String


class Observations:
    """The documents of one source, parsed through the cache. Remembers what it used, for `collect_garbage`."""

    def __init__(self, root: Path, kind: str, module: ModuleType, landing_dir: Path, used: set[Path]) -> None:
        self._root, self._kind, self._module, self._landing_dir, self._used = root, kind, module, landing_dir, used
        self._code = parser_hash(module)
        self.faults: list[str] = []  # a line for each file that could not be read
        self._counted: dict[str, int] = {}  # good records of what has been parsed now

    def parse(self, landed: Iterable[Landed]) -> None:
        """Have all these documents in the cache."""
        missing = {version_of(one) for one in landed if not self._payload_path(one).exists()}
        if not missing:
            return
        for payload in read_all(self._landing_dir, self._module.SOURCE_ID, only=missing, faults=self.faults):
            sifted = self._module.parse(payload.content, _midnight(payload.landed), payload.landed.name)
            path = self._payload_path(payload.landed)
            write_frame(path, _to_frame(sifted, self._kind), level=1)
            self._counted[path.stem] = len(sifted.good)

    def records(self, landed: Landed) -> pl.DataFrame:
        """What the parser made of one document: columns of the kind, and of what it rejected raw_text and reason."""
        path = self._payload_path(landed)
        self._used.add(path)
        found = read_frame(path)
        if found is None:
            path.unlink(missing_ok=True)
            self.parse([landed])
            found = read_frame(path)
        return found if found is not None else _to_frame(Sifted([], []), self._kind)

    def counts(self, versions: Sequence[Landed]) -> list[int | None]:
        """How many good records each document holds; None where it could not be read."""
        path = self._path("count")
        self._used.add(path)
        known: dict[str, int] = dict(found.iter_rows()) if (found := read_frame(path)) is not None else {}
        keys = [self._payload_path(v).stem for v in versions]
        new = [v for v, key in zip(versions, keys, strict=True) if key not in known]
        self.parse(new)
        for version, key in zip(versions, keys, strict=True):
            if key not in known and key not in self._counted and self._payload_path(version).exists():
                self._counted[key] = self.records(version)["reason"].null_count()
        if self._counted.keys() - known.keys():
            known |= self._counted
            write_frame(path, pl.DataFrame(list(known.items()), schema=_COUNT_SCHEMA, orient="row"))
        return [known.get(key) for key in keys]

    def spans(self, versions: list[Landed], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """The spans of a run of versions, made unless they are there."""
        path = self._span_path(versions)
        self._used.add(path)
        found = read_frame(path)
        if found is None:
            found = make()
            write_frame(path, found)
        return found

    def keep(self, landed: Iterable[Landed]) -> None:
        """These documents will be needed again soon."""
        self._used |= {self._payload_path(one) for one in landed}

    def keep_spans(self, versions: list[Landed]) -> None:
        """The spans of these versions will be needed again soon."""
        self._used.add(self._span_path(versions))

    def _span_path(self, versions: list[Landed]) -> Path:
        return self._path("span", *(f"{v.observed_at.isoformat()} {v.payload_sha256}" for v in versions), self._kind)

    def _payload_path(self, landed: Landed) -> Path:
        """A price list may hold prices that begin on a day, so the day counts."""
        return self._path("payload", landed.name, landed.payload_sha256, _midnight(landed).date().isoformat())

    def _path(self, folder: str, *parts: str) -> Path:
        digest = hashlib.sha256("\0".join((self._code, self._module.SOURCE_ID, *parts)).encode()).hexdigest()
        return self._root / folder / f"{digest[:32]}.parquet"


def collect_garbage(root: Path, used: set[Path]) -> int:
    """Drop what the last build did not use; how many files went. Only for the holder of the refresh lock."""
    dropped = [path for kind in KINDS for path in (root / kind).glob("*.parquet") if path not in used]
    for path in dropped:
        path.unlink(missing_ok=True)
    for kind in KINDS:
        remove_leftovers(root / kind)
    return len(dropped)


def parser_hash(module: ModuleType) -> str:
    """Hash of a source's parser: its module, all of fitmart that this imports, and the function itself."""
    digest = hashlib.sha256(repr(_code(module.parse)).encode())
    file = getattr(module, "__file__", None)
    for path in sorted({Path(__file__), *(_imported(Path(file)) if file else ())}):
        digest.update(_source(path))
    return digest.hexdigest()


def _code(function: object) -> object:
    """What a function does, so that another one put in its place is another parser."""
    code = getattr(function, "__code__", function)
    consts = [_code(c) if hasattr(c, "co_code") else repr(c) for c in getattr(code, "co_consts", ())]
    return getattr(code, "co_code", repr(code)), getattr(code, "co_names", ()), consts


def _imported(start: Path) -> set[Path]:
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for origin, names in _IMPORT.findall(_source(path).decode()):
            modules = [origin, *(f"{origin}.{name}" for name in re.findall(r"\w+", names))]
            files = [ROOT.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in modules]
            waiting += [file for file in files if file.is_file()]
    return found


@cache
def _source(path: Path) -> bytes:
    return path.read_bytes()


def _midnight(landed: Landed) -> datetime:
    return datetime.combine(landed.observed_at.astimezone(UTC).date(), time(), UTC)


def _to_frame(sifted: Sifted[Any], kind: str) -> pl.DataFrame:
    wanted = columns(kind)
    data: dict[str, list[Any]] = {}
    for name, dtype in wanted.items():
        values = [getattr(record, name) for record in sifted.good]
        if dtype == pl.Float64:
            values = [None if v is None else float(v) for v in values]
        elif name == "quality_flags":
            values = ["|".join(v) or None for v in values]
        data[name] = values
    good = pl.DataFrame(data, schema=wanted)
    bad = pl.DataFrame(
        [(r.raw_text, r.reason) for r in sifted.rejected],
        schema={"raw_text": pl.String, "reason": pl.String},
        orient="row",
    )
    return pl.concat([good, bad], how="diagonal")


def write_frame(path: Path, frame: pl.DataFrame, *, level: int = 9) -> None:
    """Put a frame into the cache. StorageError where the disk is full or fails."""
    with replacing(path) as temporary:
        try:
            frame.write_parquet(temporary, compression="zstd", compression_level=level)
        except pl.exceptions.ComputeError as error:
            raise StorageError(f"cannot write {path}: {one_line(error)}") from None


def read_frame(path: Path) -> pl.DataFrame | None:
    """A frame of the cache; None where it is not there, or damaged."""
    try:
        return pl.read_parquet(path, memory_map=False)
    except (OSError, pl.exceptions.PolarsError):
        return None
