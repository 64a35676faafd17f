"""Compaction: the files of each month become one, in which versions of a document lie side by side."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fitmart.flows import manifest
from fitmart.flows.landing import read_all, sources
from fitmart.flows.landing_files import LARGE_GROUP_BYTES, version_of, write_payloads
from fitmart.flows.runs import pack_runs
from fitmart.flows.sources.contract import LandedPayload
from fitmart.warehouse.files import remove_files

LEVEL = 9  # zstd with a 4 MiB window: reaches the version before
PASS_BYTES = 256 * 1024**2  # of payload held in memory at a time


@dataclass(frozen=True, slots=True)
class Compaction:
    """What one compaction did."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    faults: tuple[str, ...] = ()


def compact(landing_dir: Path) -> Compaction:
    """One file a source and month. Only for the holder of the refresh lock.

    The new file is written, then the manifest switched, then the old files removed: a kill leaves each payload landed
    once. A damaged file stays out and is reported.
    """
    totals = [0, 0, 0, 0]
    faults: list[str] = []
    for source_id in sources(landing_dir):
        rows, found = manifest.open_to_write(landing_dir, source_id)
        faults += found
        before = _measure(rows)
        months = rows.with_columns(month=pl.col("observed_at").dt.strftime("%Y-%m")).partition_by("month", as_dict=True)
        for (month,), part in sorted(months.items()):
            if part["file"].n_unique() > 1:
                rows = _compact_month(landing_dir, source_id, str(month), rows, part.drop("month"), faults)
        totals = [t + n for t, n in zip(totals, (*before, *_measure(rows)), strict=True)]
    faults += pack_runs(landing_dir)
    return Compaction(totals[0], totals[2], totals[1], totals[3], tuple(faults))


def _measure(rows: pl.DataFrame) -> tuple[int, int]:
    files = rows.select("file", "file_bytes").unique()
    return len(files), int(files["file_bytes"].sum())


def _compact_month(
    landing_dir: Path, source_id: str, month: str, rows: pl.DataFrame, part: pl.DataFrame, faults: list[str]
) -> pl.DataFrame:
    """Merge the files of `part`; the manifest's new rows."""
    folder = manifest.payload_folder(landing_dir, source_id)
    path = folder / f"{month}-{uuid.uuid4().hex[:12]}.parquet"
    written: list[LandedPayload] = []

    def merged() -> Iterator[LandedPayload]:
        for payload in _by_name(landing_dir, source_id, part):
            written.append(LandedPayload(landed=payload.landed, content=b""))
            yield payload

    write_payloads(path, merged(), level=LEVEL, group_bytes=LARGE_GROUP_BYTES)
    merged_rows = manifest.to_rows([p.landed for p in written], path)
    damaged = set(part.join(merged_rows, on=manifest.VERSION, how="anti")["file"])
    others = rows.join(part, on=manifest.VERSION, how="anti")
    rows = pl.concat([others, merged_rows]).sort("observed_at", maintain_order=True)
    manifest.switch(landing_dir, source_id, rows)
    old = set(part["file"]) - set(rows["file"])
    for name in sorted(old & damaged):
        faults.append(manifest.set_aside(folder / name, "some of its payloads cannot be read"))
    remove_files(folder, old - damaged)
    return rows


def _by_name(landing_dir: Path, source_id: str, part: pl.DataFrame) -> Iterator[LandedPayload]:
    """The payloads of `part` by name and time, so many names at a time as fit into PASS_BYTES."""
    sizes = part.group_by("name").agg(pl.col("size_bytes").sum()).sort("name")
    passes = sizes.with_columns(number=(pl.col("size_bytes").cum_sum() - pl.col("size_bytes")) // PASS_BYTES)
    for names in passes.partition_by("number", maintain_order=True):
        chunk = part.filter(pl.col("name").is_in(names["name"].to_list()))
        wanted = {version_of(landed) for landed in manifest.to_landed(chunk)}
        payloads = read_all(landing_dir, source_id, only=wanted, faults=[])  # what is damaged shows by its absence
        yield from sorted(payloads, key=lambda p: (p.landed.name, p.landed.observed_at))
