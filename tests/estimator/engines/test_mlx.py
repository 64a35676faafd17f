"""MLX: weights, caches that grow by steps, one prefill step, against the memory the GPU may address."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitmart.estimator.anatomy import Anatomy, Cache, ModelFacts, to_frames
from fitmart.estimator.engines.mlx import RULE_SCHEMA, MlxRuleError, mlx_memory
from fitmart.estimator.frames import DEPLOYMENT_SCHEMA, ENGINE_MEMORY_SCHEMA

GIB = 2**30
SEED = Path(__file__).parents[3] / "warehouse" / "seeds" / "mlx_rule.csv"
RULES = {"mlx_rule": pl.read_csv(SEED, schema_overrides=dict(RULE_SCHEMA))}
MAC = {"memory_bytes": 64 * GIB, "is_unified_memory": True, "addressable_share": 0.81}


def facts(model_id, **known):
    base = {"family": "test", "architecture": None, "model_type": "qwen3", "task": "text-generation"}
    return ModelFacts(model_id=model_id, max_context_tokens=262144, **(base | known))


def heads(kind, layers, kv_heads, dim, window=None):
    size = 2 * kv_heads * dim
    return Cache(
        kind=kind, layers=layers, elements_per_token=size, kv_heads=kv_heads, key_dim=dim, value_dim=dim,
        window_tokens=window,
    )  # fmt: skip


QWEN3_4B = Anatomy(
    facts=facts(
        "Qwen/Qwen3-4B-Instruct-2507", layers=36, hidden_size=2560, vocab_size=151936, attention_heads=32, kv_heads=8,
        head_dim=128, intermediate_size=9728,
    ),
    tensors=(),
    caches=(heads("full", tuple(range(36)), 8, 128),),
)  # fmt: skip
QWEN3_30B = Anatomy(
    facts=facts(
        "Qwen/Qwen3-30B-A3B-Instruct-2507", layers=48, hidden_size=2048, vocab_size=151936, attention_heads=32,
        kv_heads=4, head_dim=128, experts=128, experts_per_token=8, expert_intermediate_size=768,
    ),
    tensors=(),
    caches=(heads("full", tuple(range(48)), 4, 128),),
)  # fmt: skip
GEMMA_3_4B = Anatomy(
    facts=facts(
        "google/gemma-3-4b-it", layers=34, hidden_size=2560, vocab_size=262208, attention_heads=8, kv_heads=4,
        head_dim=256, intermediate_size=10240, model_type="gemma3_text",
    ),
    tensors=(),
    caches=(
        heads("full", tuple(range(5, 34, 6)), 4, 256),
        heads("sliding", tuple(i for i in range(34) if i % 6 != 5), 4, 256, window=1024),
    ),
)  # fmt: skip


def answer(*wanted):
    """mlx_memory of (anatomy, weights_bytes, settings), as dictionaries."""
    rows = [
        {"row": i, "model_id": a.facts.model_id, "engine_id": "mlx", "gpu_count": 1, **MAC, **given_settings}
        for i, (a, _, given_settings) in enumerate(wanted)
    ]
    gpu = {"memory_bytes": pl.Int64, "is_unified_memory": pl.Boolean, "addressable_share": pl.Float64}
    frame = pl.DataFrame(rows, schema=dict(DEPLOYMENT_SCHEMA) | gpu)
    models, _, caches = to_frames(list({a.facts.model_id: a for a, _, _ in wanted}.values()))
    shards = pl.DataFrame({"row": range(len(wanted)), "weights_bytes": [w for _, w, _ in wanted]})
    found = mlx_memory(frame, models, caches, shards, RULES)
    assert found.schema == ENGINE_MEMORY_SCHEMA
    return found.sort("row").to_dicts()


# https://raw.githubusercontent.com/ml-explore/mlx-lm/main/mlx_lm/BENCHMARKS.md (0.28.2, M4 Max): peak memory in GB of a
# prompt of 2,048 tokens and 128 more; weights = parameters x bits / 8 of the repository. That version made the logits
# of the whole prompt, 2,048 x 151,936 x 2 B = 0.622 GB; the figure leaves the process itself out.
MEASURED = [
    (QWEN3_4B, 4.022e9, 16, 9.02),
    (QWEN3_4B, 4.022e9, 8.5, 5.254),
    (QWEN3_4B, 4.022e9, 6.5, 4.25),
    (QWEN3_4B, 4.022e9, 5.5, 3.86),
    (QWEN3_4B, 4.022e9, 4.5, 3.35),
    (QWEN3_30B, 30.53e9, 8.5, 33.46),
    (QWEN3_30B, 30.53e9, 6.5, 25.82),
    (QWEN3_30B, 30.53e9, 5.5, 22.01),
    (QWEN3_30B, 30.53e9, 4.5, 18.20),
]


@pytest.mark.parametrize(("model", "params", "bits", "gb"), MEASURED)
def test_measured_peaks_are_within_the_band(model, params, bits, gb):
    (found,) = answer((model, int(params * bits / 8), {"context_tokens": 2176}))
    assert found["required_bytes_low"] <= gb * 1e9 <= found["required_bytes_high"]
    inside = found["required_bytes"] - found["non_torch_bytes"]
    assert inside + 2048 * 151936 * 2 == pytest.approx(gb * 1e9, rel=0.025)


def test_a_cache_grows_by_256_tokens():
    """36 layers x 2 x 8 x 128 x 2 B = 147,456 B a token; 2,176 tokens are nine steps."""
    (found,) = answer((QWEN3_4B, 8 * 10**9, {"context_tokens": 2176}))
    assert found["sequence_kv_bytes"] == found["kv_cache_bytes"] == 147456 * 2304


@pytest.mark.parametrize(("dtype", "bits"), [(None, 16), ("bf16", 16), ("fp8", 8.5), ("q8_0", 8.5), ("q4_0", 4.5)])
def test_quantized_caches(dtype, bits):
    (found,) = answer((QWEN3_4B, 8 * 10**9, {"context_tokens": 4096, "kv_cache_dtype": dtype}))
    assert found["sequence_kv_bytes"] == 147456 * 4096 * bits / 16


def test_sliding_layers_keep_their_window():
    """gemma-3-4b: 5 full and 29 sliding layers of 4,096 B a token."""
    (found,) = answer((GEMMA_3_4B, 8 * 10**9, {"context_tokens": 32768}))
    assert found["sequence_kv_bytes"] == 4096 * (5 * 32768 + 29 * 1024)


def test_wide_heads_make_the_score_matrix():
    """No fused kernel for heads of 256: 8 heads x 2,048 x context at 16 bits."""
    short, long = answer(*((GEMMA_3_4B, 8 * 10**9, {"context_tokens": c}) for c in (16384, 32768)))
    assert long["activation_bytes"] - short["activation_bytes"] == 8 * 2048 * 16384 * 2


@pytest.mark.parametrize(
    ("model", "weights", "given_settings", "reason"),
    [
        (QWEN3_4B, 60 * GIB, {"context_tokens": 4096}, "weights"),
        (QWEN3_4B, 40 * GIB, {"context_tokens": 131072}, "kv_cache"),
        (QWEN3_4B, 2 * GIB, {"context_tokens": 300000}, "context"),
        (QWEN3_4B, 2 * GIB, {"context_tokens": 4096, "gpu_count": 2}, "unsupported"),
        (QWEN3_4B, 2 * GIB, {"context_tokens": 4096, "kv_cache_dtype": "q8_0/f16"}, "unsupported"),
        (GEMMA_3_4B, 2 * GIB, {"context_tokens": 4096, "kv_cache_dtype": "q8_0"}, "unsupported"),
        (QWEN3_4B, 2 * GIB, {"context_tokens": 4096, "memory_bytes": None}, "unknown"),
        (QWEN3_4B, None, {"context_tokens": 4096}, "unknown"),
        (QWEN3_4B, 2 * GIB, {"context_tokens": 4096}, None),
    ],
)
def test_the_reason_why_not(model, weights, given_settings, reason):
    (found,) = answer((model, weights, given_settings))
    assert found["limited_by"] == reason


def test_the_share_that_may_be_wired_is_the_budget():
    """https://github.com/AlexsJones/llmfit/issues/570: unified memory counted whole."""
    (found,) = answer((QWEN3_4B, 2 * GIB, {}))
    assert found["budget_bytes"] == int(64 * GIB * 0.81)


def test_a_missing_table_is_one_line():
    with pytest.raises(MlxRuleError, match="no rule table mlx_rule"):
        mlx_memory(pl.DataFrame(), pl.DataFrame(), pl.DataFrame(), pl.DataFrame(), {})


@settings(max_examples=15, deadline=None)
@given(model=st.sampled_from([QWEN3_4B, QWEN3_30B, GEMMA_3_4B]), gib=st.integers(8, 512), weights=st.integers(1, 200))
def test_the_longest_context_is_the_last_that_fits(model, gib, weights):
    mac = {"memory_bytes": gib * GIB}
    (found,) = answer((model, weights * GIB, mac))
    longest = found["fit_context_tokens"]
    here, above = answer(
        (model, weights * GIB, mac | {"context_tokens": max(longest, 1)}),
        (model, weights * GIB, mac | {"context_tokens": longest + 256}),
    )
    if longest:
        assert here["users"] >= 1
    if longest < model.facts.max_context_tokens:
        assert above["users"] == 0
