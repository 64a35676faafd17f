import os
import subprocess
import sys
import time

import pytest

from fitmart.flows import prefect_home
from fitmart.flows.settings import PREFECT_OWNER

pytestmark = pytest.mark.skipif(not prefect_home.PROC.exists(), reason="servers are found in /proc")

# Looks like Prefect's server to whoever reads its command line.
SERVER = [sys.executable, "-c", "import time; time.sleep(60)", prefect_home.SERVER.decode()]


@pytest.fixture
def serve(tmp_path):
    started = []

    def start(owner: int, home=tmp_path) -> subprocess.Popen:
        process = subprocess.Popen(SERVER, env={"PREFECT_HOME": str(home), PREFECT_OWNER: str(owner)})
        started.append(process)
        while not (prefect_home.PROC / str(process.pid) / "cmdline").read_bytes().startswith(sys.executable.encode()):
            time.sleep(0.01)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_only_a_server_that_lost_its_owner_is_ended(tmp_path, serve):
    lost, mine, other_home = serve(999_999_999), serve(os.getpid()), serve(999_999_999, home=tmp_path / "other")
    assert prefect_home.end_orphans(tmp_path) == [lost.pid]
    assert lost.wait(timeout=10) != 0
    assert (mine.poll(), other_home.poll()) == (None, None)
    assert prefect_home.end_orphans(tmp_path) == []


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setattr(prefect_home, "MAX_DATABASE_BYTES", 100)
    monkeypatch.delitem(sys.modules, "prefect", raising=False)
    for name in prefect_home.OWN_SERVER:
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "prefect.db"
    path.write_bytes(bytes(90))
    path.with_name("prefect.db-wal").write_bytes(bytes(90))
    return path


def test_a_large_database_is_dropped(tmp_path, database):
    assert prefect_home.drop_large_database(tmp_path)
    assert list(tmp_path.glob("prefect.db*")) == []
    assert not prefect_home.drop_large_database(tmp_path)


def test_a_database_in_use_or_of_the_user_s_own_server_is_left_alone(tmp_path, database, serve, monkeypatch):
    server = serve(os.getpid())
    assert not prefect_home.drop_large_database(tmp_path)
    server.kill()
    server.wait()
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    assert not prefect_home.drop_large_database(tmp_path)
    assert database.exists()
