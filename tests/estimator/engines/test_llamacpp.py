"""Buffers that llama.cpp logged at start, as its users posted them: KV, model and compute buffers in MiB.

Logs without a build number carry the day of the report as engine_version.
"""

import pytest
from llamacpp_models import (
    COMMAND_R,
    DEEPSEEK_V2,
    DEEPSEEK_V2_LITE,
    DEEPSEEK_V3,
    GEMMA_2B,
    GEMMA_4_E4B,
    GIB,
    GPT_OSS_20B,
    LLAMA_2_7B,
    MIB,
    MISTRAL_7B,
    MISTRAL_7B_V2,
    PHI_3_5_MINI,
    QWEN2_1_5B,
    QWEN2_7B,
    QWEN3_30B_A3B,
    QWQ_32B,
    RULES,
    Model,
    facts,
    memory,
    one,
    rows,
)

from fitmart.estimator.anatomy import Cache
from fitmart.estimator.engines.llamacpp import llamacpp_devices
from fitmart.estimator.engines.llamacpp_placement import HOST

ISSUE = "https://github.com/ggml-org/llama.cpp/issues/"
# (log, model, build or day, context, further settings, KV buffers of all devices in MiB)
KV_LOGS = [
    (ISSUE + "14307", QWEN3_30B_A3B, "5716", 4096, {}, 384.0),
    (ISSUE + "8503", QWEN2_7B, "2024-07-16", 512, {"n_ubatch": 32}, 28.0),
    (ISSUE + "7450", MISTRAL_7B_V2, "2024-05-22", 32000, {}, 4000.0),
    (ISSUE + "8551", LLAMA_2_7B, "3411", 3424, {}, 1712.0),
    (ISSUE + "9112", PHI_3_5_MINI, "3609", 131072, {}, 49152.0),
    (ISSUE + "6112", COMMAND_R, "2024-03-17", 512, {"kv_cache_dtype": "q8_0/f16"}, 490.0),
    (ISSUE + "11200", QWQ_32B, "4462", 32768, {"kv_cache_dtype": "q8_0", "flash_attention": True}, 4352.0),
    (ISSUE + "12277", GEMMA_2B, "4857", 4096, {}, 72.0),
    (ISSUE + "12390", DEEPSEEK_V2_LITE, "4887", 4096, {}, 1080.0),
    (ISSUE + "8862", DEEPSEEK_V2_LITE, "3509", 24608, {}, 6488.44),
    (ISSUE + "8263", DEEPSEEK_V2, "2024-07-02", 4096, {}, 19200.0),
    # 4 full layers at 65,536 cells, 20 sliding ones at 512 + 512
    ("https://github.com/acdtrx/llama-runner", GEMMA_4_E4B, "2026-04-20", 65536, {"n_parallel": 1}, 1064.0),
]


@pytest.mark.parametrize(("log", "model", "version", "context", "settings", "mib"), KV_LOGS)
def test_kv_buffers_are_those_logged(log, model, version, context, settings, mib):
    answer = one(model, engine_version=version, context_tokens=context, **settings)
    assert answer["kv_cache_bytes"] / MIB == pytest.approx(mib, abs=0.01)


# (log, model, precision, build or day, GPU's model buffer in MiB, host's)
MODEL_LOGS = [
    (ISSUE + "14441", QWEN2_1_5B, "gguf-f16", "5747", 2944.68, 445.12),  # tied: the embedding lies on both
    (ISSUE + "8503", QWEN2_7B, "gguf-q8_0", "2024-07-16", 7165.44, 552.23),
    (ISSUE + "12277", GEMMA_2B, "gguf-f32", "4857", 9561.30, 2001.0),
    (ISSUE + "8213", MISTRAL_7B, "gguf-q8_0", "2024-06-29", 7209.02, 136.0),
    (ISSUE + "9106", LLAMA_2_7B, "gguf-q4_0", "3609", 3577.56, 70.31),
]


def devices(model, **given):
    """Device number → its buffers."""
    frame = llamacpp_devices(*rows({"model": model, **given}), RULES)
    return {d["device"]: d for d in frame.to_dicts()}


@pytest.mark.parametrize(("log", "model", "precision", "version", "gpu", "host"), MODEL_LOGS)
def test_full_offload_leaves_the_embedding_on_the_host(log, model, precision, version, gpu, host):
    found = devices(model, precision_id=precision, engine_version=version)
    assert found[0]["weights_bytes"] / MIB == pytest.approx(gpu, rel=2e-4)
    # the Gemma file of that report has 128 rows more in its vocabulary than the config
    assert found[HOST]["weights_bytes"] / MIB == pytest.approx(host, rel=6e-4)


