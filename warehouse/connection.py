"""Connections to the catalog: readers that cannot write, and the builder of a new file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from fitmart.warehouse.errors import CatalogError, one_line

CATALOG = "fitmart.duckdb"
STORAGE_VERSION = "v1.1.0"  # opens in DuckDB clients from 1.1 on

Config = dict[str, str | bool | int | float | list[str]]

_NO_EXTENSIONS: Config = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}


def catalog_path(place: Path | str) -> Path:
    """A data folder, or a .duckdb file itself → the catalog's real path (not the link to it).

    A process that reads for long sees a newer catalog by asking again: the real path differs.
    """
    path = Path(place)
    if path.suffix != ".duckdb":
        path = path / CATALOG
    if not path.exists():
        raise CatalogError(f"no catalog at {path}: run `fitmart refresh` (or `fitmart build`) first")
    return Path(os.path.realpath(path))


def connect(place: Path | str = "data") -> duckdb.DuckDBPyConnection:
    """The catalog, read-only, for your own Python: `connect("data").sql("FROM fit LIMIT 5").pl()`.

    place: the data folder or a .duckdb file. Raises CatalogError where it is missing, locked or damaged.
    """
    return _open(catalog_path(place), {})


def open_reader(
    place: Path | str, *, memory: str = "1GB", threads: int = 2, spill: str = "0B"
) -> duckdb.DuckDBPyConnection:
    """The catalog for statements of strangers: reads this file and nothing else, and cannot be told otherwise.

    No other files, no network, no extensions, no frames of this process, no settings; `memory` and `spill` (temporary
    files) bound what a statement may use. Raises CatalogError where it is missing, locked or damaged.
    """
    limits: Config = {"memory_limit": memory, "threads": threads, "max_temp_directory_size": spill}
    locked: Config = {"enable_external_access": False, **_NO_EXTENSIONS, **limits}
    con = _open(catalog_path(place), locked)
    con.execute("SET python_enable_replacements = false")
    con.execute("SET lock_configuration = true")
    return con


def _open(path: Path, config: Config) -> duckdb.DuckDBPyConnection:
    try:
        return _quiet(duckdb.connect(str(path), read_only=True, config=config))
    except duckdb.Error as error:
        raise CatalogError(_cannot_open(path, error)) from None


def _quiet(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Without DuckDB's own progress bar, which would come between a command's lines."""
    con.execute("SET enable_progress_bar = false")
    return con


def _cannot_open(path: Path, error: duckdb.Error) -> str:
    line = one_line(error)
    if "set lock" in line.lower():
        return f"{path} is locked by another program that writes to it; close that program and try again"
    if "different configuration" in line:
        return f"{path} is open in this process with other settings; close that connection first"
    if isinstance(error, duckdb.IOException) and "permission denied" in line.lower():
        return f"{path} cannot be read: permission denied"
    return f"{path} is not a readable catalog ({line}): `fitmart rollback` or `fitmart build` gives a whole one"


@contextmanager
def open_builder(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A new, empty catalog file at `path`, written in a storage version that old clients read.

    On leaving without error everything is checkpointed into the one file. Raises CatalogError where the folder cannot
    be written.
    """
    con = _quiet(duckdb.connect(config=dict(_NO_EXTENSIONS)))
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            con.execute(f"SET temp_directory = {quoted(f'{path}.tmp')}")
            con.execute(f"ATTACH {quoted(path)} AS catalog (STORAGE_VERSION '{STORAGE_VERSION}')")
        except (OSError, duckdb.Error) as error:
            raise CatalogError(f"cannot write {path}: {one_line(error)}") from None
        con.execute("USE catalog")
        yield con
        con.execute("CHECKPOINT catalog")
        con.execute("USE memory")
        con.execute("DETACH catalog")
    finally:
        con.close()


def quoted(text: str | Path) -> str:
    """A SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"
