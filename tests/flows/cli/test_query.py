import csv
import io
import json
import subprocess
import sys

import polars as pl
import pytest
import tiny_catalog

from fitmart.flows.cli import main

SQL = "SELECT gpu_id, memory_bytes FROM gpu ORDER BY memory_bytes"
ROWS = [("nvidia-rtx-4090", 25_757_220_864), ("nvidia-h100-sxm", 85_520_809_984), ("amd-mi300x", 205_822_885_888)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_catalog.published(tmp_path_factory.mktemp("data"))


@pytest.fixture
def run(data, capsys):
    """Run `fitmart query`: exit code, standard output, standard error."""

    def query(*arguments, data_dir=data):
        with pytest.raises(SystemExit) as stopped:
            main(["query", "--data-dir", str(data_dir), *arguments])
        told = capsys.readouterr()
        return stopped.value.code or 0, told.out, told.err

    return query


def test_table(run):
    code, out, err = run(SQL)
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[2:]] == [[g, str(m)] for g, m in ROWS]


def test_csv(run):
    code, out, _ = run(SQL, "--format", "csv")
    assert code == 0
    assert [tuple(r.values()) for r in csv.DictReader(io.StringIO(out))] == [(g, str(m)) for g, m in ROWS]


def test_json(run):
    _, out, _ = run(SQL, "--format", "json")
    assert [tuple(r.values()) for r in json.loads(out)] == ROWS


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.json"])
def test_files_are_written_whole_in_the_form_of_their_suffix(run, tmp_path, name):
    out = tmp_path / name
    assert run(SQL, "-o", str(out)) == (0, "", "")
    read = {".parquet": pl.read_parquet, ".csv": pl.read_csv, ".json": pl.read_json}[out.suffix]
    assert read(out).with_columns(pl.col("gpu_id").cast(pl.String)).rows() == ROWS
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_statement_from_a_file(run, tmp_path):
    (tmp_path / "q.sql").write_text(f"-- which?\n{SQL};\n", encoding="utf-8")
    assert run("-f", str(tmp_path / "q.sql"))[1] == run(SQL)[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "give one statement"),
        ((SQL, "-f", "-"), 2, "give one statement"),
        ((SQL, "--format", "parquet"), 2, "needs -o FILE"),
        ((SQL, "--format", "xml"), 2, "Invalid value for '--format'"),
        ((SQL, "--timeout", "0"), 2, "Invalid value for '--timeout'"),
        (("-f", "no-such-file.sql"), 2, "No such file"),
        (("SELECT nope FROM gpu",), 1, 'fitmart: Referenced column "nope" not found'),
        (("DROP TABLE fit",), 1, "fitmart: only queries are answered"),
        (("SELECT 1 AS a, 2 AS a", "--format", "json"), 1, "fitmart: two columns are named a"),
    ],
)
def test_wrong_use_and_wrong_statements(run, arguments, code, message):
    got, out, err = run(*arguments)
    assert got == code
    assert message in err
    assert out == ""
    assert "Traceback" not in err


def test_a_file_that_cannot_be_written_leaves_nothing(run, tmp_path):
    (tmp_path / "file").touch()
    code, _, err = run(SQL, "-o", str(tmp_path / "file" / "out.csv"))
    assert code == 1
    assert err.startswith("fitmart: cannot create the folder ")
    assert err.count("\n") == 1


def test_a_failed_query_leaves_the_old_file(run, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    for name in ("csv", "json", "parquet"):
        assert run("SELECT error('late') FROM gpu", "-o", str(out), "--format", name)[0] == 1
    assert out.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_no_catalog(run, tmp_path):
    code, out, err = run(SQL, data_dir=tmp_path / "nowhere")
    assert (code, out) == (1, "")
    assert err.startswith("fitmart: no catalog at ")


def test_neither_prefect_nor_polars_is_imported(data):
    code = (
        "import sys; from fitmart.flows.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as stop: assert not stop.code\n"
        "print(sorted({'prefect', 'polars', 'huggingface_hub', 'pyarrow', 'pydantic'} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, "query", "--data-dir", str(data), "SELECT 1 AS one"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_has_enough_is_no_error(data):
    told = subprocess.run(
        f"{sys.executable} -c 'from fitmart.flows.cli import main; main()' query --data-dir {data} --format csv "
        "'SELECT a.range FROM range(200000) a' | head -1",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.stdout == "range\n"
    assert told.stderr == ""
