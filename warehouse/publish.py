"""Publish a catalog so that readers always find a whole one, whatever instant a build is killed at.

    <data>/fitmart.duckdb                      a link to the build in use (a plain file where links are not to be had)
    <data>/builds/fitmart-<build_id>.duckdb    the newest builds, whole and checked
    <data>/builds/….building                   a build at work, or what a killed one left

A build runs its checks and is on the disk before it gets its name; the switch is one rename. Only the one process that
refreshes (flows hold the lock) may call `new_build`, `publish` and `rollback`.
"""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import duckdb

from fitmart.warehouse.checks import must_pass
from fitmart.warehouse.connection import CATALOG, connect, open_builder
from fitmart.warehouse.errors import CatalogError, one_line
from fitmart.warehouse.files import TEMPORARY, remove_leftovers, replacing, sync_file, sync_folder

KEPT_BUILDS = 3
_BUILDING = ".building"


def build_id_at(built_at: datetime) -> str:
    """The name of a build begun at that time (UTC): sorts by time."""
    return f"{built_at:%Y%m%dT%H%M%S}{built_at.microsecond // 1000:03d}Z"


def built_at(build_id: str) -> datetime:
    """When the build of that name began (UTC)."""
    return datetime.strptime(build_id + "+0000", "%Y%m%dT%H%M%S%fZ%z")


def build_file(data_dir: Path, build_id: str) -> Path:
    """Where a finished build lies."""
    return data_dir / "builds" / f"fitmart-{build_id}.duckdb"


def build_ids(data_dir: Path) -> list[str]:
    """The finished builds that are kept, oldest first."""
    return sorted(p.stem.removeprefix("fitmart-") for p in (data_dir / "builds").glob("fitmart-*.duckdb"))


@contextmanager
def new_build(
    data_dir: Path, build_id: str, *, base: str | None = None, renewed: Collection[str] | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to fill a new build with; on leaving it is checked, written to disk and named, but not published.

    base: a build to begin with a copy of, of which only the tables `renewed` are checked again; none: an empty one.

    Raises CheckError where a check fails, CatalogError where the folder cannot be written; both leave nothing behind.
    """
    final = build_file(data_dir, build_id)
    building = final.with_name(final.name + _BUILDING)
    if final.exists():
        raise CatalogError(f"build {build_id} exists already")
    remove_unfinished(data_dir)
    try:
        if base is not None:
            shutil.copyfile(build_file(data_dir, base), building)
        with open_builder(building) as con:
            yield con
            must_pass(con, renewed)
        sync_file(building)
        os.replace(building, final)
        sync_folder(final.parent)
    except OSError as error:
        raise CatalogError(f"cannot write {final}: {error.strerror or error}") from None
    except (duckdb.IOException, duckdb.FatalException) as error:  # the disk is full or fails
        raise CatalogError(f"cannot write {final}: {one_line(error)}") from None
    finally:
        remove_unfinished(data_dir)


def publish(data_dir: Path, build_id: str) -> list[str]:
    """Switch readers to that build and drop all but the newest builds; the ids that are kept."""
    _switch(data_dir, build_id)
    current = current_build(data_dir)
    kept = [b for b in build_ids(data_dir) if b == current or b in build_ids(data_dir)[-KEPT_BUILDS:]]
    for old in set(build_ids(data_dir)) - set(kept):
        with suppress(OSError):  # a system that keeps files in use: the next publication drops it
            build_file(data_dir, old).unlink()
    return kept


def rollback(data_dir: Path) -> str:
    """Switch readers to the build before the one in use; its id. Raises CatalogError where none is kept."""
    current = current_build(data_dir)
    older = [b for b in build_ids(data_dir) if current is None or b < current]
    if not older:
        raise CatalogError(f"no build before {current} is kept" if current else f"no build is kept in {data_dir}")
    connect(build_file(data_dir, older[-1])).close()
    _switch(data_dir, older[-1])
    return older[-1]


def current_build(data_dir: Path) -> str | None:
    """Id of the build that readers get; None where there is no readable catalog."""
    link = data_dir / CATALOG
    if link.is_symlink():
        target = Path(os.path.realpath(link))
        return target.stem.removeprefix("fitmart-") if target.exists() else None
    return _published(data_dir, "build_id")


def published_inputs(data_dir: Path) -> str | None:
    """Hash of the inputs of the catalog in use (`build.inputs_sha256`): equal to a new one, nothing is to be done.

    None where there is no readable catalog, so that the next build mends it.
    """
    return _published(data_dir, "inputs_sha256")


def remove_unfinished(data_dir: Path) -> None:
    """Remove what killed builds left. Only for the one writer of the folder."""
    for leftover in (data_dir / "builds").glob(f"*{_BUILDING}*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
    remove_leftovers(data_dir)


def _published(data_dir: Path, column: str) -> str | None:
    try:
        with closing(connect(data_dir)) as con:
            rows = con.execute(f"SELECT {column} FROM build").fetchall()
    except (CatalogError, duckdb.Error):
        return None
    return rows[0][0] if rows else None


def _switch(data_dir: Path, build_id: str) -> None:
    """One rename makes the build the catalog. The link is relative: the data folder can be moved whole."""
    build = build_file(data_dir, build_id)
    if not build.exists():
        raise CatalogError(f"build {build_id} is not kept in {build.parent}")
    link = data_dir / CATALOG
    temporary = data_dir / f"{TEMPORARY}{build.name}"
    try:
        temporary.symlink_to(Path(build.parent.name) / build.name)
    except (OSError, NotImplementedError):
        with replacing(link) as copy:
            shutil.copyfile(build, copy)
        return
    os.replace(temporary, link)
    sync_folder(data_dir)
