"""`fitmart export`, `status` and `rollback`."""

import json
import shutil

import pytest
import tiny_catalog

from fitmart.flows.cli import main

OLD, NEW = "20261201T110000000Z", "20261201T120000000Z"


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    tiny_catalog.published(data, OLD)
    return tiny_catalog.published(data, NEW)


@pytest.fixture
def data(both, tmp_path):
    return shutil.copytree(both, tmp_path / "data", symlinks=True)


@pytest.fixture
def run(capsys):
    def fitmart(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in arguments])
        told = capsys.readouterr()
        return stopped.value.code or 0, told.out, told.err

    return fitmart


def test_export(run, data, tmp_path):
    code, out, err = run("export", tmp_path / "out", "--data-dir", data, "--format", "csv", "--tables", "fit,gpu")
    assert (code, err) == (0, "")
    assert "fit.csv  11 rows" in out
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["datapackage.json", "fit.csv", "gpu.csv"]


def test_export_of_an_unknown_table(run, data, tmp_path):
    code, out, err = run("export", tmp_path / "out", "--data-dir", data, "--tables", "nope")
    assert (code, out) == (1, "")
    assert err.startswith("fitmart: no table or view nope: there are ")
    assert run("export", tmp_path / "out", "--data-dir", data, "--tables", ",")[0] == 2


def test_status(run, data):
    code, out, err = run("status", "--data-dir", data)
    assert (code, err) == (0, "")
    assert "fit 11" in out
    assert "HTTP 503" in out
    assert OLD in out


def test_status_for_scripts(run, data):
    _, out, _ = run("status", "--json", "--data-dir", data)
    found = json.loads(out)
    assert found["built_at"] == "2026-12-01T12:00:00Z"
    assert found["row_counts"]["fit"] == 11
    assert found["kept_builds"] == [OLD, NEW]
    assert {s["source_id"]: s["is_stale"] for s in found["sources"]}["marketplace"] is True


def test_rollback(run, data):
    assert run("rollback", "--data-dir", data)[0] == 0
    assert json.loads(run("status", "--json", "--data-dir", data)[1])["build_id"] == OLD
    code, out, err = run("rollback", "--data-dir", data)
    assert (code, out) == (1, "")
    assert err == f"fitmart: no build before {OLD} is kept\n"


@pytest.mark.parametrize("command", ["status", "rollback", "export out"])
def test_without_a_catalog(run, tmp_path, command):
    code, out, err = run(*command.split(), "--data-dir", tmp_path / "nowhere")
    assert (code, out) == (1, "")
    assert err.startswith("fitmart: no ")
    assert not (tmp_path / "nowhere").exists()


def test_status_of_a_file_that_is_no_catalog(run, data):
    (data / "fitmart.duckdb").resolve().write_bytes(b"nothing of the kind" * 1000)
    code, out, err = run("status", "--data-dir", data)
    assert (code, out) == (1, "")
    assert "is not a readable catalog" in err
    assert err.count("\n") == 1
