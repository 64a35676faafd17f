"""SIGKILL of a whole harvest, Prefect and all: what has landed stays, its server goes, the next run goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers.hub_server import HubServer
from servers.loopback import Answer

from fitmart.flows.landing import list_newest
from fitmart.flows.lock import current_holder
from fitmart.flows.prefect_home import find_orphans

HARVEST = """
import sys
from fitmart.flows.harvest import harvest
from fitmart.flows.lock import refresh_lock
from fitmart.flows.settings import Settings
settings = Settings.from_environment()
with refresh_lock(settings.data_dir) as unfinished:
    print("after", unfinished and unfinished.pid)
    for run in harvest(settings, only=["huggingface", "local-models"]):
        print(run.source_id, run.status, run.added, run.reason)
"""
MODELS = 200


@pytest.fixture
def server():
    with HubServer() as running:
        for number in range(MODELS):
            running.add(f"acme/m{number:03}", config={"model_type": "llama", "n": number}, downloads=MODELS - number)
        yield running


def start(data_dir: Path, server: HubServer, output: Path) -> subprocess.Popen:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "FITMART_", "HF_"))
    }
    environ |= {
        "FITMART_DATA_DIR": str(data_dir),
        "FITMART_HUB_ENDPOINT": server.url,
        "FITMART_HUB_TOP": str(MODELS),
        "FITMART_HTTP_TIMEOUT_S": "120",
    }
    with output.open("w") as out:  # no pipe: the server that is left behind would hold it open
        return subprocess.Popen([sys.executable, "-W", "default", "-c", HARVEST], env=environ, stdout=out, stderr=out)


def test_a_killed_harvest_leaves_nothing_behind_but_what_has_landed(tmp_path, server):
    hung = f"/acme/m150/resolve/{server.repositories['acme/m150'].sha}/config.json"
    server.faults[hung] = [Answer(200, wait_s=60)]
    first = start(tmp_path, server, tmp_path / "first")
    deadline = time.monotonic() + 100
    while f"GET {hung}" not in server.hits or server.busy > 1:
        assert first.poll() is None, (tmp_path / "first").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert current_holder(tmp_path).pid == first.pid
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert len(find_orphans(tmp_path / "prefect")) == 1
    landed = {name for name in list_newest(tmp_path / "landing", "huggingface") if name.startswith("acme/")}
    assert 64 <= len(landed) < MODELS

    server.hits.clear()
    start(tmp_path, server, tmp_path / "second").wait(timeout=120)
    lines = (tmp_path / "second").read_text().splitlines()
    assert lines == [f"after {first.pid}", f"huggingface ok {MODELS - len(landed)} ", "local-models ok 0 "]
    assert len([request for request in server.file_requests() if "/acme/" in request]) == MODELS - len(landed)
    assert find_orphans(tmp_path / "prefect") == []
