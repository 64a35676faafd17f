"""What the catalog says about itself: tables, views and macros with the comments of sql/, read back from the file."""

import re
from dataclasses import dataclass, field
from typing import Literal

import duckdb

Kind = Literal["table", "view", "macro"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: type as SQL writes it, meaning, unit (from `[…]`, None without one) and source."""

    name: str
    type: str
    comment: str | None

    @property
    def unit(self) -> str | None:
        found = re.search(r"\[([^\]]+)\]", self.comment or "")
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view or table macro. A macro has `parameters` (a default after `:=`) and no described columns."""

    name: str
    kind: Kind
    comment: str | None
    columns: list[Column] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)


def describe(con: duckdb.DuckDBPyConnection) -> list[Relation]:
    """All tables, then views, then macros, each by name."""
    columns: dict[str, list[Column]] = {}
    for table, name, kind, comment in con.execute(
        "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal "
        "ORDER BY table_name, column_index"
    ).fetchall():
        columns.setdefault(table, []).append(Column(name, _type(kind), comment))
    tables = con.execute("SELECT table_name, comment FROM duckdb_tables() WHERE NOT internal ORDER BY 1").fetchall()
    views = con.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall()
    macros = con.execute(
        "SELECT function_name, comment, parameters FROM duckdb_functions() "
        "WHERE NOT internal AND function_type IN ('macro', 'table_macro') ORDER BY 1"
    ).fetchall()
    return [
        *(Relation(name, "table", comment, columns[name]) for name, comment in tables),
        *(Relation(name, "view", comment, columns[name]) for name, comment in views),
        *(Relation(name, "macro", comment, parameters=list(given)) for name, comment, given in macros),
    ]


def _type(sql: str) -> str:
    """The words of an ENUM made from data are thousands: its name says enough."""
    return "ENUM" if sql.startswith("ENUM") else sql
