from datetime import UTC, datetime

import duckdb
import polars as pl
import pytest
import tiny_catalog

from fitmart.warehouse import load
from fitmart.warehouse.errors import CatalogError
from fitmart.warehouse.snapshot import read_seed

FITS = tiny_catalog.FRAMES["fit"]


@pytest.fixture
def empty():
    con = duckdb.connect()
    load.create_schema(con, tiny_catalog.FRAMES)
    yield con
    con.close()


def test_missing_columns_are_null_and_order_does_not_matter(empty):
    gpus = tiny_catalog.FRAMES["gpu"].drop("tdp_w")
    load.load_frames(empty, {"gpu": gpus.select(reversed(gpus.columns))})
    assert empty.sql("SELECT name, tdp_w FROM gpu WHERE gpu_id LIKE '%4090%'").fetchall() == [
        ("GeForce RTX 4090", None)
    ]


@pytest.mark.parametrize(
    ("table", "frame", "message"),
    [
        ("fit", FITS.with_columns(colour=pl.lit("red")), "table fit has no column colour"),
        ("fits", FITS, "the catalog has no table fits"),
        ("fit", FITS.drop("verdict"), "table fit: NOT NULL constraint failed: fit.verdict"),
        ("fit", FITS.with_columns(gpu_id=pl.lit("no-such-gpu")), "table fit: Could not convert string 'no-such-gpu'"),
        ("fit", FITS.with_columns(verdict=pl.lit("perhaps")), "table fit: Could not convert string 'perhaps'"),
    ],
)
def test_rows_that_the_table_cannot_hold(empty, table, frame, message):
    with pytest.raises(CatalogError, match=message):
        load.load_frames(empty, {table: frame})


def test_times_are_stored_as_utc(empty):
    runs = tiny_catalog.FRAMES["source_run"].with_columns(
        pl.col("started_at").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    )
    load.load_frames(empty, {"source_run": runs.head(1)})
    assert empty.sql("SELECT started_at FROM source_run").fetchall() == [(datetime(2026, 11, 28),)]


def test_partitions_keep_their_order(empty, tmp_path):
    halves = [FITS.tail(5), FITS.head(6)]
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for half, path in zip(halves, paths, strict=True):
        half.write_parquet(path)
    load.load_partitions(empty, "fit", paths)
    loaded = empty.sql("SELECT required_bytes FROM fit").fetchall()
    assert [row[0] for row in loaded] == pl.concat(halves)["required_bytes"].to_list()


def test_a_partition_with_another_column(empty, tmp_path):
    FITS.rename({"users": "seats"}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(CatalogError, match="table fit has no column seats"):
        load.load_partitions(empty, "fit", [tmp_path / "a.parquet"])


def test_a_catalog_without_offers_answers():
    none = {name: tiny_catalog.FRAMES[name].clear() for name in ("offer", "best_offer")}
    cost = tiny_catalog.FRAMES["cost"].with_columns(on_demand_offer_id=None, spot_offer_id=None)
    con = tiny_catalog.in_memory(**none, cost=cost)
    assert con.sql("FROM cheapest_offers('nvidia-h100-sxm')").fetchall() == []
    assert con.sql("SELECT DISTINCT on_demand_offer_id FROM cost").fetchall() == [(None,)]


def test_build_counts_the_rows():
    con = tiny_catalog.in_memory()
    counts = con.sql("SELECT row_counts['fit'], row_counts['model'], row_counts['build'] FROM build").fetchall()
    assert counts == [(11, 2, 1)]


def test_inputs_hash_changes_with_any_input():
    hashes = {load.inputs_hash(h) for h in ({"a": "1"}, {"a": "2"}, {"a": "1", "b": "1"}, {})}
    assert len(hashes) == 4


def test_built_at_is_stored_as_utc():
    con = duckdb.connect()
    load.create_schema(con, {})
    at = datetime(2026, 12, 1, 9, tzinfo=UTC)
    load.write_build(con, build_id="x", code_version="0", built_at=at, input_hashes={}, build_seconds=0)
    assert con.sql("SELECT built_at FROM build").fetchall() == [(datetime(2026, 12, 1, 9),)]


def test_the_bundled_tables_load():
    tables = ("source", "gpu", "precision", "engine", "engine_default", "engine_support", "provider", "provider_alias")
    seeds = {name: read_seed(name) for name in tables}
    con = duckdb.connect()
    load.create_schema(con, seeds)
    load.load_frames(con, seeds)
    assert con.sql("SELECT count(*) FROM gpu").fetchall()[0][0] == seeds["gpu"].height