def test_layers_are_dealt_to_seven_gpus():
    """https://github.com/ggml-org/llama.cpp/issues/10252: 28 layers and the output over seven CANN devices."""
    found = devices(
        QWEN2_7B, precision_id="gguf-f16", engine_version="4036", gpu_count=7, context_tokens=4096, vendor="Huawei"
    )
    gpus = [found[i] for i in range(7)]
    assert [g["kv_cache_bytes"] / MIB for g in gpus] == [40, 32, 32, 32, 32, 32, 24]
    logged = [2222.72, 1778.18, 1778.18, 1778.18, 1778.18, 1778.18, 2373.15]
    assert [g["weights_bytes"] / MIB for g in gpus] == pytest.approx(logged, abs=0.02)


def test_some_layers_on_four_gpus():
    """https://github.com/ggml-org/llama.cpp/issues/10777: the last 33 of 64 layers on four devices, 31 on the host."""
    found = devices(
        QWQ_32B, precision_id="gguf-q4_0", engine_version="4302", gpu_count=4, n_gpu_layers=33, context_tokens=4096
    )
    assert [found[i]["kv_cache_bytes"] / MIB for i in (0, 1, 2, 3, HOST)] == [144, 128, 128, 128, 496]
    assert found[1]["weights_bytes"] / MIB == pytest.approx(2093.03, rel=1e-4)


def test_twenty_layers_on_one_gpu():
    """https://github.com/ggml-org/llama.cpp/issues/8551: 20 of 33 layers; the output stays on the host."""
    found = devices(LLAMA_2_7B, precision_id="gguf-q4_0", engine_version="3411", n_gpu_layers=20, context_tokens=3424)
    assert found[0]["kv_cache_bytes"] / MIB == 1070
    assert found[0]["weights_bytes"] / MIB == pytest.approx(2171.88, abs=0.02)
    assert found[HOST]["kv_cache_bytes"] / MIB == 642


def test_the_output_layer_moves_first_since_18148():
    """https://github.com/ggml-org/llama.cpp/pull/18148: n layers asked are the output and the last n - 1."""
    old, new = (
        devices(LLAMA_2_7B, precision_id="gguf-f16", engine_version=v, n_gpu_layers=1)[0] for v in ("b7000", "b8000")
    )
    layer = (4 * 4096**2 + 3 * 4096 * 11008) * 2 + 2 * 4096 * 4
    assert old["weights_bytes"] == layer
    assert new["weights_bytes"] == 32000 * 4096 * 2 + 4096 * 4  # output and output_norm


def test_experts_of_the_first_layers_stay_on_the_host():
    whole, part = (devices(QWEN3_30B_A3B, n_cpu_moe=n, engine_version="b6000") for n in (None, 20))
    stack = 3 * 768 * 2048 * 128 * 2  # one layer's experts at F16
    assert whole[0]["weights_bytes"] - part[0]["weights_bytes"] == 20 * stack
    assert part[HOST]["weights_bytes"] - whole[HOST]["weights_bytes"] == 20 * stack
    assert part[0]["kv_cache_bytes"] == whole[0]["kv_cache_bytes"]


def test_a_mapped_file_brings_the_per_layer_embedding():
    """On unified memory the range between two device tensors is mapped whole; a card has left it out since 2026."""
    table = 262144 * 42 * 256 * 2
    mac, card, old_card = memory(
        {"model": GEMMA_4_E4B, "vendor": "Apple", "is_unified_memory": True},
        {"model": GEMMA_4_E4B, "vendor": "NVIDIA", "is_unified_memory": False},
        {"model": GEMMA_4_E4B, "vendor": "NVIDIA", "is_unified_memory": False, "engine_version": "b8000"},
    )
    assert mac["weights_bytes"] - card["weights_bytes"] == table
    assert old_card["weights_bytes"] == mac["weights_bytes"]


@pytest.mark.parametrize(
    ("version", "kib"),
    [
        ("b5000", 61 * 128 * 320 * 2 / 1024),  # expanded: K 192 and V 128 of 128 heads
        ("b6000", 61 * (576 + 512) * 2 / 1024),  # the latent as K and as V (#12801)
        ("b8000", 61 * 576 * 2 / 1024),  # once (#19067)
    ],
)
def test_latent_caches_by_build(version, kib):
    answer = one(DEEPSEEK_V3, engine_version=version, context_tokens=4096)
    assert answer["kv_cache_bytes"] == 4096 * kib * 1024


def test_old_files_keep_the_expanded_cache():
    """DeepSeek-V2's public GGUF files are older than the split of attn_kv_b; no build reads them as latent."""
    assert one(DEEPSEEK_V2, context_tokens=4096)["kv_cache_bytes"] == 19200 * MIB


