"""A build killed at twenty instants: readers always find a whole catalog, and the next run leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing

from fitmart.warehouse.connection import connect

INSTANTS = 20
# Two catalogs that differ, so that every run has something to publish.
ONE, TWO = {"openai-community/gpt2"}, {"openai-community/gpt2", "BAAI/bge-m3"}


def start(data_dir, models):
    include = [word for model in sorted(models) for word in ("--include", model)]
    command = [sys.executable, "-c", "from fitmart.flows.cli import main; main()", "build", "--data-dir", str(data_dir)]
    return subprocess.Popen(
        [*command, *include], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def finish(data_dir, models):
    started = time.monotonic()
    process = start(data_dir, models)
    error = process.communicate(timeout=120)[1]
    assert process.returncode == 0, error.decode()
    return time.monotonic() - started


def published(data_dir):
    """The models of the catalog that readers get; every table is there and the checks' counts agree."""
    with closing(connect(data_dir)) as con:
        rows = dict(
            con.execute("SELECT unnest(map_keys(row_counts)), unnest(map_values(row_counts)) FROM build").fetchall()
        )
        assert con.execute("SELECT count(*) FROM fit").fetchall() == [(rows["fit"],)]
        assert con.execute("SELECT count(*) FROM cost").fetchall() == [(rows["cost"],)]
        return {model for (model,) in con.execute("SELECT model_id FROM model").fetchall()}


def leftovers(data_dir):
    names = [p.name for p in data_dir.rglob("*")]
    return [n for n in names if n.startswith(".tmp-") or ".building" in n or n.endswith(".wal")]


def test_a_killed_build_leaves_the_old_or_the_new_catalog(tmp_path):
    data_dir = tmp_path / "data"
    finish(data_dir, ONE)
    whole = finish(data_dir, TWO)
    outcomes = set()
    for instant in range(INSTANTS):
        before = published(data_dir)
        wanted = ONE if before == TWO else TWO
        process = start(data_dir, wanted)
        time.sleep(whole * (instant + 1) / INSTANTS)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        after = published(data_dir)
        assert after in (before, wanted)
        outcomes.add(after == wanted)
    finish(data_dir, ONE if published(data_dir) == TWO else TWO)
    assert leftovers(data_dir) == []
    assert False in outcomes  # some were killed at work
