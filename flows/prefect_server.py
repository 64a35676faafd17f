"""A Prefect server of our own for the schedules, on loopback: the temporary one of a flow has no scheduler."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

from fitmart.estimator.errors import FitmartError

HOST = "127.0.0.1"
START_S = 120.0  # a first start makes its database
API_URL = "PREFECT_API_URL"


class PrefectServerError(FitmartError):
    """Prefect's server did not start; the message says where it was to."""


@contextmanager
def prefect_server(port: int) -> Iterator[str]:
    """The address of an API with a scheduler, in PREFECT_API_URL as well: the user's own, else one started here.

    Call settings.quiet_prefect before, and import Prefect after. It ends with the block.
    """
    if theirs := os.environ.get(API_URL):
        yield theirs
        return
    url = f"http://{HOST}:{port}/api"
    if _answers(url):
        raise PrefectServerError(f"{url} is taken: choose another --port, or set {API_URL} to use that server")
    arguments = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
    arguments += ["--host", HOST, "--port", str(port), "--log-level", "error", "--lifespan", "on"]
    server = subprocess.Popen(arguments, start_new_session=True)  # Ctrl+C is for us: flow runs end first
    try:
        _wait(server, url)
        os.environ[API_URL] = url
        yield url
    finally:
        os.environ.pop(API_URL, None)
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(server: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + START_S
    while not _answers(url):
        if server.poll() is not None or time.monotonic() > deadline:
            raise PrefectServerError(f"Prefect's server did not start at {url}: is the port taken?")
        time.sleep(0.25)


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
