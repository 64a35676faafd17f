"""Users, the longest context, and the reason why not."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llamacpp_models import (
    COMMAND_R,
    DEEPSEEK_V3,
    GEMMA_4_E4B,
    GIB,
    GPT_OSS_20B,
    LLAMA_2_7B,
    MIB,
    QWEN2_7B,
    QWEN3_30B_A3B,
    QWQ_32B,
    RULES,
    facts,
    memory,
    one,
    rows,
)

from fitmart.estimator.engines.llamacpp import llamacpp_memory
from fitmart.estimator.frames import ENGINE_MEMORY_SCHEMA

CARD = {"vendor": "NVIDIA", "gpu_id": "nvidia-rtx-4090", "is_unified_memory": False}


def test_one_user_by_hand():
    """Llama-2-7B at F16, 4,096 tokens, one 24 GiB card, b9500 server.

    Layers 4 x 4096^2 + 3 x 4096 x 11008 = 202,375,168 weights x 32 x 2 B, norms 8,192 x 4 B x 32, output 32000 x 4096 x
    2 B and a norm. KV 32 x 2 x 4096 x 2 B x 4096 = 2 GiB. Compute 512 x 4 x (2 x 11008 + 3 x 4096 + 1.5 x 4096).
    """
    answer = one(LLAMA_2_7B, context_tokens=4096, engine_version="b9500", device_memory_bytes=24 * GIB, **CARD)
    weights = 202375168 * 32 * 2 + 8192 * 4 * 32 + 32000 * 4096 * 2 + 4096 * 4
    compute = 512 * 4 * (2 * 11008 + 3 * 4096 + 6144)
    assert answer["weights_bytes"] == weights
    assert answer["compute_buffer_bytes"] == compute
    assert answer["sequence_kv_bytes"] == 2 * GIB
    assert answer["kv_available_bytes"] == 24 * GIB - weights - compute - 215 * MIB
    assert answer["users"] == answer["kv_available_bytes"] // (2 * GIB) == 5
    assert answer["required_bytes"] == weights + 2 * GIB + compute + 215 * MIB
    assert answer["limited_by"] is None


@pytest.mark.parametrize(
    ("model", "given_settings", "reason"),
    [
        (COMMAND_R, {"device_memory_bytes": 24 * GIB}, "weights"),
        (COMMAND_R, {"device_memory_bytes": 80 * GIB, "context_tokens": 131072}, "kv_cache"),
        (LLAMA_2_7B, {"device_memory_bytes": 80 * GIB, "context_tokens": 8192}, "context"),
        (LLAMA_2_7B, {}, "unknown"),
        (LLAMA_2_7B, {"device_memory_bytes": 80 * GIB}, None),
    ],
)
def test_the_reason_why_not(model, given_settings, reason):
    assert one(model, **({"context_tokens": 4096} | CARD | given_settings))["limited_by"] == reason


def test_unified_memory_counts_by_its_share():
    """https://github.com/AlexsJones/llmfit/issues/570: a Mac's memory is not all the GPU's."""
    mac = {"vendor": "Apple", "is_unified_memory": True, "memory_bytes": 16 * GIB, "addressable_share": 0.74}
    answer = one(LLAMA_2_7B, context_tokens=4096, **mac)
    assert answer["budget_bytes"] == int(16 * GIB * 0.74)
    assert answer["limited_by"] == "weights"


def test_the_runtime_gives_less_than_the_driver_shows():
    given_settings = {"memory_bytes": 24 * GIB, "torch_memory_bytes": 23 * GIB, **CARD}
    assert one(LLAMA_2_7B, **given_settings)["budget_bytes"] == 23 * GIB
    assert one(LLAMA_2_7B, **given_settings, device_memory_bytes=22 * GIB)["budget_bytes"] == 22 * GIB


def test_a_card_that_shows_a_picture_has_a_wider_band():
    desktop, server = (
        one(LLAMA_2_7B, context_tokens=4096, device_memory_bytes=24 * GIB, **CARD | {"gpu_id": gpu})
        for gpu in ("nvidia-rtx-4090", "nvidia-l40s")
    )
    assert desktop["required_bytes"] == server["required_bytes"]
    assert desktop["required_bytes_high"] == server["required_bytes_high"] + GIB
    assert desktop["kv_available_bytes_low"] == server["kv_available_bytes_low"] - GIB


def test_the_projector_of_a_vision_model_is_in_the_band():
    """https://github.com/ggml-org/llama.cpp/issues/18111: the vision projector ran a full card out of memory."""
    frames = rows({"model": QWEN2_7B, "context_tokens": 4096, "device_memory_bytes": 24 * GIB, **CARD})
    plain = llamacpp_memory(*frames, RULES).to_dicts()[0]
    deployments, models, caches, gguf = frames
    seeing = llamacpp_memory(deployments, models.with_columns(params_vision=650_000_000), caches, gguf, RULES)
    answer = seeing.to_dicts()[0]
    assert answer["required_bytes"] == plain["required_bytes"]
    assert answer["required_bytes_high"] == plain["required_bytes_high"] + 1_300_000_000


