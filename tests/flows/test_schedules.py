"""`fitmart serve` with a real Prefect server on loopback: runs happen, show in its API, and never harm each other."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml
from servers.price_server import serve_prices

from fitmart.flows.lock import current_holder, refresh_lock
from fitmart.flows.sources.prices import gpuhunt
from fitmart.warehouse.checks import run_checks
from fitmart.warehouse.connection import connect

FLOWS = Path(__file__).resolve().parent.parent.parent / "flows"
NOWHERE = "http://127.0.0.1:9"  # discard: nothing listens
OFFER = {
    "instance_name": "zz.h100-1", "location": "eu-north1", "price": "2.50", "cpu": "20", "memory": "160",
    "gpu_count": "1", "gpu_name": "H100", "gpu_memory": "80", "spot": "False", "gpu_vendor": "nvidia",
}  # fmt: skip


class Api:
    """What the Prefect server says."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, path: str, **body):
        request = Request(f"{self._url}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def runs(self, state: str):
        """The scheduled runs that are in that state, latest first."""
        wanted = {"state": {"type": {"any_": [state]}}}
        return [
            r for r in self.ask("flow_runs/filter", flow_runs=wanted, sort="START_TIME_DESC") if r["auto_scheduled"]
        ]


def wait_for(what, seconds=240):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := what():
                return found
        except OSError:
            pass  # the server is not up yet
        time.sleep(0.2)
    raise AssertionError(f"nothing after {seconds} s")


@contextmanager
def serving(data_dir, publishers, tmp_path):
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    mirrors = ",".join(f"{a}={b}" for a, b in (*publishers.mirrors, ("https://", f"{NOWHERE}/")))
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "FITMART_"))}
    environ |= {"FITMART_MIRRORS": mirrors, "FITMART_HTTP_TRIES": "1"}
    environ |= {f"PREFECT_SERVER_SERVICES_SCHEDULER_{name}LOOP_SECONDS": "1" for name in ("", "RECENT_DEPLOYMENTS_")}
    arguments = ["serve", "--every", "2", "--port", str(port), "--data-dir", str(data_dir)]
    program = "from fitmart.flows.cli import main; main()"
    with (tmp_path / "serve.log").open("w") as log:
        served = subprocess.Popen([sys.executable, "-c", program, *arguments], env=environ, stdout=log, stderr=log)
        try:
            yield Api(f"http://127.0.0.1:{port}/api"), served
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait(timeout=60)


def price_of(data_dir):
    with closing(connect(data_dir)) as con:
        rows = con.execute("SELECT usd_per_hour FROM offer WHERE instance_type = 'zz.h100-1'").fetchall()
        assert run_checks(con) == []
    return [float(usd) for (usd,) in rows]


def test_a_scheduled_run_happens_and_an_overlap_harms_nothing(built, tmp_path):
    data_dir = shutil.copytree(built[0], tmp_path / "data", symlinks=True)
    with serve_prices() as publishers:
        for provider in gpuhunt.PROVIDERS:
            publishers.put_gpuhunt(provider, "20261130-7", [OFFER] if provider == "nebius" else [])
        with serving(data_dir, publishers, tmp_path) as (api, served):
            done = wait_for(lambda: api.runs("COMPLETED"))[-1]
            message = done["state"]["message"]
            assert message.startswith("published 20"), message
            assert " ok" in message
            assert price_of(data_dir) == [2.5]

            publishers.put_gpuhunt("nebius", "20261130-8", [OFFER | {"price": "1.25"}])
            with refresh_lock(data_dir, wait_s=60):  # somebody builds by hand while runs fall due
                wait_for(lambda: api.runs("CANCELLED"), 30)
                assert price_of(data_dir) == [2.5]
            wait_for(lambda: price_of(data_dir) == [1.25], 60)
            wanted = {"key": {"any_": ["catalog-changes"]}}
            wait_for(lambda: [a for a in api.ask("artifacts/filter", artifacts=wanted) if "1 cheaper" in a["data"]], 30)
            events = wait_for(
                lambda: api.ask("events/filter", filter={"event": {"prefix": ["fitmart."]}})["events"], 30
            )
            assert {event["event"] for event in events} == {"fitmart.catalog.changed"}
        assert served.returncode is not None
    assert current_holder(data_dir) is None
    assert price_of(data_dir) == [1.25]
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


def test_the_file_for_a_work_pool_says_the_same():
    declared = yaml.safe_load((FLOWS / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    flows = {d["name"]: d["entrypoint"] for d in declared}
    assert flows == {
        "hourly": "fitmart.flows.schedules.refresh_prices",
        "daily": "fitmart.flows.schedules.refresh_models",
    }
    crons = [d["schedules"][0]["cron"] for d in declared]
    text = (FLOWS / "cli" / "serve.py").read_text(encoding="utf-8")
    assert all(f'"{cron}"' in text for cron in crons)
    assert all(d["concurrency_limit"]["limit"] == 1 for d in declared)


def test_a_taken_port_is_one_line(run, tmp_path, monkeypatch):
    monkeypatch.setattr("fitmart.flows.prefect_server._answers", lambda url: True)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr("fitmart.flows.settings.quiet_prefect", lambda settings: None)
    code, out, err = run("serve", "--data-dir", tmp_path, "--port", "4999")
    assert (code, out) == (1, "")
    assert err.startswith("fitmart: http://127.0.0.1:4999/api is taken: ")


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """What a command puts into the environment ends with the test."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