@pytest.mark.parametrize(
    ("version", "slots", "cells"),
    [
        ("b5000", 1, 32768),  # before #13194 every layer keeps the context
        ("b6900", 1, 768),  # 128 + 512, padded to 256
        ("b8000", None, 1024),  # llama-server's four slots share one stream: 4 x 128 + 512
        ("b8000", 4, 4 * 768),  # asked for, each has its own: 128 + 512, padded to 256
    ],
)
def test_cells_of_sliding_layers(version, slots, cells):
    """12 of gpt-oss-20b's 24 layers slide; a layer keeps 2 KiB a token."""
    answer = one(GPT_OSS_20B, engine_version=version, context_tokens=32768, n_parallel=slots)
    assert answer["kv_cache_bytes"] == 12 * 2048 * (32768 + cells)


def test_a_window_that_llama_cpp_does_not_read():
    """Phi-3's sliding window is switched off (#13676): 32 layers of 2 x 3072 elements keep the whole context."""
    cache = Cache(
        kind="sliding",
        layers=tuple(range(32)),
        elements_per_token=6144,
        kv_heads=32,
        key_dim=96,
        value_dim=96,
        window_tokens=2047,
    )
    windowed = Model(PHI_3_5_MINI.facts, [cache], PHI_3_5_MINI.tensors)
    assert one(windowed, engine_version="b8000", context_tokens=8192)["kv_cache_bytes"] == 3072 * MIB


def test_states_are_kept_in_f32_for_every_slot():
    """Qwen3-Next: 36 of 48 layers keep 32 x 128 x 128 elements of state and 3 x 8192 of convolution."""
    caches = [
        Cache(
            kind="full", layers=tuple(range(3, 48, 4)), elements_per_token=1024, kv_heads=2, key_dim=256, value_dim=256
        ),
        Cache(kind="linear_state", layers=tuple(i for i in range(48) if i % 4 != 3), fixed_elements=32 * 128 * 128),
        Cache(kind="conv_state", layers=tuple(i for i in range(48) if i % 4 != 3), fixed_elements=3 * 8192),
    ]
    model = Model(facts("Qwen/Qwen3-Next", layers=48, hidden_size=2048, vocab_size=151936), caches, [])
    state = 36 * (32 * 128 * 128 + 3 * 8192) * 4
    for slots in (1, 4):
        answer = one(model, engine_version="b8000", context_tokens=8192, n_parallel=slots)
        assert answer["kv_cache_bytes"] == 12 * 8192 * 2048 + slots * state


def test_an_encoder_keeps_no_kv():
    """https://github.com/gpustack/gguf-parser-go/issues/2: bge-m3 was given gigabytes of cache."""
    known = facts("BAAI/bge-m3", layers=24, hidden_size=1024, vocab_size=250002, attention_heads=16, is_encoder=True)
    model = Model(known, [], [("token_embd", 250002, 1024, 1, 0), ("ffn_up", 4096, 1024, 1, 24)])
    answer = one(model, context_tokens=8192, device_memory_bytes=8 * GIB)
    assert answer["kv_cache_bytes"] == 0
    assert answer["limited_by"] is None


def test_widths_of_lfm2_follow_the_layers():
    """https://github.com/gpustack/gguf-parser-go/issues/31: six of LFM2's sixteen layers attend; 384 MiB at 32k."""
    attention = Cache(
        kind="full", layers=(2, 5, 8, 10, 12, 14), elements_per_token=1024, kv_heads=8, key_dim=64, value_dim=64
    )
    model = Model(facts("LiquidAI/LFM2-1.2B", layers=16, hidden_size=2048, vocab_size=65536), [attention], [])
    assert one(model, context_tokens=32768, n_parallel=1)["kv_cache_bytes"] == 384 * MIB


def test_compressed_latents_beside_a_window():
    """https://github.com/ggml-org/llama.cpp/issues/27680: DeepSeek-V4-Flash at 64,000 tokens and a micro-batch of 4,096
    logs 182.75 MiB for the window (4,352 cells, 43 layers, 512 at 16 bits); entries for 4 or 128 tokens come on top."""
    every = tuple(range(43))
    caches = [
        Cache(kind="mla", layers=every, elements_per_token=512, key_dim=512, window_tokens=128),
        Cache(kind="mla", layers=every[2::2], elements_per_token=512, key_dim=512, tokens_per_entry=4),
        Cache(kind="mla", layers=every[3::2], elements_per_token=512, key_dim=512, tokens_per_entry=128),
    ]
    model = Model(
        facts("deepseek-ai/DeepSeek-V4-Flash", layers=43, hidden_size=4096, vocab_size=129280, kv_lora_rank=512),
        caches,
        [],
    )
    answer = one(
        model, engine_version="b10700", context_tokens=64000, n_ubatch=4096, n_parallel=1, kv_cache_dtype="bf16"
    )
    compressed = 1024 * (21 * 64000 // 4 + 20 * 64000 // 128)
    assert answer["kv_cache_bytes"] - compressed == 182.75 * MIB
