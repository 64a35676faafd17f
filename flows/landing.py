"""Landing: what sources sent, as received, kept for good. One writer at a time (flows/lock.py), any number of readers.

A payload is kept where it differs from the version before it; an equal one leaves only its row in `source_run`
(flows/runs.py).
"""

import uuid
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path

import polars as pl

from fitmart.flows import manifest
from fitmart.flows.landing_files import (
    SMALL_GROUP_BYTES,
    LandingError,
    Version,
    hash_payload,
    read_payloads,
    version_of,
    write_payloads,
)
from fitmart.flows.sources.contract import Landed, LandedPayload, Payload

LEVEL = 3  # zstd, of a single landing; compaction takes more time


@dataclass(frozen=True, slots=True)
class LandingResult:
    """How many payloads were new, how many as before; bytes received; a line for each damaged file that was found."""

    added: int
    unchanged: int
    bytes: int = 0
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """Payloads, ordered by name, and a line for each file that could not be read."""

    payloads: list[LandedPayload] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def land(landing_dir: Path, source_id: str, payloads: Sequence[Payload], seen_at: datetime) -> LandingResult:
    """Keep those `payloads` that differ from what had been seen of them up to `seen_at`: all of them, or none.

    Only for the holder of the refresh lock. LandingError for two payloads of one name.
    """
    if seen_at.tzinfo is None:
        raise LandingError(f"{source_id}: the time of a landing needs a time zone")
    by_name: dict[str, Payload] = {}
    for payload in payloads:
        if by_name.setdefault(payload.name, payload).content != payload.content:
            raise LandingError(f"{source_id}: gave two different payloads named {payload.name}")
    rows, faults = manifest.open_to_write(landing_dir, source_id)
    before = manifest.newest(manifest.until(rows, seen_at))
    known = dict(before.select("name", "payload_sha256").iter_rows())
    received = [_as_landed(source_id, payload, seen_at) for payload in by_name.values()]
    new = [p for p in received if known.get(p.landed.name) != p.landed.payload_sha256]
    if new:
        stamp = seen_at.astimezone(UTC).strftime("%Y%m%dT%H%M%S")
        path = manifest.payload_folder(landing_dir, source_id) / f"{stamp}-{uuid.uuid4().hex[:12]}.parquet"
        write_payloads(path, new, level=LEVEL, group_bytes=SMALL_GROUP_BYTES)
        manifest.switch(landing_dir, source_id, pl.concat([rows, manifest.to_rows([p.landed for p in new], path)]))
    size = sum(p.landed.size_bytes for p in received)
    return LandingResult(added=len(new), unchanged=len(received) - len(new), bytes=size, faults=tuple(faults))


def _as_landed(source_id: str, payload: Payload, seen_at: datetime) -> LandedPayload:
    landed = Landed(
        source_id=source_id,
        name=payload.name,
        url=payload.url,
        observed_at=seen_at,
        payload_sha256=hash_payload(payload.content),
        size_bytes=len(payload.content),
    )
    return LandedPayload(landed=landed, content=payload.content)


def sources(landing_dir: Path) -> list[str]:
    """The sources that have landed something."""
    return sorted(path.parent.name for path in landing_dir.glob("*/payload"))


def list_versions(landing_dir: Path, source_id: str, as_of: datetime | date | None = None) -> list[Landed]:
    """All versions seen up to `as_of`, oldest first, without their contents."""
    return manifest.to_landed(_versions(landing_dir, source_id, as_of))


def list_newest(landing_dir: Path, source_id: str, as_of: datetime | date | None = None) -> dict[str, Landed]:
    """name -> its last version up to `as_of`, without its content."""
    rows = manifest.newest(_versions(landing_dir, source_id, as_of))
    return {landed.name: landed for landed in manifest.to_landed(rows)}


def read_newest(landing_dir: Path, source_id: str, as_of: datetime | date | None = None) -> Reading:
    """The last version of every name seen up to `as_of`, ordered by name; where a file is damaged, the one before."""
    faults: list[str] = []
    got: dict[str, LandedPayload] = {}
    lost: set[Version] = set()
    while True:
        versions = [v for v in list_versions(landing_dir, source_id, as_of) if version_of(v) not in lost]
        wanted = {version_of(v) for v in {v.name: v for v in versions}.values() if v.name not in got}
        if not wanted:
            return Reading([got[name] for name in sorted(got)], faults)
        read = {p.landed.name: p for p in read_all(landing_dir, source_id, as_of, only=wanted, faults=faults)}
        got |= read
        lost |= {version for version in wanted if version[0] not in read}


def read_one(landing_dir: Path, landed: Landed) -> bytes | None:
    """The content of one version; None if its file is gone or damaged."""
    found = list(read_all(landing_dir, landed.source_id, only={version_of(landed)}, faults=[]))
    return found[0].content if found else None


def read_all(
    landing_dir: Path,
    source_id: str,
    as_of: datetime | date | None = None,
    *,
    only: Set[Version] | None = None,
    faults: list[str] | None = None,
) -> Iterator[LandedPayload]:
    """Every version seen up to `as_of` (those in `only`), file by file: sort by observed_at where order matters.

    A line for each file that could not be read is added to `faults`; without that list it is raised.
    """
    done: set[Version] = set()
    for is_last in (False, False, True):  # a compaction may take files away under a reader: look again
        is_complete = True
        rows = _versions(landing_dir, source_id, as_of)
        if only is not None:
            rows = rows.filter(pl.col("payload_sha256").is_in({version[2] for version in only}))
        for (file,), part in rows.partition_by("file", as_dict=True, maintain_order=True).items():
            wanted = {version_of(landed) for landed in manifest.to_landed(part)} - done
            wanted = wanted if only is None else wanted & only
            path = manifest.payload_folder(landing_dir, source_id) / str(file)
            try:
                for payload in read_payloads(path, wanted) if wanted else ():
                    done.add(version_of(payload.landed))
                    yield payload
            except FileNotFoundError:
                is_complete = False
                if is_last:
                    _report(LandingError(f"landing file {path} is missing"), faults)
            except LandingError as error:
                done |= wanted
                _report(error, faults)
        if is_complete:
            return


def _report(error: LandingError, faults: list[str] | None) -> None:
    if faults is None:
        raise error
    faults.append(str(error))


def _versions(landing_dir: Path, source_id: str, as_of: datetime | date | None) -> pl.DataFrame:
    rows = manifest.until(manifest.load(landing_dir, source_id), to_moment(as_of))
    return rows.sort("observed_at", maintain_order=True)


def to_moment(as_of: datetime | date | None) -> datetime | None:
    """A moment in UTC; a date is the end of that day."""
    if as_of is None or (isinstance(as_of, datetime) and as_of.tzinfo):
        return as_of
    if isinstance(as_of, datetime):
        return as_of.replace(tzinfo=UTC)
    return datetime.combine(as_of, time.max, tzinfo=UTC)
