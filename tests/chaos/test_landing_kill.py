"""SIGKILL at twenty instants of landing and compaction: what was acknowledged is there, whole, and nothing is left."""

import subprocess
import sys
from pathlib import Path

import pytest
from chaos.landing_worker import COMPACT_AFTER, HOURS, SOURCES, contents

from fitmart.flows import manifest
from fitmart.flows.landing import read_all, read_newest
from fitmart.flows.runs import read_runs

KILLS = 20
WORKER = Path(__file__).with_name("landing_worker.py")


def run(*arguments: str) -> list[int]:
    done = subprocess.run([sys.executable, WORKER, *arguments], capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    return [int(line) for line in done.stdout.split()]


def history(root: Path) -> list[tuple]:
    return sorted(
        (source_id, p.landed.name, p.landed.observed_at, p.content)
        for source_id in SOURCES
        for p in read_all(root, source_id)
    )


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> tuple[list[tuple], dict[int, Path]]:
    """The undisturbed history, and a folder for each instant at which a run was killed."""
    root = tmp_path_factory.mktemp("kill")
    (operations,) = run(f"{root / 'whole'}:0")
    instants = [1 + round(i * (operations - 1) / (KILLS - 1)) for i in range(KILLS)]
    folders = {n: root / f"at-{n}" for n in instants}
    assert run(*(f"{folder}:{n}" for n, folder in folders.items())) == []  # none of them came to its end
    return history(root / "whole"), folders


def test_after_a_kill_every_acknowledged_payload_is_there_and_whole(killed):
    whole, folders = killed
    for root in folders.values():
        assert set(history(root)) <= set(whole)
        for line in Path(f"{root}.ack").read_text().splitlines():
            source_id, hour = line.split()
            newest = {p.landed.name: p.content for p in read_newest(root, source_id).payloads}
            at_least = contents(source_id, int(hour))
            assert newest.keys() == at_least.keys()
            assert int(newest["fast"].split()[0]) >= int(hour)
            assert newest["still"] == at_least["still"]


def test_the_next_run_ends_as_if_nothing_had_happened(killed):
    whole, folders = killed
    run(*(f"{folder}:0" for folder in folders.values()))
    for root in folders.values():
        assert history(root) == whole
        assert len({(r.source_id, r.started_at) for r in read_runs(root)}) == HOURS * len(SOURCES)
        for source_id in SOURCES:
            listed = set(manifest.load(root, source_id)["file"])
            assert {p.name for p in (root / source_id / "payload").iterdir()} == listed
            assert len(listed) == len(COMPACT_AFTER)
        assert not list(root.rglob(".tmp-*"))
