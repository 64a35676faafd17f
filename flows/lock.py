"""One refresh at a time. The lock names its holder; a dead one's lock falls to the next by itself.

The lock is the kernel's (flock on `refresh.lock`), so no kill can leave it behind. The file's text says who holds it,
or who held it last and did not finish.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from fitmart.estimator.errors import FitmartError
from fitmart.warehouse.errors import StorageError
from fitmart.warehouse.files import make_folder

FILE = "refresh.lock"
POLL_S = 0.1
GRACE_S = 0.5  # a holder may not have written its name yet, and `current_holder` takes the lock for a moment


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock, or held it: process, machine, since when (ISO 8601, UTC)."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class LockHeldError(FitmartError):
    """Another refresh is at work; the message says whose."""


@contextmanager
def refresh_lock(data_dir: Path, *, wait_s: float = 0.0) -> Iterator[Holder | None]:
    """Hold the lock of `data_dir`; gives the holder before, if it died without finishing.

    Waits up to `wait_s` for another holder, then LockHeldError names it.
    """
    make_folder(data_dir)
    path = data_dir / FILE
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
    try:
        _take(handle, path, wait_s)
        unfinished = _read(path)
        _write(handle, json.dumps(asdict(_myself())))
        try:
            yield unfinished
        finally:
            _write(handle, "")
    finally:
        os.close(handle)  # and with it the lock


def current_holder(data_dir: Path) -> Holder | None:
    """Who holds the lock now; None if it is free."""
    path = data_dir / FILE
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(path)
    finally:
        os.close(handle)
    return None


def _take(handle: int, path: Path, wait_s: float) -> None:
    deadline = time.monotonic() + max(wait_s, GRACE_S)
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(POLL_S)
                continue
        except OSError as error:
            raise StorageError(f"cannot lock {path}: {error.strerror}; its file system has no locks") from error
        holder = _read(path) or "a process that has not written its name"
        raise LockHeldError(f"another refresh holds {path.parent}: {holder}")


def _myself() -> Holder:
    return Holder(os.getpid(), socket.gethostname(), datetime.now(UTC).isoformat(timespec="seconds"))


def _write(handle: int, text: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)
    os.fsync(handle)


def _read(path: Path) -> Holder | None:
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
