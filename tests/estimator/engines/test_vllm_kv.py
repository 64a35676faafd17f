"""The KV pool against what vLLM printed at start, and against hand calculations."""

import pytest
import vllm_models as m
from hypothesis import given, settings
from hypothesis import strategies as st

SPARK = "https://github.com/sostrowsk/dgx-spark-local-llm/blob/4b5486468ec6941d55c25f0b4f9557c7893d8b58/"
LAMBO = "https://github.com/leadawon/LAMBO/blob/bab83fe6000d6d57dc717e4cb7274b7dfc036512/logs/"
TRANSLATE = "https://github.com/HienHoang3011/translate-pipeline/blob/566b8f683eaf6dd707953f9e9fa1d55454b6bcf9/"

# (log, model, settings, "Available KV cache memory" in GiB, "GPU KV cache size" in tokens)
PRINTED = [
    (
        SPARK + "gemma4-int4.log",
        m.GEMMA4_26B,
        {"engine_version": "0.25.1", "context_tokens": 262144, "max_num_batched_tokens": 2496},
        83.89,
        3875400,
    ),
    (
        SPARK + "gemma4-nvfp4.log",
        m.GEMMA4_26B,
        {"engine_version": "0.25.1", "context_tokens": 262144, "max_num_batched_tokens": 2496},
        84.68,
        3912140,
    ),
    (
        TRANSLATE + "vllm_server.log",
        m.GEMMA4_E4B,
        {"engine_version": "0.19.2rc1.dev206+g95995bbef", "context_tokens": 16384},
        16.45,
        179632,
    ),
    (
        LAMBO + "vllm_qwen35_27b.log",
        m.QWEN35_27B,
        {"engine_version": "0.19.0", "tensor_parallel": 4, "context_tokens": 32768},
        7.0,
        114464,
    ),
    (
        LAMBO + "vllm_serve_toc.log",
        m.QWEN35_27B,
        {"engine_version": "0.19.0", "tensor_parallel": 4, "context_tokens": 50000},
        7.56,
        123088,
    ),
    (
        LAMBO + "vllm_serve_v4.log",
        m.QWEN35_27B,
        {"engine_version": "0.19.0", "tensor_parallel": 4, "context_tokens": 32768},
        7.47,
        122304,
    ),
    (
        LAMBO + "vllm_qwen35_9b.log",
        m.QWEN35_9B,
        {"engine_version": "0.19.0", "tensor_parallel": 4, "context_tokens": 32768},
        15.36,
        502656,
    ),
    (
        SPARK + "qwen36.log",
        m.QWEN35_35B,
        {"engine_version": "0.25.1", "context_tokens": 262144, "speculative": "mtp:2"},
        74.22,
        3366051,
    ),
    (
        SPARK + "qwen38-int4.log",
        m.QWEN35_27B,
        {"engine_version": "0.25.1", "context_tokens": 262144, "speculative": "mtp:2"},
        80.17,
        1191213,
    ),
    (
        SPARK + "qwen38-nvfp4.log",
        m.QWEN35_27B,
        {"engine_version": "0.25.1", "context_tokens": 262144, "speculative": "mtp:2", "kv_cache_dtype": "fp8"},
        76.4,
        2192477,
    ),
]


@pytest.mark.parametrize(("log", "model", "asked", "kv_gib", "tokens"), PRINTED)
def test_prints_the_tokens_of_hybrid_and_windowed_models(log, model, asked, kv_gib, tokens):
    printed = m.pool(model, kv_gib, **asked)["kv_tokens"][0]
    assert printed == pytest.approx(tokens, rel=0.0025), log


def test_keeps_one_block_a_layer_and_token_for_a_dense_model():
    # 2 (K, V) × 32 layers × 8 heads × 128 × 2 B = 131,072 B a token, 2 MiB a block of 16.
    row = m.pool(m.LLAMA_8B, 10.0, engine_version="0.11.0", context_tokens=8200).row(0, named=True)
    assert row["kv_block_bytes"] == 16 * 131072
    assert row["blocks"] == 10 * m.GIB // (16 * 131072) == 5120
    assert row["kv_tokens"] == 5120 * 16
    assert row["request_blocks"] == 513  # 8200 / 16 = 512.5
    assert row["users"] == 9
    assert row["fit_context_tokens"] == 81920


@pytest.mark.parametrize(
    ("tensor_parallel", "token_bytes"), [(1, 131072), (2, 65536), (8, 16384), (16, 16384), (32, 16384)]
)
def test_replicates_kv_heads_that_tensor_parallelism_cannot_cut(tensor_parallel, token_bytes):
    row = m.pool(m.LLAMA_8B, 10.0, tensor_parallel=tensor_parallel, context_tokens=4096)
    assert row["kv_block_bytes"][0] == 16 * token_bytes


# 61 layers of one latent of 576 elements, whole on every rank; blocks of 64 (128 with CUTLASS on 10.x, 16 in V0). With
# an indexer, FP8 slots take 656 B and its keys 132 B a token and layer (vllm flashmla_sparse.py, deepseek_v2.py).
@pytest.mark.parametrize(
    ("model", "asked", "block_bytes"),
    [
        (m.DEEPSEEK_V3, {"tensor_parallel": 8}, 61 * 576 * 2 * 64),
        (m.DEEPSEEK_V3, {"tensor_parallel": 8, "kv_cache_dtype": "fp8"}, 61 * 576 * 64),
        (m.DEEPSEEK_V3, {"tensor_parallel": 8, "compute_capability": "10.0"}, 61 * 576 * 2 * 128),
        (m.DEEPSEEK_V3, {"engine_core": "v0", "engine_version": "0.8.5"}, 61 * 576 * 2 * 16),
        (m.DEEPSEEK_V32, {"kv_cache_dtype": "bf16"}, 61 * (576 * 2 + 132) * 64),
        (m.DEEPSEEK_V32, {"kv_cache_dtype": "fp8"}, 61 * (656 + 132) * 64),
    ],
)
def test_stores_latents_in_their_slots(model, asked, block_bytes):
    assert m.pool(model, 40.0, **asked)["kv_block_bytes"][0] == block_bytes


