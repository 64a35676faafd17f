"""Files that a kill or a power cut leaves whole: temporary name, fsync, rename, fsync of the folder."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fitmart.warehouse.errors import CatalogError

TEMPORARY = ".tmp-"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; on leaving without error it takes that name, durably.

    Raises CatalogError where the folder cannot be written; `path` is then as it was.
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{uuid.uuid4().hex[:8]}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        sync_file(temporary)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise CatalogError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Wait until the bytes of `path` are on the disk."""
    with path.open("rb+") as handle:
        os.fsync(handle.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames and removals in `folder` durable, where the system can open folders."""
    with suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of killed runs. Only for the one writer of `folder`."""
    for leftover in folder.glob(f"{TEMPORARY}*"):
        leftover.unlink(missing_ok=True)
