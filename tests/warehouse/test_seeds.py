"""The bundled snapshot: keys, references, dates and ranges; and the strict reading of it."""

from datetime import date

import polars as pl
import pytest

from fitmart.estimator.frames import GPU_SCHEMA, conform
from fitmart.estimator.units import GB, GIB, MIB, TERA
from fitmart.warehouse.snapshot import SEED_SCHEMAS, SeedError, read_seed, read_table, seed_names, seeds_hash

SNAPSHOT_ON = date(2026, 12, 1)
OFFER_KEY = ["provider_id", "product_kind", "price_scope", "instance_type", "gpu_name_raw", "gpu_id", "gpu_count"]
OFFER_KEY += ["region", "commitment", "commit_term", "tier", "seller", "source_id", "observed_on"]
KEYS = {
    "source": ["source_id"],
    "gpu": ["gpu_id"],
    "precision": ["precision_id"],
    "engine": ["engine_id"],
    "engine_default": ["engine_id", "since_version", "until_version", "parameter", "condition"],
    "engine_support": ["engine_id", "gpu_ids", "precision_id", "since_version"],
    "provider": ["provider_id"],
    "offer": OFFER_KEY,
    "api_price": ["provider_id", "model_name_raw", "source_id"],
}
NULL_IN_KEY = {
    "since_version",
    "until_version",
    "condition",
    "instance_type",
    "region",
    "commit_term",
    "tier",
    "seller",
}
BASES = {"stored", "measured", "published", "derived", "scaled", "assumed", None}


@pytest.fixture(scope="module")
def gpus() -> pl.DataFrame:
    return read_seed("gpu")


@pytest.fixture(scope="module")
def offers() -> pl.DataFrame:
    return read_seed("offer")


def test_gpu_seed_is_the_frame_of_the_estimator(gpus):
    assert conform(gpus, GPU_SCHEMA, stage="gpu").height == gpus.height


@pytest.mark.parametrize("name", KEYS)
def test_key_is_unique_and_not_null(name):
    frame = read_seed(name)
    assert frame.height
    assert not frame.select(KEYS[name]).is_duplicated().any()
    for column in set(KEYS[name]) - NULL_IN_KEY:
        assert frame[column].null_count() == 0, column


@pytest.mark.parametrize("name", seed_names())
def test_source_and_date_of_every_row(name):
    frame = read_seed(name)
    if "source_id" in frame.columns:
        known = set(read_seed("source")["source_id"])
        assert set(frame["source_id"].drop_nulls()) <= known
    if "observed_on" in frame.columns:
        days = frame["observed_on"]
        assert days.dtype == pl.Date
        assert days.null_count() == 0
        assert date(2019, 1, 1) <= days.min() <= days.max() <= SNAPSHOT_ON


def test_rows_of_what_may_not_ship_are_not_bundled():
    barred = set(read_seed("source").filter(~pl.col("may_ship"))["source_id"])
    for name in seed_names():
        frame = read_seed(name)
        if name != "source" and "source_id" in frame.columns:
            assert not barred & set(frame["source_id"]), name


def test_accelerators_are_many_and_most_are_released(gpus):
    released = gpus.filter("is_released")
    assert released.height >= 155
    assert released["bandwidth_bytes_per_s"].null_count() <= 2  # two cards of which no rate was ever published


# driver totals as nvidia-smi, rocm-smi or the vendors' tools print them, in MiB
DRIVER_MIB = {
    "nvidia-h100-sxm": 81_559,
    "nvidia-a100-sxm-80gb": 81_920,
    "nvidia-h200-sxm": 143_771,
    "nvidia-b200-sxm": 183_359,
    "nvidia-l4": 23_034,
    "nvidia-rtx-4090": 24_564,
    "amd-mi300x": 196_592,
}
# what torch reports on the same cards (vLLM start-up logs), in GiB
TORCH_GIB = {
    "nvidia-h100-sxm": 79.18,
    "nvidia-a100-sxm-80gb": 79.25,
    "nvidia-h200-sxm": 139.72,
    "nvidia-b200-sxm": 178.35,
    "nvidia-l4": 22.05,
    "nvidia-t4": 14.56,
    "nvidia-rtx-3090": 23.58,
    "nvidia-a10g": 21.99,
}


