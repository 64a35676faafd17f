"""The whole budget: KV left as logged, the parts adding up, the refusals, and the settings behind them."""

import polars as pl
import pytest
import vllm_models as m
from hypothesis import given, settings
from hypothesis import strategies as st

A100 = {"gpu_name": "NVIDIA A100 80GB", "device_memory_bytes": int(79.25 * m.GIB), "compute_capability": "8.0"}
H100 = {"gpu_name": "NVIDIA H100 80GB HBM3", "device_memory_bytes": int(79.18 * m.GIB), "compute_capability": "9.0"}
A10G = {"gpu_name": "NVIDIA A10G", "device_memory_bytes": int(21.99 * m.GIB), "compute_capability": "8.6"}
L40S = {"gpu_name": "NVIDIA L40S", "device_memory_bytes": int(44.52 * m.GIB), "compute_capability": "8.9"}

# (log, model, GiB "Model loading took", settings, GiB "Available KV cache memory", tokens printed)
BOOTS = [
    (
        "https://github.com/lennonYe/6998_project vllm_server.log",
        m.QWEN25_15B,
        2.8875,
        {**L40S, "engine_core": "v0", "engine_version": "0.6.6.post1", "context_tokens": 4096},
        35.55,
        1331328,
    ),
    (
        "https://github.com/vllm-project/vllm/issues/15360",
        m.QWEN25_7B,
        14.2487,
        {**A10G, "engine_core": "v0", "engine_version": "0.8.1", "context_tokens": 6600},
        4.05,
        75856,
    ),
    (
        "https://github.com/kolyangg/mlops-assignment vllm.log",
        m.QWEN3_30B_A3B,
        56.9342,
        {**H100, "engine_version": "0.10.2", "context_tokens": 6144, "max_num_batched_tokens": 8192},
        8.68,
        94784,
    ),
    (
        "https://github.com/NnamdiOdozi/mlops-assignment vllm.log",
        m.QWEN3_30B_A3B,
        29.08,
        {
            **H100,
            "engine_version": "0.22.1",
            "context_tokens": 8192,
            "max_num_batched_tokens": 8192,
            "max_num_seqs": 64,
            "precision_id": "fp8",
        },
        42.54,
        464656,
    ),
    (
        "https://github.com/LukeJYK/AutoScientists vllm.log",
        m.QWEN3_30B_A3B,
        56.93,
        {
            **A100,
            "engine_version": "0.26.1rc1",
            "gpu_memory_utilization": 0.9,
            "context_tokens": 131072,
            "max_num_batched_tokens": 2048,
            "max_num_seqs": 16,
        },
        13.84,
        151216,
    ),
]


@pytest.mark.parametrize(("log", "model", "weights", "asked", "kv_gib", "tokens"), BOOTS)
def test_leaves_the_logged_kv(log, model, weights, asked, kv_gib, tokens):
    row = m.memory(model, weights, **asked).row(0, named=True)
    # Within 0.4 % of the card.
    assert abs(row["kv_available_bytes"] / m.GIB - kv_gib) < 0.004 * asked["device_memory_bytes"] / m.GIB, log
    assert row["kv_available_bytes_low"] < kv_gib * m.GIB < row["kv_available_bytes_high"]
    assert row["kv_tokens"] == pytest.approx(tokens, rel=0.02)
    assert row["limited_by"] is None


SIZES = {
    "device_memory_bytes": st.integers(8, 300),
    "version": st.sampled_from(["0.6.6", "0.8.5", "0.11.0", "0.20.0", None]),
}


@settings(max_examples=30, deadline=None)
@given(
    memory_gib=SIZES["device_memory_bytes"],
    version=SIZES["version"],
    tensor=st.sampled_from([1, 2, 4, 8]),
    share=st.floats(0.3, 1.0),
)
def test_parts_add_up_to_the_budget(memory_gib, version, tensor, share):
    row = m.memory(
        m.LLAMA_8B,
        15.0 / tensor,
        engine_version=version,
        engine_core=None,
        tensor_parallel=tensor,
        device_memory_bytes=memory_gib * m.GIB,
        gpu_memory_utilization=share,
        context_tokens=8192,
    ).row(0, named=True)
    parts = ("weights_bytes", "activation_bytes", "non_torch_bytes", "cuda_graph_bytes", "kv_available_bytes")
    assert sum(row[p] for p in parts) == row["budget_bytes"]
    assert row["budget_bytes"] == pytest.approx(memory_gib * m.GIB * share, abs=1)
    assert row["kv_available_bytes_low"] <= row["kv_available_bytes"] <= row["kv_available_bytes_high"]
    assert row["required_bytes_low"] <= row["required_bytes"] <= row["required_bytes_high"]
    assert row["kv_cache_bytes"] <= max(row["kv_available_bytes"], 0) * tensor
    # It starts exactly where one request fits.
    assert (row["limited_by"] is None) == (row["users"] >= 1)
    assert row["required_bytes"] <= row["budget_bytes"] * tensor or row["users"] == 0


