"""House-keeping of Prefect's temporary server: what a killed refresh leaves running, and a database that only grows.

The server is a process of its own and outlives its parent's SIGKILL. Its database holds nothing that is read again (our
own records tell what happened), and grows by some 0.3 MB a refresh.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from fitmart.flows.settings import PREFECT_OWNER

PROC = Path("/proc")
SERVER = b"prefect.server.api.server:create_app"
MAX_DATABASE_BYTES = 100 * 1024**2
OWN_SERVER = ("PREFECT_API_URL", "PREFECT_API_DATABASE_CONNECTION_URL", "PREFECT_SERVER_DATABASE_CONNECTION_URL")


def drop_large_database(prefect_home: Path) -> bool:
    """Remove the database if it is large and no server uses it; the next server makes a new one.

    Only for the holder of the refresh lock, before Prefect is imported. What the user runs himself is left alone.
    """
    files = list(prefect_home.glob("prefect.db*"))
    is_used = "prefect" in sys.modules or any(home == str(prefect_home.resolve()) for _, home, _ in _servers())
    is_users = any(os.environ.get(name) for name in OWN_SERVER)
    if is_used or is_users or not PROC.exists() or sum(file.stat().st_size for file in files) < MAX_DATABASE_BYTES:
        return False
    for file in files:
        file.unlink(missing_ok=True)
    return True


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
    return [pid for pid, home, is_lost in _servers() if is_lost and home == str(prefect_home.resolve())]


def _servers() -> Iterator[tuple[int, str, bool]]:
    """Process id, PREFECT_HOME, and whether its fitmart process is gone, of every temporary server there is."""
    for folder in PROC.glob("[0-9]*"):
        try:
            if SERVER not in (folder / "cmdline").read_bytes():
                continue
            variables = (folder / "environ").read_bytes().split(b"\0")
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue  # another user's, or gone
        environ = dict(pair.decode(errors="replace").partition("=")[::2] for pair in variables)
        yield int(folder.name), environ.get("PREFECT_HOME", ""), environ.get(PREFECT_OWNER, parent) != parent
