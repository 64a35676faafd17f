"""Bytes of a sequence by KV precision, and the pieces they are linear in."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_configs import anatomy

from fitmart.estimator.anatomy import to_frames
from fitmart.estimator.kv_cache import (
    KvPrecisionError,
    kv_element_bytes,
    kv_minimum_bytes,
    longest_context,
    segment_bytes,
    segments,
)

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "google/gemma-3-27b-it",
    "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-V3.2",
    "Qwen/Qwen3.5-27B",
    "mistralai/Mistral-7B-v0.1",
    "state-spaces/mamba-2.8b-hf",
    "BAAI/bge-m3",
)
_, _, CACHES = to_frames([anatomy(m) for m in MODELS])
LLAMA = MODELS[0]


def least(model_id: str, tokens: int, precision: str) -> int:
    wanted = pl.DataFrame({"model_id": [model_id], "context_tokens": [tokens], "kv_precision": [precision]})
    return int(kv_minimum_bytes(CACHES, wanted)["minimum_bytes"][0])


# 2 × 32 layers × 8 heads × 128 = 65,536 elements a token; ggml blocks of 32: q8_0 34 bytes, q5_0 22, q4_0 18.
@pytest.mark.parametrize(
    ("precision", "bytes_per_token"),
    [
        ("bf16", 131072),
        ("f16", 131072),
        ("fp16", 131072),
        ("f32", 262144),
        ("fp8", 65536),
        ("fp8_e4m3", 65536),
        ("q8_0", 65536 * 34 // 32),
        ("q5_0", 65536 * 22 // 32),
        ("q4_0", 65536 * 18 // 32),
        ("q8_0/q4_0", 32768 * 34 // 32 + 32768 * 18 // 32),
    ],
)
def test_precisions(precision: str, bytes_per_token: int) -> None:
    assert least(LLAMA, 1000, precision) == bytes_per_token * 1000


def test_states_stay_sixteen_bit() -> None:
    state = 2 * 48 * (48 * 128 * 128 + 10240 * 3)
    assert least("Qwen/Qwen3.5-27B", 1024, "fp8") == 2 * 16 * 4 * 256 * 1024 + state
    assert least("state-spaces/mamba-2.8b-hf", 10**6, "q4_0") == least("state-spaces/mamba-2.8b-hf", 1, "bf16")


def test_rows_keep_their_order_and_columns() -> None:
    wanted = pl.DataFrame(
        {
            "tag": ["c", "a", "b"],
            "model_id": [LLAMA, "BAAI/bge-m3", LLAMA],
            "context_tokens": [2, 2, 1],
            "kv_precision": ["bf16", "bf16", "fp8"],
        }
    )
    done = kv_minimum_bytes(CACHES, wanted)
    assert done["tag"].to_list() == ["c", "a", "b"]
    assert done["minimum_bytes"].to_list() == [262144, 0, 65536]
    assert done.columns == ["tag", "model_id", "context_tokens", "kv_precision", "minimum_bytes"]


@pytest.mark.parametrize("precision", ["q3_k", "int4", "", "bf16/none"])
def test_unknown_precision(precision: str) -> None:
    with pytest.raises(KvPrecisionError, match="unknown KV cache precision"):
        kv_element_bytes(precision)


@settings(deadline=None, max_examples=60)
@given(
    model_id=st.sampled_from(MODELS),
    tokens=st.integers(0, 300_000),
    more=st.integers(0, 5_000),
    precision=st.sampled_from(["bf16", "fp8", "q8_0", "q4_0"]),
)
def test_pieces_agree_with_the_sum(model_id: str, tokens: int, more: int, precision: str) -> None:
    pieces = segment_bytes(segments(CACHES), pl.Series([precision])).filter(pl.col("model_id") == model_id)
    below = pieces.filter(pl.col("from_tokens") <= tokens).tail(1)
    exact = least(model_id, tokens, precision)
    assert exact <= least(model_id, tokens + more, precision)
    if below.height:
        base, slope, start = below.select("base_bytes", "bytes_per_token", "from_tokens").row(0)
        assert base + slope * (tokens - start) == pytest.approx(exact, rel=1e-9, abs=1)


@settings(deadline=None, max_examples=60)
@given(
    model_id=st.sampled_from(MODELS[:6]),
    tokens=st.integers(1, 300_000),
    precision=st.sampled_from(["bf16", "q8_0"]),
)
def test_longest_context_inverts(model_id: str, tokens: int, precision: str) -> None:
    budget = least(model_id, tokens, precision)
    frame = pl.DataFrame({"model_id": [model_id], "kv_precision": [precision], "budget_bytes": [budget]})
    found = longest_context(CACHES, frame)["context_tokens"][0]
    if model_id == "mistralai/Mistral-7B-v0.1" and tokens >= 4096:
        assert found is None  # the window is full: it never grows again
    else:
        assert found == tokens


def test_budgets_without_an_answer() -> None:
    frame = pl.DataFrame(
        {
            "model_id": ["BAAI/bge-m3", "state-spaces/mamba-2.8b-hf", "Qwen/Qwen3.5-27B"],
            "kv_precision": ["bf16"] * 3,
            "budget_bytes": [0, 10**9, 1000],
        }
    )
    assert longest_context(CACHES, frame)["context_tokens"].to_list() == [None, None, -1]
