"""Speeds: sums by hand with plain factors, what must hold for any workload, and published measurements."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitmart.estimator.frames import conform
from fitmart.estimator.speed import BANDS, KINDS, widen, with_speed
from fitmart.estimator.speed_terms import HOST_BYTES_PER_S, PIPELINE_SHARE, TERMS
from fitmart.estimator.workload import WORKLOAD_SCHEMA

SEEDS = Path(__file__).resolve().parents[2] / "warehouse" / "seeds"
MEASURED = widen(pl.read_csv(SEEDS / "speed_coefficient.csv", infer_schema_length=None))

PLAIN: dict[str, object] = {
    "engine_id": "vllm", "era": "current", "device_class": "nvidia-hbm", "weight_bits": 16,
    "dense_bytes": 16e9, "expert_bytes": 0.0, "dense_params": 7.5e9, "head_params": 0.5e9, "expert_params": 0.0,
    "experts": 0, "experts_per_token": 0, "host_share": 0.0, "host_expert_share": 0.0, "hidden_size": 4096,
    "blocks": 32.0, "moe_blocks": 0, "heads_per_kv_head": 4.0, "kv_read_bytes": 1e8, "score_pairs": 1e9,
    "attention_flop": 1e12, "bandwidth_bytes_per_s": 2e12, "peak_flop_per_s": 4e14, "attention_flop_per_s": 4e14,
    "gpus": 1, "link_bytes_per_s": 1e11, "kv_gpus": 1, "stages": 1, "replicas": 1, "chunk_tokens": 8192, "batch": 1,
    "throughput_batch": 1, "input_tokens": 1000, "output_tokens": 100, "cached_tokens": 0,
}  # fmt: skip


def workload(*changes: dict[str, object]) -> pl.DataFrame:
    rows = [PLAIN | change for change in changes or ({},)]
    return conform(pl.DataFrame(rows, schema=WORKLOAD_SCHEMA), WORKLOAD_SCHEMA, stage="test")


def only(**factors: float) -> pl.DataFrame:
    """Coefficients of one pool for everything, 0 but for those named, with bands of ×½ and ×2."""
    values = dict.fromkeys(TERMS, 0.0) | factors
    values |= {b: 0.5 if b.startswith("band_low") else 2.0 for b in BANDS}
    keys = {"engine_id": "any", "era": "current", "device_class": "any"}
    return widen(pl.DataFrame([keys | {"term": t, "value": v} for t, v in values.items()]))


def decode_s(row: dict[str, object], **factors: float) -> float:
    return 1 / with_speed(workload(row), only(**factors))["decode_tokens_per_s"].item()


def prefill_s(row: dict[str, object], **factors: float) -> float:
    return with_speed(workload(row), only(**factors))["ttft_ms"].item() / 1e3


MOE = {"dense_bytes": 2e9, "expert_bytes": 64e9, "expert_params": 32e9, "dense_params": 1e9, "experts": 8,
       "experts_per_token": 2, "moe_blocks": 32}  # fmt: skip

OLD = {"engine_id": "llama.cpp", "era": "old"}


@pytest.mark.parametrize(
    ("row", "factors", "want"),
    [
        ({}, {"w16": 1.0}, 16e9 / 2e12),
        ({"weight_bits": 4}, {"w16": 1.0, "w4": 2.0}, 2 * 16e9 / 2e12),
        ({"gpus": 4}, {"w16": 1.0}, 16e9 / 8e12),
        ({"batch": 8}, {"kv": 1.0}, 8 * 1e8 / 2e12),
        ({"gpus": 8, "kv_gpus": 4}, {"kv": 1.0}, 1e8 / 8e12),  # 4 KV heads on 8 GPUs: each head twice
        ({}, {"kvq": 1.0}, 3 * 1e8 / 2e12),  # three more query heads to each KV head
        ({"engine_id": "llama.cpp"}, {"kvq": 1.0, "B": 1.0}, 1.0),  # shares what it has read
        ({"batch": 4}, {"fl": 1.0}, 4 * 2 * 8e9 / 4e14),
        ({}, {"L": 1e-3}, 32e-3),
        (OLD, {"L": 1e-3, "Lo": 1e-3}, 64e-3),
        (MOE, {"w16": 1.0}, (2e9 + 64e9 / 4) / 2e12),  # 2 of 8 experts
        (MOE | {"batch": 2}, {"w16": 1.0}, (2e9 + 64e9 * (1 - 0.75**2)) / 2e12),
        (MOE | {"host_expert_share": 1.0}, {"w16": 1.0}, 2e9 / 2e12 + 16e9 / HOST_BYTES_PER_S),
        ({"gpus": 2}, {"arb": 1.0}, 4 * 4096 * 32 / 1e11),  # two all-reduces a layer of 2 bytes × hidden
        ({"batch": 10, "replicas": 5}, {"B": 1.0}, 2.0),
    ],
)
def test_a_step_is_the_sum_of_its_terms(row: dict[str, object], factors: dict[str, float], want: float) -> None:
    assert decode_s(row, **factors) == pytest.approx(want)


@pytest.mark.parametrize(
    ("row", "factors", "want"),
    [
        ({}, {"pf16": 1.0}, 2 * 7.5e9 * 1000 / 4e14),  # the head works on the last token only
        ({"weight_bits": 8}, {"pfq": 2.0}, 4 * 7.5e9 * 1000 / 4e14),
        ({}, {"pfa": 1.0}, 1e12 / 4e14),
        ({"input_tokens": 20000}, {"w16": 1.0}, 3 * 16e9 / 2e12),  # three chunks of 8192 read the weights
        (MOE, {"pfm": 1.0}, 2 * 32e9 * 1000 / 4 / 4e14),
        # one token each for 8 of 256 experts: a tile of 32 tokens each
        (MOE | {"experts": 256, "experts_per_token": 8, "input_tokens": 1}, {"pfm": 1.0}, 2 * 32e9 * 32 / 32 / 4e14),
        # two chunks, each of which writes and reads the weights in 2 bytes
        (OLD | {"weight_bits": 4, "chunk_tokens": 512}, {"pfd": 1.0}, 2 * 4 * 7.5e9 / 2e12),
        (OLD, {"pfs": 1.0, "pfa": 1.0}, 16 * 1e9 / 2e12),
        # 16 chunks over 4 groups of layers take (16 + 3) / (16 × 4) of the time where they overlap
        ({"stages": 4, "chunk_tokens": 512, "input_tokens": 8192}, {"pfa": 400.0}, 1 - PIPELINE_SHARE * (1 - 19 / 64)),
    ],
)  # fmt: skip
def test_a_prompt_is_the_sum_of_its_terms(row: dict[str, object], factors: dict[str, float], want: float) -> None:
    assert prefill_s(row, **factors) == pytest.approx(want)


def test_throughput_is_all_users_output_over_the_whole_request() -> None:
    row = with_speed(workload({"throughput_batch": 4}), only(B=0.01, pfa=400.0)).row(0, named=True)
    # prompts: 400 × 1e12 × 4 / 4e14 = 4 s; 100 steps of 4 × 0.01 s
    assert row["throughput_tokens_per_s"] == pytest.approx(4 * 100 / (4 + 4))


def test_a_group_without_measurements_takes_the_pool_and_its_band() -> None:
    rows = workload(
        {"engine_id": "llama.cpp", "device_class": "nvidia-gddr"},
        {"engine_id": "llama.cpp", "device_class": "other"},
        {"engine_id": "new-engine", "device_class": "other"},
    )
    known, other, stranger = with_speed(rows, MEASURED).iter_rows(named=True)
    spread = [r["decode_tokens_per_s_high"] / r["decode_tokens_per_s_low"] for r in (known, other, stranger)]
    assert spread[0] < min(spread[1], spread[2])


def test_an_unknown_rate_leaves_the_speeds_open() -> None:
    row = with_speed(workload({"bandwidth_bytes_per_s": None}), MEASURED).row(0, named=True)
    assert row["decode_tokens_per_s"] is None
    assert row["ttft_ms"] is None


def test_no_prompt_takes_no_time_and_no_output_is_no_throughput() -> None:
    rows = with_speed(workload({"input_tokens": 0, "attention_flop": 0.0}, {"output_tokens": 0}), MEASURED)
    without_prompt, without_output = rows.iter_rows(named=True)
    assert (without_prompt["ttft_ms"], without_prompt["prefill_tokens_per_s"]) == (0, None)
    assert without_prompt["throughput_tokens_per_s"] > 0
    assert without_output["throughput_tokens_per_s"] == 0


SIZES = st.fixed_dictionaries(
    {
        "engine_id": st.sampled_from(["vllm", "sglang", "tensorrt-llm", "llama.cpp", "mlx"]),
        "era": st.sampled_from(["old", "current"]),
        "device_class": st.sampled_from(["nvidia-hbm", "nvidia-gddr", "amd-dc", "amd-gpu", "apple", "other"]),
        "weight_bits": st.sampled_from([4, 8, 16]),
        "dense_bytes": st.floats(1e8, 1e12),
        "kv_read_bytes": st.floats(0, 1e11),
        "input_tokens": st.integers(1, 10**6),
        "output_tokens": st.integers(1, 10**5),
        "throughput_batch": st.integers(1, 256),
        "gpus": st.sampled_from([1, 2, 8]),
    }
)


@settings(max_examples=30, deadline=None)
@given(SIZES)
def test_bands_enclose_and_faster_memory_is_never_slower(sizes: dict[str, object]) -> None:
    slow, fast = with_speed(workload(sizes, sizes | {"bandwidth_bytes_per_s": 3e12}), MEASURED).iter_rows(named=True)
    for name in ("decode_tokens_per_s", "prefill_tokens_per_s", "ttft_ms", "throughput_tokens_per_s"):
        assert 0 < slow[f"{name}_low"] <= slow[name] * 1.2
        assert slow[f"{name}_low"] < slow[f"{name}_high"]
    assert fast["decode_tokens_per_s"] >= slow["decode_tokens_per_s"]
    assert fast["ttft_ms"] <= slow["ttft_ms"]


@settings(max_examples=30, deadline=None)
@given(SIZES)
def test_the_linear_terms_give_back_the_step(sizes: dict[str, object]) -> None:
    users = sizes["throughput_batch"]
    row = with_speed(workload(sizes | {"batch": users}), MEASURED).row(0, named=True)
    context = row["input_tokens"] + row["output_tokens"] / 2
    touched = 1 - (1 - row["experts_per_token"] / row["experts"]) ** users if row["experts"] else 0
    step = row["decode_fixed_s"] + row["decode_experts_s"] * touched
    step += users * (row["decode_s_per_user"] + context * row["decode_s_per_kv_token"])
    assert step == pytest.approx(1 / row["decode_tokens_per_s"], rel=1e-9)


@pytest.mark.parametrize(
    ("limit", "floor", "served"),
    [
        # 16 GB at 2 TB/s are 8 ms; each of n users adds 2 ms: 8 + 2 n ms a step, 100 ms at 46 users.
        (256, 10.0, 46),
        (40, 10.0, 40),
        (256, 1000.0, 1),  # not even one: one is served all the same
        (256, 100.0, 1),
        (256, 50.0, 6),
    ],
)
def test_no_more_users_are_served_than_keep_their_pace(limit: int, floor: float, served: int) -> None:
    row = with_speed(workload({"throughput_batch": limit}), only(w16=1.0, B=0.002), min_user_tokens_per_s=floor)
    assert row["throughput_batch"].item() == served


@settings(max_examples=30, deadline=None)
@given(SIZES, st.floats(1, 100))
def test_one_more_user_would_be_one_too_many(sizes: dict[str, object], floor: float) -> None:
    limit = int(str(sizes["throughput_batch"]))
    served = with_speed(workload(sizes), MEASURED, min_user_tokens_per_s=floor)["throughput_batch"].item()
    paces = [
        with_speed(workload(sizes | {"batch": users}), MEASURED)["decode_tokens_per_s"].item()
        for users in (served, served + 1)
    ]
    assert 1 <= served <= limit
    assert served == 1 or paces[0] >= floor * (1 - 1e-9)
    assert served == limit or paces[1] <= floor * (1 + 1e-9)


def test_every_factor_and_band_of_every_pool_is_there() -> None:
    pool = MEASURED.filter((pl.col("engine_id") == "any") & (pl.col("device_class") == "any"))
    assert pool.height == 1
    assert pool.null_count().sum_horizontal().item() == 0
    low, high = (MEASURED.select(f"band_{side}_{k}" for k in KINDS) for side in ("low", "high"))
    for k in KINDS:
        assert (low[f"band_low_{k}"].drop_nulls() < high[f"band_high_{k}"].drop_nulls()).all()


def test_the_factors_are_what_the_field_knows() -> None:
    """Weights are read at 60 to 100 % of the data sheet's bandwidth by every current engine that was measured."""
    current = MEASURED.filter((pl.col("era") == "current") & (pl.col("device_class") != "any"))
    assert current["w4"].drop_nulls().is_between(1, 1 / 0.6).all()
