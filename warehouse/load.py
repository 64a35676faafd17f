"""Fill a new catalog: types and tables from sql/schema, rows from frames and Parquet partitions, then views and macros.

Columns are matched by name. A column that a frame lacks stays null; one that the table lacks is an error, and so is a
key that its dimension does not hold.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path

import duckdb
import polars as pl

from fitmart.warehouse.connection import quoted
from fitmart.warehouse.errors import CatalogError, one_line
from fitmart.warehouse.marts import partition_key
from fitmart.warehouse.sqlfiles import sql_files, sql_hash

SCHEMA_VERSION = 1

# Keys that are ENUM types made from the data: type -> the tables whose column of that name holds all its values.
KEY_TYPES: dict[str, tuple[str, ...]] = {
    "model_id": ("model",),
    "gpu_id": ("gpu",),
    "precision_id": ("precision",),
    "engine_id": ("engine",),
    "offer_id": ("offer",),
}


def create_schema(con: duckdb.DuckDBPyConnection, frames: Mapping[str, pl.DataFrame]) -> None:
    """Types, tables and comments. `frames` by table name: the dimensions in KEY_TYPES give the values of the keys."""
    with _one_commit(con):
        for key in KEY_TYPES:
            _create_key_type(con, key, frames)
        for path in sql_files("schema"):
            con.execute(path.read_text(encoding="utf-8"))


def renew_tables(con: duckdb.DuckDBPyConnection, tables: Collection[str], frames: Mapping[str, pl.DataFrame]) -> None:
    """Make `tables` anew, empty, in a catalog that is filled, and drop its views and macros (`create_views`).

    `frames`: the dimensions among `tables` give the values of their keys anew. Raises CatalogError where a file of
    sql/schema creates some of `tables` and others besides.
    """
    keys = [key for key, dimensions in KEY_TYPES.items() if set(dimensions) <= set(tables)]
    texts = [path.read_text(encoding="utf-8") for path in sql_files("schema")]
    made = {text: set(re.findall(r"^CREATE TABLE (\w+)", text, re.MULTILINE)) for text in texts}
    chosen = [text for text in texts if made[text] & set(tables)]
    if others := sorted(set().union(*(made[text] for text in chosen)) - set(tables)):
        raise CatalogError(f"{', '.join(others)} would be renewed as well")
    with _one_commit(con):
        for kind, name in con.execute(_DERIVED).fetchall():
            con.execute(f"DROP {kind} {name}")
        for table in tables:
            con.execute(f"DROP TABLE {table}")
        for key in keys:
            con.execute(f"DROP TYPE {key}")
            _create_key_type(con, key, frames)
        for text in chosen:
            con.execute(text)


_DERIVED = """
SELECT 'VIEW', view_name FROM duckdb_views() WHERE NOT internal
UNION ALL
SELECT DISTINCT if(function_type = 'macro', 'MACRO', 'MACRO TABLE'), function_name FROM duckdb_functions()
WHERE NOT internal AND function_type IN ('macro', 'table_macro')
"""


def _create_key_type(con: duckdb.DuckDBPyConnection, key: str, frames: Mapping[str, pl.DataFrame]) -> None:
    columns = [frames[t][key].cast(pl.String) for t in KEY_TYPES[key] if t in frames]
    values = sorted({v for c in columns for v in c if v is not None})
    # A type without values breaks queries: a catalog without offers still has to answer.
    con.execute(f"CREATE TYPE {key} AS ENUM ({', '.join(quoted(v) for v in values or [''])})")


def load_frames(con: duckdb.DuckDBPyConnection, frames: Mapping[str, pl.DataFrame]) -> None:
    """Insert every frame into the table of its name, all or none; times become UTC without a zone.

    Raises CatalogError naming table and column or value.
    """
    zoned = pl.selectors.datetime(time_zone="*")
    with _one_commit(con):
        for table, frame in frames.items():
            _must_exist(con, table, frame.columns)
            con.register("incoming", frame.with_columns(zoned.dt.convert_time_zone("UTC").dt.replace_time_zone(None)))
            _insert(con, table, "incoming")
            con.unregister("incoming")


def load_partitions(con: duckdb.DuckDBPyConnection, table: str, paths: Sequence[Path]) -> None:
    """Insert Parquet files, in that order, into a mart. Raises CatalogError naming table and column or value.

    One thread writes whole row groups in the files' order, which halves the size of the catalog; the checkpoint gives
    back what the insert held twice.
    """
    if not paths:
        return
    files = f"read_parquet([{', '.join(quoted(p) for p in paths)}])"
    try:
        names = [str(row[0]) for row in con.execute(f"DESCRIBE SELECT * FROM {files}").fetchall()]
    except duckdb.Error as error:
        raise CatalogError(f"table {table}: {one_line(error)}") from None
    _must_exist(con, table, names)
    threads = con.execute("SELECT current_setting('threads')").fetchall()[0][0]
    con.execute("SET threads = 1")
    try:
        _insert(con, table, files)
        con.execute("CHECKPOINT")
    finally:
        con.execute(f"SET threads = {threads}")


def create_views(con: duckdb.DuckDBPyConnection) -> None:
    """Macros and views with their comments. A file that needs another one waits until that has run."""
    waiting = sql_files("macros") + sql_files("views")
    while waiting:
        later: list[Path] = []
        failures: list[str] = []
        for path in waiting:
            try:
                with _one_commit(con):
                    con.execute(path.read_text(encoding="utf-8"))
            except duckdb.CatalogException as error:
                later.append(path)
                failures.append(f"{path.name}: {one_line(error)}")
        if len(later) == len(waiting):
            raise CatalogError("; ".join(failures))
        waiting = later


def write_build(
    con: duckdb.DuckDBPyConnection,
    *,
    build_id: str,
    code_version: str,
    built_at: datetime,
    input_hashes: Mapping[str, str],
    build_seconds: float,
    as_of_on: date | None = None,
) -> None:
    """The row of `build`, written last: it counts the rows of all tables. `built_at` is UTC."""
    counts = row_counts(con) | {"build": 1}
    con.execute(
        "INSERT INTO build VALUES ($1, $2, $3, $4, $5, $6, MAP($7, $8), $9, MAP($10, $11))",
        [
            build_id,
            SCHEMA_VERSION,
            code_version,
            built_at.replace(tzinfo=None),
            as_of_on,
            inputs_hash(input_hashes),
            list(input_hashes),
            list(input_hashes.values()),
            build_seconds,
            list(counts),
            list(counts.values()),
        ],
    )


def inputs_hash(input_hashes: Mapping[str, str]) -> str:
    """One hash over all inputs and the catalog's SQL: equal to the published one, nothing changed."""
    return partition_key(schema_version=SCHEMA_VERSION, sql=sql_hash(), **input_hashes)


def row_counts(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Rows of each table."""
    tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY table_name").fetchall()
    return {t: con.execute(f"SELECT count(*) FROM {t}").fetchall()[0][0] for (t,) in tables}


@contextmanager
def _one_commit(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All statements or none, and one write to disk for all."""
    con.begin()
    try:
        yield
    except BaseException:
        con.rollback()
        raise
    con.commit()


def _must_exist(con: duckdb.DuckDBPyConnection, table: str, names: Iterable[str]) -> None:
    columns = {
        str(row[0])
        for row in con.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = ?", [table]).fetchall()
    }
    if not columns:
        raise CatalogError(f"the catalog has no table {table}")
    if unknown := [name for name in names if name not in columns]:
        raise CatalogError(f"table {table} has no column {', '.join(unknown)}")


def _insert(con: duckdb.DuckDBPyConnection, table: str, origin: str) -> None:
    try:
        con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM {origin}")
    except duckdb.Error as error:
        raise CatalogError(f"table {table}: {one_line(error)}") from None
