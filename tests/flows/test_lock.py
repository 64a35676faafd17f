import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from fitmart.flows.lock import LockHeldError, current_holder, refresh_lock
from fitmart.warehouse.errors import StorageError

HOLD = """
import sys, time
from pathlib import Path
from fitmart.flows.lock import refresh_lock
with refresh_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def hold(tmp_path):
    """Start another process that holds the lock for some seconds."""
    started = []

    def start(seconds: float) -> subprocess.Popen:
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path), str(seconds)], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"held\n"
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_lock_names_its_holder(tmp_path, hold):
    other = hold(30)
    with pytest.raises(LockHeldError) as refused, refresh_lock(tmp_path):
        pass
    assert f"process {other.pid} on {socket.gethostname()}, since 20" in str(refused.value)
    assert current_holder(tmp_path).pid == other.pid


def test_a_second_refresh_can_wait(tmp_path, hold):
    hold(0.5)
    start = time.monotonic()
    with refresh_lock(tmp_path, wait_s=20) as unfinished:
        assert unfinished is None
        assert current_holder(tmp_path).pid == os.getpid()
    assert time.monotonic() - start > 0.2
    assert current_holder(tmp_path) is None


def test_a_killed_holder_leaves_no_lock_and_is_named_to_the_next(tmp_path, hold):
    other = hold(30)
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert current_holder(tmp_path) is None
    with refresh_lock(tmp_path) as unfinished:
        assert unfinished.pid == other.pid
    with refresh_lock(tmp_path) as unfinished:
        assert unfinished is None


def test_the_lock_is_released_by_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), refresh_lock(tmp_path):
        raise ZeroDivisionError
    with refresh_lock(tmp_path) as unfinished:
        assert unfinished is None


@pytest.mark.parametrize("text", ["", "nonsense", '{"pid": 1}', "[]"])
def test_a_lock_file_with_other_text_does_no_harm(tmp_path, text):
    (tmp_path / "refresh.lock").write_text(text)
    with refresh_lock(tmp_path) as unfinished:
        assert unfinished is None


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot create the folder"), refresh_lock(tmp_path / "file" / "data"):
        pass
