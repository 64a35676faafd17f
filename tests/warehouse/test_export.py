import csv
import hashlib
import json

import polars as pl
import pytest
import tiny_catalog

from fitmart.warehouse.errors import CatalogError
from fitmart.warehouse.export import export


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_catalog.published(tmp_path_factory.mktemp("data"))


def test_parquet_holds_every_table_as_it_is(data, tmp_path):
    written = export(data, tmp_path)
    assert {w.name for w in written} >= {"fit", "offer", "source", "build"}
    fit = pl.read_parquet(tmp_path / "fit.parquet")
    assert fit.select(pl.col("gpu_id").cast(pl.String)).rows() == tiny_catalog.FRAMES["fit"].select("gpu_id").rows()
    assert {w.name: w.rows for w in written}["fit"] == 11
    assert not list(tmp_path.glob(".tmp*"))


def test_csv_of_some_tables_and_views(data, tmp_path):
    export(data, tmp_path, file_format="csv", tables=["gpu_overview", "gpu"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["datapackage.json", "gpu.csv", "gpu_overview.csv"]
    with (tmp_path / "gpu_overview.csv").open(newline="") as file:
        memory = {row["gpu_id"]: row["memory_gib"] for row in csv.DictReader(file)}
    assert memory["nvidia-h100-sxm"] == "79.65"  # 81,559 MiB


def test_the_data_package_describes_every_column(data, tmp_path):
    export(data, tmp_path)
    package = json.loads((tmp_path / "datapackage.json").read_text())
    assert package["created"] == "2026-12-01T12:00:00Z"
    assert {s["title"] for s in package["sources"]} >= {"Hugging Face"}
    resources = {r["name"]: r for r in package["resources"]}
    for resource in resources.values():
        file = tmp_path / resource["path"]
        assert resource["hash"] == "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()
        assert resource["bytes"] == file.stat().st_size
        assert [f["name"] for f in resource["schema"]["fields"]] == pl.read_parquet_schema(file).names()
        assert all(f["description"] for f in resource["schema"]["fields"])
    fields = {f["name"]: f for f in resources["fit"]["schema"]["fields"]}
    assert fields["required_bytes"]["type"] == "integer"
    assert fields["required_bytes"]["unit"] == "bytes"
    assert fields["verdict"]["type"] == "string"


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_the_same_catalog_gives_the_same_bytes(data, tmp_path, file_format):
    for name in ("a", "b"):
        export(data, tmp_path / name, file_format=file_format)
    files = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)


def test_bad_names_and_places(data, tmp_path):
    with pytest.raises(CatalogError, match="no table or view fits, tables: there are api_price, "):
        export(data, tmp_path, tables=["fits", "fit", "tables"])
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="cannot create the folder"):
        export(data, tmp_path / "file")
    with pytest.raises(CatalogError, match="no catalog at"):
        export(tmp_path, tmp_path / "out")