@pytest.mark.parametrize(("gpu_id", "mib"), DRIVER_MIB.items())
def test_driver_memory(gpus, gpu_id, mib):
    assert gpus.row(by_predicate=pl.col("gpu_id") == gpu_id, named=True)["memory_bytes"] == mib * MIB


@pytest.mark.parametrize(("gpu_id", "gib"), TORCH_GIB.items())
def test_torch_memory(gpus, gpu_id, gib):
    row = gpus.row(by_predicate=pl.col("gpu_id") == gpu_id, named=True)
    assert row["torch_memory_bytes"] == pytest.approx(gib * GIB, rel=1e-6)
    assert row["torch_memory_basis"] == "measured"


def test_b200_has_the_hgx_bandwidth(gpus):
    row = gpus.row(by_predicate=pl.col("gpu_id") == "nvidia-b200-sxm", named=True)
    assert row["bandwidth_bytes_per_s"] == 7.7 * TERA


def test_memory_is_near_what_is_marketed(gpus):
    ratio = gpus.select(pl.col("memory_bytes") / (pl.col("marketed_memory_gb") * GB)).to_series()
    assert ratio.is_between(0.88, 1.12).all()


def test_torch_sees_no_more_than_the_driver(gpus):
    share = gpus.select(pl.col("torch_memory_bytes") / pl.col("memory_bytes")).to_series()
    assert share.max() <= 1
    discrete = gpus.filter(~pl.col("is_unified_memory"))
    assert (discrete["torch_memory_bytes"] / discrete["memory_bytes"]).min() > 0.9


def test_unified_memory_has_an_addressable_share_and_one_device(gpus):
    unified = gpus.filter("is_unified_memory")
    assert unified["addressable_share"].is_between(0.5, 1).all()
    assert gpus.filter(~pl.col("is_unified_memory"))["addressable_share"].null_count() == gpus.height - unified.height
    assert unified.filter(pl.col("form_factor") == "SoC")["max_gpu_count"].unique().to_list() == [1]
    # Metal's recommendedMaxWorkingSetSize of an M4 Max with 128 GB: 115448.73 MB (decimal)
    m4 = unified.row(by_predicate=pl.col("gpu_id") == "apple-m4-max-128gb", named=True)
    assert m4["memory_bytes"] * m4["addressable_share"] == pytest.approx(115_448.73e6, rel=2e-3)


def test_rates_are_plausible(gpus):
    assert gpus["bandwidth_bytes_per_s"].drop_nulls().is_between(40e9, 10e12).all()
    for column in (c for c in gpus.columns if c.endswith(("flop_per_s", "op_per_s"))):
        assert gpus[column].drop_nulls().is_between(1e12, 20e15).all(), column
    nvidia = gpus.filter(pl.col("vendor") == "NVIDIA").with_columns(cc=pl.col("compute_capability").cast(pl.Float64))
    assert nvidia.filter(pl.col("cc") < 8)["bf16_flop_per_s"].null_count() == nvidia.filter(pl.col("cc") < 8).height
    assert nvidia.filter(pl.col("cc") < 8.9)["fp8_flop_per_s"].null_count() == nvidia.filter(pl.col("cc") < 8.9).height
    assert nvidia.filter(pl.col("cc") < 10)["fp4_flop_per_s"].null_count() == nvidia.filter(pl.col("cc") < 10).height
    assert nvidia.filter(pl.col("cc") >= 8)["bf16_flop_per_s"].null_count() == 0
    assert nvidia.filter(pl.col("cc") >= 10)["fp4_flop_per_s"].null_count() == 0


def test_rates_are_dense(gpus):
    """H100 SXM: 989.4 TFLOP/s in BF16 (NVIDIA's sheet prints 1,979 with sparsity)."""
    row = gpus.row(by_predicate=pl.col("gpu_id") == "nvidia-h100-sxm", named=True)
    assert row["bf16_flop_per_s"] == pytest.approx(989.4 * TERA)


