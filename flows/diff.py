"""What has changed in the catalog since a day: cheaper offers, new models, sources that fell silent."""

from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb

from fitmart.flows.moments import utc_without_zone
from fitmart.warehouse.connection import connect
from fitmart.warehouse.errors import CatalogError, one_line

Row = dict[str, Any]

QUERIES = {
    "cheaper": "SELECT * FROM cheaper_since($since)",
    "price_changes": """
        SELECT kind, count(*) AS offers FROM offer_changes($since) GROUP BY kind ORDER BY offers DESC, kind
    """,
    "new_models": """
        SELECT h.model_id, min(h.valid_from) AS first_seen_at, any_value(m.params_total) AS params_total
        FROM model_history AS h
        LEFT JOIN model AS m ON m.model_id::VARCHAR = h.model_id
        GROUP BY h.model_id
        HAVING min(h.valid_from) >= $since::TIMESTAMP
        ORDER BY first_seen_at, model_id
    """,
    "stale_sources": """
        SELECT source_id, kind, status, observed_at, age_hours, max_age_hours, reason
        FROM source_status
        WHERE status = 'failed' OR (is_stale AND served_rows > 0)
        ORDER BY status, source_id
    """,
    "quarantined": """
        SELECT source_id, raw_text AS document, reason FROM rejected WHERE starts_with(reason, 'quarantined: ')
        ORDER BY source_id, document
    """,
}


@dataclass(frozen=True, slots=True)
class Diff:
    """cheaper: GPU × count × commitment now offered below the cheapest of then. price_changes: offers by kind.

    new_models: first seen since then. stale_sources: failed when last asked, or older than they may be. quarantined:
    documents that have shrunk so much that the last good ones stay in use (flows/gates.py).
    """

    since: datetime
    built_at: datetime
    cheaper: list[Row]
    price_changes: list[Row]
    new_models: list[Row]
    stale_sources: list[Row]
    quarantined: list[Row]

    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not any(getattr(self, name) for name in QUERIES)

    def to_dict(self) -> Row:
        """Plain values, for JSON."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def diff(data_dir: Path, since: date | datetime) -> Diff:
    """Compare the published catalog with what it knew at `since` (UTC; a day: its beginning). CatalogError."""
    moment = since if isinstance(since, datetime) else datetime.combine(since, datetime.min.time())
    moment = utc_without_zone(moment) if moment.tzinfo else moment
    with closing(connect(data_dir)) as con:
        try:
            built_at = con.execute("SELECT built_at FROM build").fetchall()[0][0]
            found = {name: _rows(con, sql, moment) for name, sql in QUERIES.items()}
        except (duckdb.Error, IndexError) as error:
            raise CatalogError(f"the catalog in {data_dir} cannot be compared: {one_line(error)}") from None
    return Diff(since=moment, built_at=built_at, **found)


def to_lines(changes: Diff, *, most: int = 20) -> list[str]:
    """The same for people; at most `most` lines of each kind."""
    lines = [f"Since {changes.since:%Y-%m-%d %H:%M} (catalog of {changes.built_at:%Y-%m-%d %H:%M}, UTC):"]
    moved = ", ".join(f"{row['offers']:,} {row['kind']}" for row in changes.price_changes)
    lines.append(f"Offers: {moved or 'no change'}")
    sections = (
        ("Cheaper", [_cheaper(row) for row in changes.cheaper]),
        ("New models", [str(row["model_id"]) for row in changes.new_models]),
        ("Stale or failed sources", [_stale(row) for row in changes.stale_sources]),
        ("Quarantined", [f"{row['source_id']} {row['document']}: {row['reason']}" for row in changes.quarantined]),
    )
    for title, told in sections:
        lines.append(f"{title}: {len(told) or 'none'}")
        lines += [f"  {line}" for line in told[:most]]
        lines += [f"  … and {len(told) - most} more"] if len(told) > most else []
    return lines


def _cheaper(row: Row) -> str:
    what = f"{row['gpu_count']} × {row['gpu_id']}, {row['commitment']}"
    was = f"{row['old_usd_per_hour']:.2f} ({row['old_provider_id']})"
    return (
        f"{what}: {row['usd_per_hour']:.2f} USD/h ({row['provider_id']}) instead of {was}, {row['change_share']:+.0%}"
    )


def _stale(row: Row) -> str:
    age = "never answered" if row["age_hours"] is None else f"newest row {int(row['age_hours'] // 24)} days old"
    return f"{row['source_id']}: {row['status']}, {age}" + (f" ({row['reason']})" if row["reason"] else "")


def _rows(con: duckdb.DuckDBPyConnection, sql: str, since: datetime) -> list[Row]:
    cursor = con.execute(sql, {"since": since} if "$since" in sql else None)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, str | int | float | bool | None) else float(value)
