"""The catalog's own checks: each file of sql/checks/ returns the rows that must not be there."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from fitmart.warehouse.errors import CheckError, one_line
from fitmart.warehouse.sqlfiles import sql_files

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """A check that found something: its name `<table>__<rule>` and the first rows, as dictionaries."""

    check: str
    rows: list[dict[str, Any]]

    def __str__(self) -> str:
        rows = "; ".join(", ".join(f"{name} {value}" for name, value in row.items()) for row in self.rows)
        return f"{self.check}: {rows}"


def run_checks(con: duckdb.DuckDBPyConnection, tables: Collection[str] | None = None) -> list[Failure]:
    """Run every check, or those that read one of `tables`; the failed ones, by name.

    A check that cannot run is an error of its own.
    """
    wanted = re.compile(rf"\b({'|'.join(tables)})\b") if tables is not None else re.compile("")
    paths = [path for path in sql_files("checks") if wanted.search(path.read_text(encoding="utf-8"))]
    return [failure for path in paths if (failure := _run(con, path))]


def must_pass(con: duckdb.DuckDBPyConnection, tables: Collection[str] | None = None) -> None:
    """Raise CheckError with the failed checks (of those that read one of `tables`) and their first rows."""
    failures = run_checks(con, tables)
    if failures:
        raise CheckError(f"{len(failures)} checks failed, nothing published: " + " | ".join(str(f) for f in failures))


def _run(con: duckdb.DuckDBPyConnection, path: Path) -> Failure | None:
    query = path.read_text(encoding="utf-8").strip().removesuffix(";")
    try:
        cursor = con.execute(f"SELECT * FROM ({query}\n) LIMIT {_SHOWN}")
        names = [column[0] for column in cursor.description or []]
        rows = cursor.fetchall()
    except duckdb.Error as error:
        raise CheckError(f"check {path.stem} cannot run: {one_line(error)}") from None
    return Failure(path.stem, [dict(zip(names, row, strict=True)) for row in rows]) if rows else None