def test_laptop_parts_are_rows_of_their_own(gpus):
    laptops = gpus.filter(pl.col("form_factor") == "laptop")
    assert laptops.height >= 4
    assert laptops["max_gpu_count"].unique().to_list() == [1]
    for name in ("4060", "5070", "5090"):
        desktop = gpus.row(by_predicate=pl.col("gpu_id") == f"nvidia-rtx-{name}", named=True)
        laptop = gpus.row(by_predicate=pl.col("gpu_id") == f"nvidia-rtx-{name}-laptop", named=True)
        assert laptop["bandwidth_bytes_per_s"] < desktop["bandwidth_bytes_per_s"]


@pytest.mark.parametrize("column", ["memory_basis", "torch_memory_basis", "bandwidth_basis", "flop_basis"])
def test_bases_are_known_words(gpus, column):
    assert set(gpus[column]) <= BASES


def test_offers_are_many_priced_and_known(offers, gpus):
    assert offers.height >= 1000
    assert offers["provider_id"].n_unique() >= 25
    assert (offers["usd_per_hour"] > 0).all()
    assert set(offers["gpu_id"]) <= set(gpus["gpu_id"])
    assert set(offers["provider_id"]) <= set(read_seed("provider")["provider_id"])
    assert set(offers["price_scope"]) == {"instance", "per_gpu", "gpu_only"}
    assert set(offers["product_kind"]) == {"vm", "bare_metal", "managed", "serverless"}
    assert set(offers["commitment"]) == {"on_demand", "spot", "reserved"}
    assert set(offers["date_kind"]) == {"exact", "approx", "matched"}
    counts = offers.select("min_gpu_count", "gpu_count", "max_gpu_count")
    assert (counts["min_gpu_count"] <= counts["max_gpu_count"]).all()
    instances = offers.filter(
        (pl.col("price_scope") == "instance") & ~pl.col("quality_flags").str.contains("min_rental").fill_null(False)
    )
    assert (instances["gpu_count"] == instances["max_gpu_count"]).all()


def test_prices_far_from_the_median_are_flagged(offers):
    each = pl.col("usd_per_hour") / pl.col("gpu_count")
    times = offers.with_columns(times=each / each.median().over("gpu_id"))
    far = times.filter(~pl.col("times").is_between(1 / 8, 8))
    assert far["quality_flags"].str.contains("price_outlier").all()


def test_a_node_price_is_not_a_gpu_price(offers):
    """Spheron sells a GB200 superchip of two GPUs at 9.08; CoreWeave four at 42.00; OCI four at 64."""
    got = offers.filter((pl.col("gpu_id") == "nvidia-gb200") & (pl.col("price_scope") == "instance"))
    each = got.select("provider_id", each=pl.col("usd_per_hour") / pl.col("gpu_count")).unique()
    assert dict(each.iter_rows()) == {"spheron": 4.54, "coreweave": 10.5, "oci": 16.0}


def test_managed_twin_of_a_machine_is_told_apart(offers):
    p5 = offers.filter(pl.col("instance_type").is_in(["p5.48xlarge", "ml.p5.48xlarge"]))
    assert dict(p5.select("instance_type", "product_kind").unique().iter_rows()) == {
        "p5.48xlarge": "vm",
        "ml.p5.48xlarge": "managed",
    }


def test_old_names_of_a_provider_are_merged(offers):
    assert {"datacrunch", "aws-sagemaker"}.isdisjoint(offers["provider_id"])


def test_country_decides_the_eu(offers):
    assert offers.filter(pl.col("country").is_null())["is_eu"].null_count() == offers["country"].null_count()
    assert set(offers.filter("is_eu")["country"]) <= {"FI", "FR", "NL", "SE", "PL", "DE", "RO", "IT", "BG", "ES"}
    assert not set(offers.filter(~pl.col("is_eu"))["country"]) & {"FI", "FR", "NL", "SE", "PL", "DE"}