# Slots of 584 B an entry, index keys of 132 B; blocks of 256 tokens for the compressed layers, of 64 for the windows.
# The wider group sets the block: 256 × (21 × (584 + 132) / 4 + 20 × 584 / 128) = 985,664 B against
# 64 × 43 × 584 = 1,607,168 B.
def test_packs_compressed_latents_and_their_windows():
    asked = {"context_tokens": 1_048_576, "tensor_parallel": 8, "max_num_batched_tokens": 8192}
    row = m.pool(m.DEEPSEEK_V4, 60.0, **asked).row(0, named=True)
    assert row["kv_block_bytes"] == 64 * 43 * 584
    assert row["request_blocks"] == 1_048_576 // 256 + -(-(127 + 2 * 8192) // 64) + 1


# gpt-oss: 12 full and 12 sliding layers of 8 heads × 64. vLLM 0.10-0.20 charges both groups in the tokens it prints
# (issue vllm#43308: 0.21 prints concurrency × length instead).
def test_prints_windowed_models_by_version():
    token = 2 * 8 * 64 * 2
    asked = {"context_tokens": 32768, "max_num_batched_tokens": 2048, "max_num_seqs": 64}
    blocks = 10 * m.GIB // (16 * token * 12)
    old = m.pool(m.GPT_OSS_20B, 10.0, engine_version="0.11.0", **asked).row(0, named=True)
    assert old["kv_tokens"] == blocks // 2 * 16
    need = 32768 // 16 + -(-(127 + 2048) // 16) + 1  # one full and one sliding group
    new = m.pool(m.GPT_OSS_20B, 10.0, engine_version="0.21.0", **asked).row(0, named=True)
    assert new["kv_tokens"] == blocks * 32768 // need
    assert old["users"] == new["users"] == blocks // need
    # 0.26 keeps two batches in flight beside the window.
    later = m.pool(m.GPT_OSS_20B, 10.0, engine_version="0.26.0", **asked).row(0, named=True)
    assert later["request_blocks"] == 32768 // 16 + -(-(127 + 2 * 2048) // 16) + 1
    # Before 0.9.2 sliding layers store the whole context.
    flat = m.pool(m.GPT_OSS_20B, 10.0, engine_version="0.9.1", **asked).row(0, named=True)
    assert flat["kv_block_bytes"] == 16 * token * 24


def test_holds_no_more_than_the_window_where_every_layer_slides():
    row = m.pool(m.MISTRAL_V01, 8.0, context_tokens=32768, max_num_batched_tokens=2048, max_num_seqs=16).row(
        0, named=True
    )
    assert row["request_blocks"] == -(-(4095 + 2 * 2048) // 16) + 1
    assert row["fit_context_tokens"] == 32768  # the model's own limit: the cache sets none


# Qwen3.5-27B at TP 4: a state of 48/4 heads × 128 × 128 × 4 B and a convolution of (2·16 + 48)·128/4 × 3 × 2 B =
# 801,792 B need ceil(801,792 / (16 × 1,024)) = 49 times 16 tokens (the log of 0.19 names blocks of 784 tokens).
def test_aligns_attention_blocks_to_the_recurrent_page():
    row = m.pool(m.QWEN35_27B, 7.0, engine_version="0.19.0", tensor_parallel=4, context_tokens=32768).row(0, named=True)
    assert row["full_block_tokens"] == 784
    assert (row["full_groups"], row["groups"]) == (1, 4)


@pytest.mark.parametrize("core", ["v0", "v1"])
def test_keeps_nothing_for_an_encoder(core):
    row = m.pool(m.BERT, 4.0, engine_core=core, max_num_seqs=64).row(0, named=True)
    assert (row["kv_tokens"], row["sequence_kv_bytes"], row["users"], row["fit_context_tokens"]) == (0, 0, 64, 512)


MODELS = st.sampled_from(
    [m.LLAMA_8B, m.QWEN3_30B_A3B, m.GPT_OSS_20B, m.GEMMA4_26B, m.GEMMA4_E4B, m.QWEN35_27B, m.DEEPSEEK_V3]
)


@settings(max_examples=40, deadline=None)
@given(
    model=MODELS,
    version=st.sampled_from(["0.8.5", "0.9.2", "0.11.0", "0.18.0", "0.21.0", "0.26.0", None]),
    kv_gib=st.floats(0.5, 100),
    tensor_parallel=st.sampled_from([1, 2, 4]),
    batch=st.sampled_from([2048, 8192]),
)
def test_longest_context_is_the_one_that_just_fits(model, version, kv_gib, tensor_parallel, batch):
    asked = {"engine_version": version, "tensor_parallel": tensor_parallel, "max_num_batched_tokens": batch}
    longest = m.pool(model, kv_gib, **asked)["fit_context_tokens"][0]
    limit = model.facts.extended_context_tokens
    at = m.pool(model, kv_gib, context_tokens=[max(longest, 1), longest + 4096], **asked)
    users = at["users"].to_list()
    assert longest == 0 or users[0] >= 1
    assert longest == limit or users[1] == 0
    # More context never needs fewer blocks.
    assert at["request_blocks"][0] <= at["request_blocks"][1]
