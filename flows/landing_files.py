"""The Parquet files that hold the payloads: written whole, checked when read.

Columns: source_id, name, url, observed_at (TIMESTAMP, UTC), payload_sha256, size_bytes, payload (BINARY, as received).
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fitmart.estimator.errors import FitmartError
from fitmart.flows.moments import utc_without_zone
from fitmart.flows.sources.contract import Landed, LandedPayload
from fitmart.warehouse.files import replacing

SCHEMA = pa.schema(
    [
        ("source_id", pa.string()),
        ("name", pa.string()),
        ("url", pa.string()),
        ("observed_at", pa.timestamp("us")),
        ("payload_sha256", pa.string()),
        ("size_bytes", pa.int64()),
        ("payload", pa.large_binary()),
    ]
)
KEY_COLUMNS = [name for name in SCHEMA.names if name != "payload"]
SMALL_GROUP_BYTES = 1024**2  # of payload, uncompressed: what reading one payload costs
LARGE_GROUP_BYTES = 32 * 1024**2


class LandingError(FitmartError):
    """A payload cannot be landed or read; the message names the source or the file."""


Version = tuple[str, datetime, str]  # name, observed_at, payload_sha256


def version_of(landed: Landed) -> Version:
    """What makes a row of landing one."""
    return landed.name, landed.observed_at, landed.payload_sha256


def hash_payload(content: bytes) -> str:
    """The identity of a payload's content."""
    return hashlib.sha256(content).hexdigest()


def write_payloads(path: Path, payloads: Iterable[LandedPayload], *, level: int, group_bytes: int) -> None:
    """One file of `payloads`, compressed by zstd at `level`, in row groups of about `group_bytes`.

    A row group is one page, so that versions of a document, side by side, compress against each other.
    """

    with (
        replacing(path) as temporary,
        pq.ParquetWriter(
            temporary,
            SCHEMA,
            compression="zstd",
            compression_level=level,
            use_dictionary=["source_id", "name", "url"],
            write_statistics=["name", "observed_at"],
            data_page_size=2 * LARGE_GROUP_BYTES,
            max_rows_per_page=1_000_000,
            write_page_checksum=True,
        ) as writer,
    ):
        for group in _group_by_size(payloads, group_bytes):
            writer.write_table(_to_table(group))


def _group_by_size(payloads: Iterable[LandedPayload], limit: int) -> Iterator[list[LandedPayload]]:
    group: list[LandedPayload] = []
    size = 0
    for payload in payloads:
        group.append(payload)
        size += len(payload.content)
        if size >= limit:
            yield group
            group, size = [], 0
    if group:
        yield group


def _to_table(payloads: Sequence[LandedPayload]) -> pa.Table:
    rows = [p.landed for p in payloads]
    columns = {
        "source_id": [r.source_id for r in rows],
        "name": [r.name for r in rows],
        "url": [r.url for r in rows],
        "observed_at": [utc_without_zone(r.observed_at) for r in rows],
        "payload_sha256": [r.payload_sha256 for r in rows],
        "size_bytes": [r.size_bytes for r in rows],
        "payload": [p.content for p in payloads],
    }
    return pa.table(columns, schema=SCHEMA)


def read_keys(path: Path) -> list[Landed]:
    """The rows of one file without their payloads. LandingError if it is damaged."""
    try:
        with _open(path) as file:
            return [_to_landed(row) for row in file.read(columns=KEY_COLUMNS).to_pylist()]
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


def read_payloads(path: Path, wanted: set[Version] | None = None) -> Iterator[LandedPayload]:
    """The payloads of one file (those in `wanted`), row group by row group.

    LandingError if it is damaged, FileNotFoundError if it is gone (compacted in the meantime).
    """
    try:
        with _open(path) as file:
            for number in range(file.num_row_groups):
                keys = [_to_landed(row) for row in file.read_row_group(number, columns=KEY_COLUMNS).to_pylist()]
                rows = [i for i, key in enumerate(keys) if wanted is None or version_of(key) in wanted]
                if not rows:
                    continue
                contents = file.read_row_group(number, columns=["payload"]).column("payload").take(rows).to_pylist()
                for i, content in zip(rows, contents, strict=True):
                    if hash_payload(content) != keys[i].payload_sha256:
                        raise _damaged(path, f"the payload {keys[i].name} has changed")
                    yield LandedPayload(landed=keys[i], content=content)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


def _open(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path, page_checksum_verification=True)


def _to_landed(row: dict[str, object]) -> Landed:
    values = dict(row)
    values["observed_at"] = row["observed_at"].replace(tzinfo=UTC)  # type: ignore[attr-defined]
    return Landed(**values)  # type: ignore[arg-type]


def _damaged(path: Path, error: object) -> LandingError:
    lines = str(error).splitlines()
    return LandingError(f"landing file {path} is damaged: {lines[0] if lines else type(error).__name__}")