def test_token_prices():
    prices = read_seed("api_price")
    assert prices.height >= 1500
    assert set(prices["provider_id"]) <= set(read_seed("provider")["provider_id"])
    for column in ("input_usd_per_mtok", "output_usd_per_mtok", "cached_input_usd_per_mtok"):
        assert prices[column].drop_nulls().is_between(0, 700).all()
    v3 = prices.filter(pl.col("model_id") == "deepseek-ai/DeepSeek-V3")
    assert v3["provider_id"].n_unique() >= 3
    assert prices.filter(pl.col("model_name_raw").str.starts_with("gpt-5"))["model_id"].null_count() > 0


def test_every_accelerator_has_engine_support(gpus):
    support = read_seed("engine_support")
    assert set(support["engine_id"]) == set(read_seed("engine")["engine_id"])
    assert set(support["support"]) == {"native", "weight_only", "emulated", "plugin", "unsupported", "unknown"}
    named = set(support["gpu_ids"].str.split("|").explode(empty_as_null=True)) - {"*", "*NVIDIA", "*AMD"}
    assert named == set(gpus["gpu_id"])


# vLLM's documentation and gates; bf16 needs compute capability 8.0, FP8 arithmetic 8.9, FP4 arithmetic 10.0
@pytest.mark.parametrize(
    ("gpu_id", "precision_id", "states"),
    [
        ("nvidia-t4", "bf16", {"unsupported"}),
        ("nvidia-a100-sxm-80gb", "fp8", {"unsupported", "weight_only"}),
        ("nvidia-h100-sxm", "fp8", {"native"}),
        ("nvidia-h100-sxm", "nvfp4", {"weight_only"}),
        ("nvidia-b200-sxm", "nvfp4", {"native"}),
        ("nvidia-tesla-p40", "fp16", {"unsupported"}),
        ("nvidia-rtx-5090-laptop", "awq-int4", {"native"}),
    ],
)
def test_vllm_support(gpu_id, precision_id, states):
    rows = read_seed("engine_support").filter(
        (pl.col("engine_id") == "vllm")
        & (pl.col("precision_id") == precision_id)
        & pl.col("gpu_ids").str.split("|").list.contains(gpu_id)
    )
    assert set(rows["support"]) <= states
    assert rows.height


def test_seeds_hash_is_stable():
    assert seeds_hash() == seeds_hash()
    assert len(seeds_hash()) == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source_id,publisher\n", "seed x.csv line 1: unknown columns []"),
        ("provider_id,alias,color\nverda,datacrunch,red\n", "seed x.csv line 1: unknown columns ['color']"),
        ("", "seed x.csv: not readable as CSV"),
        ("alias,provider_id\na,b,c\n", "seed x.csv: not readable as CSV"),
    ],
)
def test_a_wrong_header_names_the_file(tmp_path, text, message):
    path = tmp_path / "x.csv"
    path.write_text(text)
    name = "source" if "publisher" in text else "provider_alias"
    with pytest.raises(SeedError) as error:
        read_table(path, SEED_SCHEMAS[name])
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("column", "cell", "dtype"),
    [
        ("max_age_hours", "soon", "Int64"),
        ("max_age_hours", "1.5", "Int64"),
        ("may_ship", "yes", "Boolean"),
    ],
)
def test_a_wrong_cell_names_file_line_and_column(tmp_path, column, cell, dtype):
    path = tmp_path / "x.csv"
    good = dict.fromkeys(SEED_SCHEMAS["source"], "") | {"source_id": "a", "may_ship": "true", "max_age_hours": "24"}
    rows = [good, good | {"source_id": "b", column: cell}]
    lines = [",".join(good)] + [",".join(row.values()) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(SeedError, match=rf"^seed x\.csv line 3: {column} is '{cell}', not {dtype}$"):
        read_table(path, SEED_SCHEMAS["source"])


def test_a_missing_seed_is_one_line():
    with pytest.raises(SeedError, match=r"^seed no_such_table\.csv: no such file$"):
        read_seed("no_such_table")
