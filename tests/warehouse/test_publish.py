import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
import tiny_catalog

from fitmart.warehouse import connect, load, publish
from fitmart.warehouse.errors import CatalogError, CheckError

IDS = [f"2026120{day}T120000000Z" for day in range(1, 6)]


def _publish(data: Path, build_id: str) -> None:
    """A checked catalog without rows but its own."""
    with publish.new_build(data, build_id) as con:
        load.create_schema(con, {})
        load.write_build(
            con, build_id=build_id, code_version="0", built_at=tiny_catalog.BUILT_AT, input_hashes={"seeds": build_id},
            build_seconds=1.0,
        )  # fmt: skip
    publish.publish(data, build_id)


def _served(data: Path) -> str:
    con = connect(data)
    try:
        return con.execute("SELECT build_id FROM build").fetchall()[0][0]
    finally:
        con.close()


def test_build_ids_sort_by_time():
    times = [datetime(2026, 12, 1, 9, 0, 0, 5000), datetime(2026, 12, 1, 9, 0, 0, 40000), datetime(2026, 12, 1, 10)]
    ids = [publish.build_id_at(t) for t in times]
    assert ids == sorted(ids) == ["20261201T090000005Z", "20261201T090000040Z", "20261201T100000000Z"]


def test_published_builds_are_kept_three_deep_and_rolled_back(tmp_path):
    assert publish.current_build(tmp_path) is None
    for build_id in IDS:
        _publish(tmp_path, build_id)
        assert _served(tmp_path) == publish.current_build(tmp_path) == build_id
    assert publish.build_ids(tmp_path) == IDS[2:]
    assert publish.rollback(tmp_path) == _served(tmp_path) == IDS[3]
    assert publish.rollback(tmp_path) == _served(tmp_path) == IDS[2]
    with pytest.raises(CatalogError, match=f"no build before {IDS[2]} is kept"):
        publish.rollback(tmp_path)
    assert _served(tmp_path) == IDS[2]


def test_only_the_catalog_and_its_builds_stay(tmp_path):
    _publish(tmp_path, IDS[0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["builds", "fitmart.duckdb"]
    assert os.readlink(tmp_path / "fitmart.duckdb") == f"builds/fitmart-{IDS[0]}.duckdb"
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert _served(moved) == IDS[0]


def test_readers_at_work_go_on_with_the_old_catalog(tmp_path):
    _publish(tmp_path, IDS[0])
    reader = connect(tmp_path)
    for build_id in IDS[1:]:
        _publish(tmp_path, build_id)
    assert reader.execute("SELECT build_id FROM build").fetchall() == [(IDS[0],)]
    assert _served(tmp_path) == IDS[-1]
    reader.close()


def test_a_build_that_fails_its_checks_is_not_published(tmp_path):
    _publish(tmp_path, IDS[0])
    twice = pl.concat([tiny_catalog.FRAMES["fit"]] * 2)
    with pytest.raises(CheckError, match="fit__key_is_unique"), publish.new_build(tmp_path, IDS[1]) as con:
        tiny_catalog.fill(con, build_id=IDS[1], fit=twice)
    assert publish.build_ids(tmp_path) == [IDS[0]]
    assert [p.name for p in (tmp_path / "builds").iterdir()] == [f"fitmart-{IDS[0]}.duckdb"]
    assert _served(tmp_path) == IDS[0]


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path):
    _publish(tmp_path, IDS[0])
    code = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import tiny_catalog\n"
        "from fitmart.warehouse import publish\n"
        "with publish.new_build(Path(sys.argv[2]), sys.argv[3]) as con:\n"
        "    tiny_catalog.fill(con, build_id=sys.argv[3]); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    tests = Path(tiny_catalog.__file__).parent
    killed = subprocess.run([sys.executable, "-c", code, str(tests), str(tmp_path), IDS[1]], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "builds").iterdir())) > 1
    assert _served(tmp_path) == IDS[0]
    _publish(tmp_path, IDS[2])
    assert publish.build_ids(tmp_path) == [IDS[0], IDS[2]]
    assert len(list((tmp_path / "builds").iterdir())) == 2


def test_where_links_are_not_to_be_had_the_catalog_is_a_file(tmp_path, monkeypatch):
    def refused(self, target, target_is_directory=False):
        raise OSError("no links here")

    monkeypatch.setattr(Path, "symlink_to", refused)
    for build_id in IDS[:2]:
        _publish(tmp_path, build_id)
    assert not (tmp_path / "fitmart.duckdb").is_symlink()
    assert publish.current_build(tmp_path) == _served(tmp_path) == IDS[1]
    assert publish.rollback(tmp_path) == publish.current_build(tmp_path) == IDS[0]


def test_inputs_of_the_catalog_in_use(tmp_path):
    assert publish.published_inputs(tmp_path) is None
    _publish(tmp_path, IDS[0])
    first = publish.published_inputs(tmp_path)
    _publish(tmp_path, IDS[1])
    assert first != publish.published_inputs(tmp_path)
    publish.rollback(tmp_path)
    assert publish.published_inputs(tmp_path) == first
    (tmp_path / "fitmart.duckdb").resolve().write_bytes(b"damage")
    assert publish.published_inputs(tmp_path) is None


def test_a_damaged_catalog_is_rolled_back_over(tmp_path):
    for build_id in IDS[:2]:
        _publish(tmp_path, build_id)
    (tmp_path / "fitmart.duckdb").resolve().write_bytes(b"damage")
    assert publish.rollback(tmp_path) == _served(tmp_path) == IDS[0]


def test_bad_places(tmp_path):
    with pytest.raises(CatalogError, match="no build is kept"):
        publish.rollback(tmp_path)
    with pytest.raises(CatalogError, match="is not kept"):
        publish.publish(tmp_path, "nothing")
    _publish(tmp_path, IDS[0])
    with pytest.raises(CatalogError, match="exists already"), publish.new_build(tmp_path, IDS[0]):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="cannot write"), publish.new_build(tmp_path / "file", IDS[0]):
        pass
