"""Files that a kill or a power cut leaves whole: temporary name, fsync, rename, fsync of the folder."""

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fitmart.warehouse.errors import StorageError

TEMPORARY = ".tmp-"


def make_folder(folder: Path) -> None:
    """Create `folder` and what is above it, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    except OSError as error:
        raise StorageError(f"cannot create the folder {folder}: {error.strerror}") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; on leaving without error it takes that name, durably.

    Raises StorageError where the folder cannot be written; `path` is then as it was. A device or a pipe has no content
    to keep whole, and is written as it is.
    """
    if path.exists() and not path.is_file():
        try:
            yield path
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
        return
    make_folder(path.parent)
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{uuid.uuid4().hex[:8]}{path.suffix}")
    try:
        yield temporary
        sync_file(temporary)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
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


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files of `folder`, durably."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)


def append_line(path: Path, line: str) -> None:
    """Append one line in one write. A line torn by an earlier kill is closed first, so that it harms no other."""
    make_folder(path.parent)
    try:
        is_new = not path.exists()
        with path.open("ab+") as handle:
            end = handle.seek(0, os.SEEK_END)
            if end and os.pread(handle.fileno(), 1, end - 1) != b"\n":
                line = "\n" + line
            handle.write(line.encode() + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
        if is_new:
            sync_folder(path.parent)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
