"""Compute buffers that llama.cpp logged, largest device, MiB."""

import pytest
from llamacpp_models import (
    DEEPSEEK_V2,
    DEEPSEEK_V2_LITE,
    GEMMA_2B,
    LLAMA_2_7B,
    MIB,
    MISTRAL_7B,
    MISTRAL_7B_V2,
    PHI_3_5_MINI,
    QWEN2_1_5B,
    QWEN2_7B,
    QWEN3_30B_A3B,
    QWQ_32B,
    dense,
    one,
)

ISSUE = "https://github.com/ggml-org/llama.cpp/issues/"
PHI_4 = dense(
    "microsoft/phi-4", layers=40, hidden=5120, feed=17920, heads=40, kv_heads=10, vocab=100352, max_context_tokens=16384
)
GEMMA_2_27B = dense(
    "google/gemma-2-27b-it", layers=46, hidden=4608, feed=36864, heads=32, kv_heads=16, vocab=256000, is_tied=True
)
MINITRON_49B = dense(
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1", layers=80, hidden=8192, feed=28672, heads=64, kv_heads=8, vocab=128256
)
# (log, model, build or day, context, further settings, MiB)
LOGS = [
    # the logits decide
    (ISSUE + "14307", QWEN3_30B_A3B, "5716", 4096, {}, 300.75),
    (ISSUE + "8503", QWEN2_7B, "2024-07-16", 512, {"n_ubatch": 32}, 19.0),
    (ISSUE + "12277", GEMMA_2B, "4857", 4096, {}, 504.25),
    (ISSUE + "14441", QWEN2_1_5B, "5747", 4096, {}, 299.75),
    # the score matrix
    (ISSUE + "7450", MISTRAL_7B_V2, "2024-05-22", 32000, {}, 2094.5),
    (ISSUE + "9106", LLAMA_2_7B, "3609", 4096, {}, 296.0),
    # and the joint query, key and value beside it
    (ISSUE + "9451", PHI_3_5_MINI, "3735", 4096, {}, 300.0),
    (ISSUE + "9112", PHI_3_5_MINI, "3609", 131072, {}, 8484.0),
    # the feed-forward
    (ISSUE + "8213", MISTRAL_7B, "2024-06-29", 512, {}, 81.0),
    # eight GPUs without events, and two with: four copies of the inputs
    (ISSUE + "8294", MISTRAL_7B, "3292", 32768, {"gpu_count": 8, "vendor": "Intel"}, 2144.0),
    (ISSUE + "14752", MINITRON_49B, "5894", 4096, {"gpu_count": 2, "vendor": "NVIDIA"}, 672.01),
    (ISSUE + "12012", PHI_4, "4753", 4096, {"gpu_count": 2, "vendor": "AMD"}, 437.02),
    # expanded latent attention
    (ISSUE + "12390", DEEPSEEK_V2_LITE, "4887", 4096, {}, 213.03),
    (ISSUE + "7652", DEEPSEEK_V2_LITE, "3047", 4096, {}, 212.0),
    (ISSUE + "8862", DEEPSEEK_V2_LITE, "3509", 24608, {}, 841.07),
    (ISSUE + "8263", DEEPSEEK_V2, "2024-07-02", 4096, {}, 1174.0),
    # nothing offloaded: the output matrix passes through the GPU beside the logits
    (ISSUE + "9587", GEMMA_2_27B, "3802", 8192, {"n_gpu_layers": 0, "precision_id": "gguf-q8_0"}, 1704.31),
]


@pytest.mark.parametrize(("log", "model", "version", "context", "settings", "mib"), LOGS)
def test_compute_buffers_are_those_logged(log, model, version, context, settings, mib):
    answer = one(model, engine_version=version, context_tokens=context, **({"flash_attention": False} | settings))
    assert answer["compute_buffer_bytes"] / MIB == pytest.approx(mib, rel=0.015)


def test_flash_attention_on_two_pipelined_gpus():
    """https://github.com/ggml-org/llama.cpp/issues/11200: 233.00 and 237.51 MiB at a micro-batch of 256."""
    answer = one(
        QWQ_32B, engine_version="4462", context_tokens=32768, n_ubatch=256, gpu_count=2, vendor="NVIDIA",
        flash_attention=True,
    )  # fmt: skip
    assert answer["compute_buffer_bytes"] / MIB == pytest.approx(233.0, rel=0.001)


def test_the_server_reserves_few_logits_since_23861():
    """https://github.com/ggml-org/llama.cpp/pull/23861: one row a slot instead of one a token of the micro-batch."""
    given = {"model": QWEN3_30B_A3B, "context_tokens": 4096, "flash_attention": True}
    before, server, offline = (
        one(**given, engine_version=v, usage=u)["compute_buffer_bytes"]
        for v, u in (("b9000", "server"), ("b9600", "server"), ("b9600", "offline"))
    )
    assert before == offline > 300 * MIB
    assert server < 100 * MIB


def test_host_experts_pass_through_the_gpu():
    """op_offload copies the largest host matrix, a stack of experts, for a large batch."""
    whole, part = (one(QWEN3_30B_A3B, n_cpu_moe=n, context_tokens=8192)["compute_buffer_bytes"] for n in (None, 48))
    assert part - whole == 128 * 768 * 2048 * 2
