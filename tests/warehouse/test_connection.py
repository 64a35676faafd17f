import subprocess
import sys

import duckdb
import pytest
import tiny_catalog

from fitmart.warehouse import connect
from fitmart.warehouse.connection import open_builder, open_reader
from fitmart.warehouse.errors import CatalogError


def test_connect_reads_the_published_catalog(tmp_path):
    tiny_catalog.published(tmp_path)
    con = connect(tmp_path)
    assert con.sql("SELECT params_total FROM model WHERE model_id LIKE 'Qwen/%'").fetchall() == [(72_706_203_648,)]
    with pytest.raises(duckdb.Error, match="read-only"):
        con.execute("DELETE FROM fit")
    con.close()


def test_reader_and_a_frame_of_the_caller(tmp_path):
    tiny_catalog.published(tmp_path)
    con = open_reader(tmp_path)
    secret = tiny_catalog.FRAMES["gpu"]
    assert secret is not None
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM secret")
    with pytest.raises(duckdb.Error, match="locked"):
        con.execute("SET memory_limit = '8GB'")
    con.close()


def test_missing_catalog(tmp_path):
    with pytest.raises(CatalogError, match=r"no catalog at .*: run `fitmart refresh`"):
        connect(tmp_path)


@pytest.mark.parametrize("damage", ["empty", "text", "header", "blocks"])
def test_damaged_catalog(tmp_path, damage):
    data = tiny_catalog.published(tmp_path)
    path = data / "fitmart.duckdb"
    whole = path.read_bytes()
    path.resolve().write_bytes(
        {
            "empty": b"",
            "text": b"this is no database\n" * 1000,
            "blocks": whole[:12_288] + b"\0" * (len(whole) - 12_288),
            "header": whole[:8] + b"\0" * 5000 + whole[5008:],
        }[damage]
    )
    with pytest.raises(CatalogError, match=r"is not a readable catalog .*fitmart rollback") as caught:
        open_reader(data).execute("FROM build").fetchall()
    assert "\n" not in str(caught.value)


def test_locked_catalog(tmp_path):
    data = tiny_catalog.published(tmp_path)
    code = f"import duckdb; c = duckdb.connect({str(data / 'fitmart.duckdb')!r}); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CatalogError, match="locked by another program"):
            connect(data)
        other.communicate("\n")


def test_the_builder_writes_for_old_clients(tmp_path):
    with open_builder(tmp_path / "x.duckdb") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS i")
        tags = con.sql("SELECT tags FROM duckdb_databases() WHERE database_name = 'catalog'").fetchall()[0][0]
        assert tags["storage_version"] in ("v1.0.0+", "v1.1.0+")
    assert [p.name for p in tmp_path.iterdir()] == ["x.duckdb"]


def test_builder_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="cannot write"), open_builder(tmp_path / "file" / "x.duckdb"):
        pass
