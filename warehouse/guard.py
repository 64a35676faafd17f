"""Statements of strangers: one query, read-only, bounded in time and memory, and one clear line where it is refused."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from fitmart.warehouse.errors import QueryError, one_line

_ANSWERED = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_WORDS = "SELECT, FROM, WITH, VALUES, DESCRIBE, SUMMARIZE, SHOW or EXPLAIN"
_CLOSED = "a query reads the catalog alone: no files, network, extensions, settings or secrets"
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns of a running query, and its rows, which are fetched as they are asked for."""

    names: list[str]
    types: list[str]
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def ask(con: duckdb.DuckDBPyConnection, sql: str, *, seconds: float) -> Iterator[Answer]:
    """Run one query on a connection of `open_reader`; the answer is to be read inside the `with`.

    Raises QueryError with one line: more than one statement, not a query, out of bounds, out of time or memory, wrong.
    """
    statement = _one_query(con, sql)
    with _bounded(con, seconds):
        con.execute(statement)
        columns = con.description or []
        yield Answer([c[0] for c in columns], [str(c[1]) for c in columns], _fetched(con))


@contextmanager
def ask_arrow(con: duckdb.DuckDBPyConnection, sql: str, *, seconds: float) -> Iterator[Any]:
    """As `ask`, for many rows at once: a pyarrow.RecordBatchReader."""
    statement = _one_query(con, sql)
    with _bounded(con, seconds):
        relation = con.sql(statement.query)
        # DuckDB 2 renamed the method.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
        yield reader(_BATCH)


def _fetched(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while batch := con.fetchmany(_BATCH):
        yield from batch


@contextmanager
def _bounded(con: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, con.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.Error as error:
        raise QueryError(_reason(error, seconds=seconds)) from None
    finally:
        timer.cancel()


def _one_query(con: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    try:
        statements = con.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(_reason(error)) from None
    if not statements:
        raise QueryError("no statement given")
    first = statements[0]
    # A PIVOT that must look for its columns is no single query: DuckDB first makes a type of the values.
    if first.type.name in ("MULTI", "CREATE") and re.search(r"\bpivot\b", sql, re.IGNORECASE):
        raise QueryError("PIVOT needs the values it turns into columns: PIVOT … ON column IN ('a', 'b') USING …")
    if len(statements) > 1:
        raise QueryError(f"one statement at a time, not {len(statements)}")
    if first.type not in _ANSWERED:
        raise QueryError(f"only queries are answered ({_WORDS}), not {first.type.name}")
    return first


def _reason(error: duckdb.Error, *, seconds: float | None = None) -> str:
    line = one_line(error)
    if isinstance(error, duckdb.InterruptException):
        return f"stopped after {seconds:g} s: narrow the query, or give it more time (--timeout)"
    if isinstance(error, duckdb.OutOfMemoryException):
        return "the query needs more memory than it may use: narrow it with WHERE, or ask for fewer columns"
    if isinstance(error, duckdb.PermissionException) or "disabled" in line:
        return _CLOSED
    if isinstance(error, duckdb.IOException | duckdb.FatalException | duckdb.InternalException):
        return f"the catalog cannot be read ({line}): `fitmart rollback` or `fitmart build` gives a whole one"
    return line
