import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitmart.warehouse.errors import CatalogError, StorageError
from fitmart.warehouse.marts import Manifest, MartStore, code_hash, frame_hash, partition_key

ROWS = pl.DataFrame({"model_id": ["b/B", "a/A"], "precision_id": ["bf16", "bf16"], "weights_total_bytes": [2, 1]})


@given(st.dictionaries(st.text(min_size=1).map(lambda s: f"i{s}"), st.text() | st.integers() | st.none(), max_size=4))
def test_a_key_depends_on_every_input_and_not_on_their_order(inputs):
    key = partition_key(**inputs)
    assert key == partition_key(**dict(reversed(inputs.items())))
    assert all(key != partition_key(**(inputs | {name: "another value"})) for name in inputs)
    assert key.isalnum()


def test_a_frame_is_known_by_its_rows():
    chunked = pl.concat([ROWS.head(1), ROWS.tail(1)], rechunk=False)
    assert frame_hash(ROWS) == frame_hash(chunked)
    others = [ROWS.reverse(), ROWS.rename({"weights_total_bytes": "x"}), ROWS.cast({"weights_total_bytes": pl.Int32})]
    assert len({frame_hash(f) for f in (ROWS, *others)}) == 4
    assert partition_key(gpus=ROWS) != partition_key(gpus=ROWS.reverse())


def test_code_is_known_by_its_files(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    before = code_hash(tmp_path)
    (tmp_path / "notes.txt").write_text("no code")
    assert code_hash(tmp_path) == before
    (tmp_path / "a.py").write_text("x = 2\n")
    assert code_hash(tmp_path) != before


def test_partitions_are_sorted_and_estimates_rounded(tmp_path):
    store = MartStore(tmp_path)
    key = ["model_id", "precision_id", "engine_id", "gpu_id", "gpu_count", "context_tokens"]
    cost = pl.DataFrame([["b", "p", "e", "g", 1, 8192], ["a", "p", "e", "g", 1, 8192]], schema=key, orient="row")
    cost = cost.with_columns(usd_per_hour=12.34567, usd_per_mtok=0.0012345678)
    store.write("cost", "k1", cost)
    assert store.has("cost", "k1")
    assert not store.has("cost", "k2")
    rows = store.read("cost", "k1").select("model_id", "usd_per_hour", "usd_per_mtok").collect().rows()
    assert rows == [("a", 12.34567, 0.001235), ("b", 12.34567, 0.001235)]


def test_garbage_is_what_no_kept_build_names(tmp_path):
    store = MartStore(tmp_path)
    for key in ("one", "two", "three"):
        store.write("footprint", key, ROWS)
    (tmp_path / "footprint" / ".tmp-99-dead.parquet").touch()
    store.save_manifest(Manifest("b1", {"footprint": ["one"]}))
    store.save_manifest(Manifest("b2", {"footprint": ["two", "one"]}))
    store.save_manifest(Manifest("b3", {"footprint": ["two"]}))
    assert [p.stem for p in store.paths(store.manifest("b2"), "footprint")] == ["two", "one"]
    store.collect_garbage(["b2", "b3"])
    assert sorted(p.name for p in (tmp_path / "footprint").iterdir()) == ["one.parquet", "two.parquet"]
    assert sorted(p.stem for p in (tmp_path / "manifests").iterdir()) == ["b2", "b3"]
    store.collect_garbage(["b3"])
    assert [p.stem for p in (tmp_path / "footprint").iterdir()] == ["two"]


def test_lost_files_are_named(tmp_path):
    store = MartStore(tmp_path)
    store.save_manifest(Manifest("b1", {"fit": ["gone"]}))
    with pytest.raises(CatalogError, match=r"gone\.parquet is missing"):
        store.paths(store.manifest("b1"), "fit")
    with pytest.raises(CatalogError, match="no readable manifest"):
        store.manifest("b2")
    (tmp_path / "manifests" / "b3.json").write_text(json.dumps(["not", "a", "manifest"]))
    with pytest.raises(CatalogError, match="no readable manifest"):
        store.manifest("b3")


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_a_cut_file_is_not_there(tmp_path, kept):
    store = MartStore(tmp_path)
    path = store.write("footprint", "k", ROWS)
    assert store.has("footprint", "k")
    path.write_bytes(path.read_bytes()[:kept])
    assert not store.has("footprint", "k")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(tmp_path):
    store = MartStore(tmp_path)
    store.path("footprint", "k").parent.mkdir()
    store.path("footprint", "k").symlink_to("/dev/full")
    with pytest.raises(StorageError, match="No space left on device") as raised:
        store.write("footprint", "k", ROWS)
    assert "\n" not in str(raised.value)