def test_several_gpus_are_as_good_as_the_fullest():
    """33 layers on eight GPUs: the first holds five of them, the last three and the output."""
    answer = one(LLAMA_2_7B, context_tokens=4096, gpu_count=8, device_memory_bytes=4 * GIB, **CARD)
    assert answer["sequence_kv_bytes"] == 2 * GIB * 5 // 32
    assert answer["users"] == answer["kv_available_bytes"] // answer["sequence_kv_bytes"]


def test_an_unknown_model_or_file_is_a_row():
    deployments, models, caches, gguf = rows(
        {"model": QWEN2_7B, "device_memory_bytes": 24 * GIB}, {"model": QWQ_32B, "device_memory_bytes": 24 * GIB}
    )
    is_known = pl.col("model_id") == QWEN2_7B.facts.model_id
    answers = llamacpp_memory(deployments, models.filter(is_known), caches, gguf.filter(is_known), RULES).to_dicts()
    assert [a["limited_by"] for a in sorted(answers, key=lambda a: a["row"])] == [None, "unknown"]
    no_file = llamacpp_memory(deployments, models, caches, gguf.filter(is_known), RULES).sort("row").to_dicts()[1]
    assert (no_file["limited_by"], no_file["weights_bytes"]) == ("unknown", None)
    assert no_file["kv_cache_bytes"] > 0
    nothing = llamacpp_memory(deployments, models.clear(), caches.clear(), gguf.clear(), RULES)
    assert nothing["limited_by"].to_list() == ["unknown", "unknown"]


def test_rows_come_back_once_with_the_schema():
    frames = rows(*({"model": m, "context_tokens": c} for m in (QWEN2_7B, QWQ_32B) for c in (4096, 8192)))
    answer = llamacpp_memory(*frames, RULES)
    assert answer.schema == ENGINE_MEMORY_SCHEMA
    assert sorted(answer["row"]) == [0, 1, 2, 3]


MODELS = st.sampled_from([LLAMA_2_7B, QWEN2_7B, QWQ_32B, QWEN3_30B_A3B, GPT_OSS_20B, GEMMA_4_E4B, DEEPSEEK_V3])


@settings(max_examples=15, deadline=None)
@given(
    model=MODELS,
    gib=st.integers(4, 200),
    gpus=st.sampled_from([1, 2, 3, 8]),
    is_flash=st.booleans(),
    version=st.sampled_from(["b4500", "b6000", "b7000", None]),
)
def test_the_longest_context_is_the_last_that_fits(model, gib, gpus, is_flash, version):
    base = {"gpu_count": gpus, "device_memory_bytes": gib * GIB, "flash_attention": is_flash, "engine_version": version}
    step = 256 if is_flash or version in ("b7000", None) else 32
    longest = one(model, **base, **CARD)["fit_context_tokens"]
    limit = model.facts.max_context_tokens
    assert 0 <= longest <= limit
    here, above = memory(
        {"model": model, "context_tokens": max(longest, 1), **base, **CARD},
        {"model": model, "context_tokens": longest + step, **base, **CARD},
    )
    if longest:
        assert here["users"] >= 1
    if longest < limit:
        assert above["users"] == 0


@settings(max_examples=15, deadline=None)
@given(model=MODELS, gib=st.integers(8, 200), context=st.integers(1, 131072), gpus=st.sampled_from([1, 2, 8]))
def test_bands_hold_the_middle_and_more_memory_never_hurts(model, gib, context, gpus):
    base = {"model": model, "context_tokens": context, "gpu_count": gpus, **CARD}
    small, large = memory(base | {"device_memory_bytes": gib * GIB}, base | {"device_memory_bytes": (gib + 1) * GIB})
    for answer in (small, large):
        assert answer["kv_available_bytes_low"] <= answer["kv_available_bytes"] <= answer["kv_available_bytes_high"]
        assert answer["required_bytes_low"] <= answer["required_bytes"] <= answer["required_bytes_high"]
        assert answer["taken_bytes"] >= answer["required_bytes"] - answer["required_bytes"] // 10
    assert small["users"] <= large["users"]
    assert small["fit_context_tokens"] <= large["fit_context_tokens"]


def test_more_gpus_of_a_row_do_not_change_another():
    """Rows are answered alone: the batch they come in does not matter."""
    wanted = [
        {"model": m, "context_tokens": c, "gpu_count": n, "device_memory_bytes": 24 * GIB, **CARD}
        for m in (QWEN2_7B, GPT_OSS_20B)
        for c in (4096, 65536)
        for n in (1, 4)
    ]
    together = memory(*wanted)
    alone = [memory(w)[0] | {"row": i} for i, w in enumerate(wanted)]
    assert together == alone


def test_no_context_asked_is_the_models_own():
    assert facts("x", layers=1, hidden_size=1, vocab_size=1).max_context_tokens == 131072
    assert one(QWEN2_7B, engine_version="b8000")["kv_cache_bytes"] == 32768 * 28 * 2048
    assert one(QWEN2_7B, engine_version="b5000")["kv_cache_bytes"] == 4096 * 28 * 2048
