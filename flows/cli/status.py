"""`fitmart status`: what the catalog holds, how old it is, and what failed."""

import json
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fitmart.flows.cli.options import data_dir_option

_SOURCES = """
SELECT source_id, kind, status, served_rows, rejected_rows, strftime(observed_at, '%Y-%m-%d %H:%M') AS observed_at,
    age_hours, max_age_hours, is_stale, reason
FROM source_status
ORDER BY served_rows = 0, kind, source_id
"""
_SHOWN = ("source_id", "kind", "status", "served_rows", "rejected_rows", "observed_at", "is_stale", "reason")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
@data_dir_option
def command(as_json: bool, data_dir: Path) -> None:
    """Say what the catalog holds, how old it is and what failed."""
    found = _look(data_dir)
    if as_json:
        click.echo(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        _tell(found)


def _look(data_dir: Path) -> dict[str, Any]:
    import duckdb

    from fitmart.warehouse.connection import catalog_path, open_reader
    from fitmart.warehouse.errors import CatalogError, one_line
    from fitmart.warehouse.publish import build_ids

    path = catalog_path(data_dir)
    with closing(open_reader(data_dir)) as con:
        try:
            build = _rows(con, "SELECT build_id, schema_version, code_version, built_at, row_counts FROM build")[0]
            sources = _rows(con, _SOURCES)
            checks = _rows(con, "SELECT count(*) AS disagreements FROM model_check WHERE NOT is_equal")[0]
        except (duckdb.Error, IndexError) as error:
            raise CatalogError(f"{path} is not a whole fitmart catalog ({one_line(error)})") from None
    built_at = build.pop("built_at")
    return {
        "catalog": str(path),
        "built_at": f"{built_at:%Y-%m-%dT%H:%M:%SZ}",
        "age_hours": round((datetime.now(UTC) - built_at.replace(tzinfo=UTC)).total_seconds() / 3600, 1),
        **build,
        "kept_builds": build_ids(data_dir),
        "model_disagreements": checks["disagreements"],
        "sources": sources,
    }


def _rows(con: Any, sql: str) -> list[dict[str, Any]]:
    cursor = con.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _tell(found: dict[str, Any]) -> None:
    from fitmart.warehouse.answers import write_table
    from fitmart.warehouse.guard import Answer

    click.echo(f"{found['catalog']}: built {found['built_at']}, {found['age_hours']:,} hours ago")
    counts = {name: count for name, count in found["row_counts"].items() if count}
    click.echo("Rows: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
    click.echo(f"Kept builds: {', '.join(found['kept_builds'])}\n")
    rows = [tuple(source[name] for name in _SHOWN) for source in found["sources"]]
    kinds = ["BIGINT" if name.endswith("_rows") else "VARCHAR" for name in _SHOWN]
    write_table(Answer(list(_SHOWN), kinds, iter(rows)), sys.stdout, is_terminal=sys.stdout.isatty())