@pytest.mark.parametrize(
    ("model", "weights", "asked", "reason"),
    [
        # 79.18 × 0.9 − 65.7 − 4.8 (sampler) − 0.55: two tenths of a GiB are left, 160 KiB a token.
        (m.LLAMA_70B, 65.7, {"tensor_parallel": 2, "engine_version": "0.11.0", "gpu_memory_utilization": 0.9}, None),
        (m.LLAMA_70B, 131.4, {"tensor_parallel": 1}, "weights"),
        (m.LLAMA_8B, 15.0, {"tensor_parallel": 3}, "tp_divisibility"),
        (m.QWEN25_7B, 14.2, {"tensor_parallel": 8}, "tp_divisibility"),  # 28 heads
        (m.LLAMA_8B, 15.0, {"context_tokens": 131073}, "context"),
        # 0.25 × 79.18 − 15 GiB leaves less than the 16 GiB of one request of 131,072 tokens.
        (m.LLAMA_8B, 15.0, {"context_tokens": 131072, "gpu_memory_utilization": 0.25}, "kv_cache"),
        (m.LLAMA_8B, 15.0, {"context_tokens": 131072}, None),
        (m.LLAMA_8B, 15.0, {"device_memory_bytes": None}, "unknown"),
        (m.LLAMA_8B, 15.0, {"kv_cache_dtype": "q4_0"}, "unsupported"),
        (m.BERT, 0.3, {}, None),
    ],
)
def test_refuses_for_one_reason(model, weights, asked, reason):
    asked = {**H100, "context_tokens": 512, **asked}
    assert m.memory(model, weights, **asked)["limited_by"][0] == reason


# A public planner's command that cannot start: BF16 Qwen2.5-72B (135.4 GiB of weights) on two 80 GB cards at 0.9, whose
# sampler alone wants 9.5 × 1024 × 152064 × 4 B = 5.5 GiB of the 3.6 GiB left.
def test_refuses_a_72b_on_two_h100():
    row = m.memory(m.LLAMA_70B, 67.7, **H100, tensor_parallel=2, engine_version="0.11.0", context_tokens=8192)
    assert row["limited_by"][0] == "weights"


def test_rows_come_back_by_row_whatever_their_order():
    rows = m.memory(
        m.LLAMA_8B,
        15.0,
        **H100,
        context_tokens=[131072, 4096, 32768],
        engine_version=["0.11.0", None, "0.6.0"],
        engine_core=[None, None, None],
    )
    assert rows["row"].to_list() == [0, 1, 2]
    assert rows["engine_version_used"].to_list() == ["0.11.0", "0.33.0", "0.6.0"]
    assert rows["users"][1] > rows["users"][0]


def test_replicas_have_their_own_pools():
    one = m.memory(m.LLAMA_8B, 15.0, **H100, context_tokens=8192).row(0, named=True)
    two = m.memory(m.LLAMA_8B, 15.0, **H100, context_tokens=8192, data_parallel=2, gpu_count=2).row(0, named=True)
    assert two["users"] == 2 * one["users"]
    assert two["kv_tokens"] == one["kv_tokens"]
    assert two["required_bytes"] == 2 * one["required_bytes"]
    assert two["taken_bytes"] == 2 * one["taken_bytes"] == 2 * one["budget_bytes"]


def test_stages_of_a_pipeline_keep_their_own_layers():
    whole = m.pool(m.LLAMA_70B, 40.0, context_tokens=8192, engine_version="0.11.0")["kv_tokens"][0]
    staged = m.pool(m.LLAMA_70B, 40.0, context_tokens=8192, engine_version="0.11.0", pipeline_parallel=4)["kv_tokens"][
        0
    ]
    assert staged == whole * 4


def test_takes_graphs_beside_the_budget_where_they_are_not_reserved():
    old = m.memory(m.LLAMA_8B, 15.0, **H100, engine_version="0.11.0").row(0, named=True)
    eager = m.memory(m.LLAMA_8B, 15.0, **H100, engine_version="0.11.0", enforce_eager=True).row(0, named=True)
    assert old["taken_bytes"] > old["budget_bytes"] == eager["taken_bytes"]


def test_stays_fast_on_many_rows():
    rows = m.deployment(
        m.LLAMA_8B,
        **H100,
        context_tokens=[2048 * (1 + i % 8) for i in range(50_000)],
        tensor_parallel=[2 ** (i % 4) for i in range(50_000)],
    )
    shards = rows.select("row", weights_bytes=pl.lit(15 * m.GIB // 4))
    assert m.vllm_memory(rows, *m.FRAMES, shards, m.RULES).height == 50_000


# 0.5 × 79.18 − 15 GiB hold 180 thousand tokens of 131,072 B, all of the model's own 131,072. At 0.25 some thousands are
# left, and they are the context that a deployment without one gets.
@pytest.mark.parametrize(("share", "is_whole"), [(0.5, True), (0.25, False)])
def test_fits_the_context_where_none_is_asked(share, is_whole):
    row = m.memory(m.LLAMA_8B, 15.0, **H100, gpu_memory_utilization=share, engine_version="0.25.0").row(0, named=True)
    assert row["limited_by"] is None
    assert row["users"] >= 1
    assert row["sequence_kv_bytes"] == row["fit_context_tokens"] * 131072
    assert (row["fit_context_tokens"] == 131072) is is_whole
