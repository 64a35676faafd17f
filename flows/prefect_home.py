"""Prefect's temporary server is a process of its own, and outlives a killed refresh: end what was left behind."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from fitmart.flows.settings import PREFECT_OWNER

PROC = Path("/proc")
SERVER = b"prefect.server.api.server:create_app"


def end_orphans(prefect_home: Path) -> list[int]:
    """End temporary servers of `prefect_home` whose fitmart process is gone; their process ids.

    Only where there is a /proc (Linux). A server whose owner lives, such as that of `fitmart serve`, is left alone.
    """
    ended = []
    for pid in find_orphans(prefect_home):
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
        ended.append(pid)
    return ended


def find_orphans(prefect_home: Path) -> list[int]:
    """Process ids of temporary servers of `prefect_home` that have lost their fitmart process."""
    return [pid for pid, home in _lost_servers() if home == str(prefect_home.resolve())]


def _lost_servers() -> Iterator[tuple[int, str]]:
    for folder in PROC.glob("[0-9]*"):
        try:
            if SERVER not in (folder / "cmdline").read_bytes():
                continue
            variables = (folder / "environ").read_bytes().split(b"\0")
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue  # another user's, or gone
        environ = dict(pair.decode(errors="replace").partition("=")[::2] for pair in variables)
        if environ.get(PREFECT_OWNER, parent) != parent:
            yield int(folder.name), environ.get("PREFECT_HOME", "")
