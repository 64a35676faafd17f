"""Which files of landing count, and which versions they hold, without opening them.

`landing/<source_id>/manifest.parquet` has one row a payload. It is switched by a rename after the payload file is on
the disk, so a payload is landed when the manifest lists it. A payload file that it does not list comes from a kill: it
is taken up if it holds something new, else removed. A lost or damaged manifest is made again from the files.
"""

import re
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from fitmart.estimator.frames import schema
from fitmart.flows.landing_files import LandingError, read_keys
from fitmart.flows.moments import utc_without_zone
from fitmart.flows.sources.contract import Landed
from fitmart.warehouse.files import remove_leftovers, replacing

SCHEMA = schema(
    source_id=pl.String,
    name=pl.String,
    url=pl.String,
    observed_at=pl.Datetime("us"),
    payload_sha256=pl.String,
    size_bytes=pl.Int64,
    file=pl.String,
    file_bytes=pl.Int64,
)
VERSION = ["name", "observed_at", "payload_sha256"]
_SOURCE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def source_folder(landing_dir: Path, source_id: str) -> Path:
    """The folder of one source. LandingError for an id that cannot be a file name."""
    if not _SOURCE_ID.fullmatch(source_id) or source_id == "source_run":
        raise LandingError(f"a source_id is lower-case letters, digits, '.', '_' and '-', not {source_id!r}")
    return landing_dir / source_id


def payload_folder(landing_dir: Path, source_id: str) -> Path:
    """Where the payloads of one source lie."""
    return source_folder(landing_dir, source_id) / "payload"


def load(landing_dir: Path, source_id: str) -> pl.DataFrame:
    """The versions that have landed, oldest first; SCHEMA. For readers: changes nothing on the disk."""
    rows = _read(landing_dir, source_id)
    return rows if rows is not None else _collect(payload_folder(landing_dir, source_id))[0]


def open_to_write(landing_dir: Path, source_id: str) -> tuple[pl.DataFrame, list[str]]:
    """The versions that have landed, after clearing up behind killed runs, and a line for each damaged file.

    Only for the holder of the refresh lock. A damaged file is set aside under another name: its payloads land again.
    """
    folder = payload_folder(landing_dir, source_id)
    remove_leftovers(folder)
    remove_leftovers(folder.parent)
    listed = _read(landing_dir, source_id)
    rows = listed if listed is not None else pl.DataFrame(schema=SCHEMA)
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.parquet")}
    known = dict(rows.select("file", "file_bytes").unique().iter_rows())
    faults = [f"landing file {folder / name} is missing" for name in known.keys() - sizes.keys()]
    wrong = {name for name in known.keys() & sizes.keys() if known[name] != sizes[name]}
    faults += [set_aside(folder / name, "its size has changed") for name in sorted(wrong)]
    kept = rows.filter(pl.col("file").is_in(list(sizes.keys() - wrong)))
    found, damaged = _collect(folder, sorted(sizes.keys() - known.keys()))
    faults += [set_aside(folder / name, reason) for name, reason in damaged.items()]
    new = found.join(kept, on=VERSION, how="anti")
    for name in set(found["file"]) - set(new["file"]):
        (folder / name).unlink(missing_ok=True)
    if listed is None and not len(found) and not faults:
        return kept, faults
    if faults or len(new) or len(kept) != len(rows):
        kept = pl.concat([kept, new]).sort("observed_at", maintain_order=True)
        switch(landing_dir, source_id, kept)
    return kept, faults


def switch(landing_dir: Path, source_id: str, rows: pl.DataFrame) -> None:
    """Make `rows` what has landed."""
    path = source_folder(landing_dir, source_id) / "manifest.parquet"
    with replacing(path) as temporary:
        rows.match_to_schema(SCHEMA).write_parquet(temporary, compression="zstd")


def set_aside(path: Path, reason: str) -> str:
    """Rename a damaged payload file so that nothing reads it; the line to report."""
    if path.exists():
        path.rename(path.with_name(path.name + ".damaged"))
    return f"landing file {path} is damaged and was set aside: {reason}"


def to_rows(landed: list[Landed], file: Path) -> pl.DataFrame:
    """Manifest rows of the payloads in `file`."""
    size = file.stat().st_size
    columns = {
        name: [getattr(row, name) for row in landed]
        for name in SCHEMA
        if name not in ("observed_at", "file", "file_bytes")
    }
    observed = [utc_without_zone(row.observed_at) for row in landed]
    rest = {"observed_at": observed, "file": [file.name] * len(landed), "file_bytes": [size] * len(landed)}
    return pl.DataFrame(columns | rest, schema=SCHEMA)


def to_landed(rows: pl.DataFrame) -> list[Landed]:
    """The rows as records."""
    records = rows.drop("file", "file_bytes").iter_rows(named=True)
    return [Landed(**row | {"observed_at": row["observed_at"].replace(tzinfo=UTC)}) for row in records]


def until(rows: pl.DataFrame, as_of: datetime | None) -> pl.DataFrame:
    """The versions seen up to `as_of` (UTC; None: all)."""
    if as_of is None:
        return rows
    return rows.filter(pl.col("observed_at") <= utc_without_zone(as_of))


def newest(rows: pl.DataFrame) -> pl.DataFrame:
    """The last version of every name. Of two with one time, the one that landed later."""
    return rows.sort("observed_at", maintain_order=True).unique("name", keep="last", maintain_order=True)


def _read(landing_dir: Path, source_id: str) -> pl.DataFrame | None:
    path = source_folder(landing_dir, source_id) / "manifest.parquet"
    try:
        return pl.read_parquet(path, memory_map=False).match_to_schema(SCHEMA)
    except (OSError, pl.exceptions.PolarsError):
        return None


def _collect(folder: Path, names: list[str] | None = None) -> tuple[pl.DataFrame, dict[str, str]]:
    """Manifest rows of payload files, each version once, and the damaged files with the reason."""
    frames, damaged = [pl.DataFrame(schema=SCHEMA)], {}
    for path in sorted(folder.glob("*.parquet")) if names is None else [folder / name for name in names]:
        try:
            frames.append(to_rows(read_keys(path), path))
        except LandingError as error:
            damaged[path.name] = str(error)
    rows = pl.concat(frames).sort("observed_at", maintain_order=True)
    return rows.unique(VERSION, keep="first", maintain_order=True), damaged
