"""What one sequence keeps, against hand calculations from each model's published sizes. All at 2 bytes an element."""

from typing import Any

import polars as pl
import pytest
from published_configs import anatomy, config

from fitmart.estimator.anatomy import Anatomy, to_frames
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.kv_cache import kv_minimum_bytes

K = 1024


def kept(model: Anatomy, tokens: int) -> int:
    """Bytes at 16 bit."""
    _, _, caches = to_frames([model])
    wanted = pl.DataFrame({"model_id": [model.facts.model_id], "context_tokens": [tokens], "kv_precision": ["bf16"]})
    return int(kv_minimum_bytes(caches, wanted)["minimum_bytes"][0])


# (model, context, bytes): the product says how.
FORMULAS: list[tuple[str, int, int]] = [
    # K and V × layers × KV heads × head_dim × 2 B
    ("meta-llama/Llama-3.1-8B-Instruct", 8 * K, 2 * 32 * 8 * 128 * 2 * 8 * K),
    ("Qwen/Qwen3-0.6B", K, 2 * 28 * 8 * 128 * 2 * K),  # head_dim 128, not 1024 / 16
    ("mistralai/Mistral-Nemo-Instruct-2407", K, 2 * 40 * 8 * 128 * 2 * K),  # not 5120 / 32
    ("microsoft/phi-1_5", K, 2 * 24 * 32 * 64 * 2 * K),  # KV heads null: all
    ("openai-community/gpt2", K, 2 * 12 * 12 * 64 * 2 * K),
    ("facebook/opt-6.7b", K, 2 * 32 * 32 * 128 * 2 * K),
    ("bigscience/bloom", K, 2 * 70 * 112 * 128 * 2 * K),
    ("EleutherAI/pythia-6.9b", K, 2 * 32 * 32 * 128 * 2 * K),
    ("tiiuae/falcon-7b", K, 2 * 32 * 1 * 64 * 2 * K),  # multi_query
    ("tiiuae/falcon-180B-chat", K, 2 * 80 * 8 * 64 * 2 * K),
    ("databricks/dbrx-instruct", K, 2 * 40 * 8 * 128 * 2 * K),
    ("LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct", K, 2 * 32 * 8 * 128 * 2 * K),
    ("MiniMaxAI/MiniMax-M2", K, 2 * 62 * 8 * 128 * 2 * K),  # full attention everywhere
    ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", K, 2 * 49 * 8 * 128 * 2 * K),  # 31 of 80 layers have no attention
    # windows
    ("Qwen/Qwen2.5-7B-Instruct", 64 * K, 2 * 28 * 4 * 128 * 2 * 64 * K),  # window there, but off
    ("mistralai/Mistral-7B-v0.1", 64 * K, 2 * 32 * 8 * 128 * 2 * 4096),
    ("mistralai/Mistral-7B-Instruct-v0.3", 64 * K, 2 * 32 * 8 * 128 * 2 * 64 * K),  # window null
    ("microsoft/Phi-3-mini-4k-instruct", 4 * K, 2 * 32 * 32 * 96 * 2 * 2047),
    ("bigcode/starcoder2-7b", 16 * K, 2 * 32 * 4 * 128 * 2 * 4096),
    ("google/gemma-2-9b-it", 8 * K, 2 * 8 * 256 * 2 * (21 * 8 * K + 21 * 4096)),
    ("openai/gpt-oss-20b", 8 * K, 2 * 8 * 64 * 2 * (12 * 8 * K + 12 * 128)),
    ("google/gemma-3-1b-it", 8 * K, 2 * 1 * 256 * 2 * (4 * 8 * K + 22 * 512)),
    ("google/gemma-3-27b-it", 8 * K, 2 * 16 * 128 * 2 * (10 * 8 * K + 52 * K)),
    ("CohereLabs/c4ai-command-r7b-12-2024", 8 * K, 2 * 8 * 128 * 2 * (8 * 8 * K + 24 * 4096)),
    ("LGAI-EXAONE/EXAONE-4.0-32B", 8 * K, 2 * 8 * 128 * 2 * (16 * 8 * K + 48 * 4096)),
    ("allenai/Olmo-3-1025-7B", 8 * K, 2 * 32 * 128 * 2 * (8 * 8 * K + 24 * 4096)),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 64 * K, 2 * 8 * 128 * 2 * (12 * 64 * K + 36 * 8192)),
    ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 64 * K, 2 * 8 * 128 * 2 * (12 * 64 * K + 36 * 8192)),
    ("poolside/Laguna-XS-2.1", 8 * K, 2 * 8 * 128 * 2 * (10 * 8 * K + 30 * 512)),
    # other heads on local layers; values narrower than keys
    ("XiaomiMiMo/MiMo-V2-Flash", 8 * K, (192 + 128) * 2 * (9 * 4 * 8 * K + 39 * 8 * 128)),
    ("google/gemma-4-31B-it", 8 * K, 2 * 2 * (10 * 4 * 512 * 8 * K + 50 * 16 * 256 * K)),
    # the last 18 of 42 layers reuse KV: 4 full and 20 sliding layers own some
    ("google/gemma-4-E4B-it", 8 * K, 2 * 2 * (4 * 2 * 512 * 8 * K + 20 * 2 * 256 * 512)),
    ("google/gemma-3n-E4B-it", 8 * K, 2 * 2 * 2 * 256 * (4 * 8 * K + 16 * 512)),
    # latents: kv_lora_rank + rope, one copy for all heads
    ("deepseek-ai/DeepSeek-R1", K, 61 * 576 * 2 * K),
    ("deepseek-ai/DeepSeek-V2-Lite", K, 27 * 576 * 2 * K),
    ("moonshotai/Kimi-K2.5", K, 61 * 576 * 2 * K),
    ("zai-org/GLM-4.7-Flash", K, 47 * 576 * 2 * K),
    ("deepseek-ai/DeepSeek-V3.2", K, 61 * (576 + 128) * 2 * K),
    ("zai-org/GLM-5", K, 78 * (576 + 128) * 2 * K),
    ("zai-org/GLM-5.2", K, (78 * 576 + 21 * 128) * 2 * K),  # 21 layers own an indexer
    # one window a layer, T/4 entries in 21 layers with index keys, T/128 in 20
    ("deepseek-ai/DeepSeek-V4-Flash", 8 * K, 2 * (43 * 512 * 128 + 21 * (512 + 128) * 2 * K + 20 * 512 * 64)),
    # states: heads × dk × dv and (2 nk dk + nv dv) × (kernel - 1)
    ("Qwen/Qwen3.5-27B", K, 2 * (2 * 16 * 4 * 256 * K + 48 * (48 * 128 * 128 + 10240 * 3))),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", K, 2 * (2 * 12 * 2 * 256 * K + 36 * (32 * 128 * 128 + 8192 * 3))),
    ("moonshotai/Kimi-Linear-48B-A3B-Instruct", K, 2 * (7 * 576 * K + 20 * (32 * 128 * 128 + 3 * 4096 * 3))),
    ("MiniMaxAI/MiniMax-Text-01", K, 2 * (2 * 10 * 8 * 128 * K + 70 * 64 * 128 * 128)),
    ("LiquidAI/LFM2-1.2B", K, 2 * (2 * 6 * 8 * 64 * K + 10 * 2048 * 2)),
    ("ai21labs/AI21-Jamba-Mini-1.5", K, 2 * (2 * 4 * 8 * 128 * K + 28 * 8192 * (16 + 3))),
    ("ibm-granite/granite-4.0-h-small", K, 2 * (2 * 4 * 8 * 128 * K + 36 * (128 * 64 * 128 + 8448 * 3))),
    ("ibm-ai-platform/Bamba-9B-v2", K, 2 * (2 * 3 * 8 * 128 * K + 29 * (128 * 64 * 128 + 8448 * 3))),
    ("tiiuae/Falcon-H1-7B-Instruct", K, 2 * 44 * (2 * 2 * 128 * K + 24 * 128 * 256 + 3584 * 3)),
    ("nvidia/Nemotron-H-8B-Base-8K", K, 2 * (2 * 4 * 8 * 128 * K + 24 * (128 * 64 * 128 + 10240 * 3))),
    ("state-spaces/mamba-2.8b-hf", K, 2 * 64 * 5120 * (16 + 3)),
    ("google/recurrentgemma-2b", 8 * K, 2 * (2 * 8 * 256 * 2 * K + 18 * 2560 * (1 + 3))),
    ("meta-llama/Llama-3.2-11B-Vision-Instruct", K, 2 * 32 * 8 * 128 * 2 * K),  # 8 of 40 layers read the image
    ("BAAI/bge-m3", K, 0),
    ("answerdotai/ModernBERT-base", K, 0),
]


@pytest.mark.parametrize(("model_id", "tokens", "want"), FORMULAS)
def test_minimum_bytes(model_id: str, tokens: int, want: int) -> None:
    assert kept(anatomy(model_id), tokens) == want


@pytest.mark.parametrize(
    ("model_id", "kind"),
    [
        ("meta-llama/Llama-2-7b-hf", "mha"),
        ("meta-llama/Llama-3.1-8B-Instruct", "gqa"),
        ("tiiuae/falcon-7b", "mqa"),
        ("deepseek-ai/DeepSeek-R1", "mla"),
        ("deepseek-ai/DeepSeek-V4-Flash", "mla"),
        ("Qwen/Qwen3.5-27B", "hybrid"),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "hybrid"),
        ("state-spaces/mamba-2.8b-hf", "none"),
        ("BAAI/bge-m3", "none"),
    ],
)
def test_attention_kind(model_id: str, kind: str) -> None:
    assert anatomy(model_id).facts.attention_kind == kind


def test_head_dim_says_nothing_with_latent_attention() -> None:
    assert anatomy("zai-org/GLM-5", head_dim=64).tensors == anatomy("zai-org/GLM-5", head_dim=192).tensors


@pytest.mark.parametrize(
    ("model_id", "pattern"),
    [("google/gemma-3-1b-it", 6), ("CohereLabs/c4ai-command-r7b-12-2024", 4), ("LGAI-EXAONE/EXAONE-4.0-32B", "LLLG")],
)
def test_older_files_state_a_pattern_instead_of_layer_types(model_id: str, pattern: Any) -> None:
    old = config(model_id, sliding_window_pattern=pattern)
    old.pop("layer_types", None)
    assert kept(parse_config("old", old), 8 * K) == kept(anatomy(model_id), 8 * K)


def test_kv_shapes_that_engines_cut() -> None:
    (cache,) = anatomy("meta-llama/Llama-3.1-8B-Instruct").caches
    assert (cache.kv_heads, cache.key_dim, cache.value_dim, len(cache.layers)) == (8, 128, 128, 32)
    state = next(c for c in anatomy("Qwen/Qwen3.5-27B").caches if c.kind == "linear_state")
    assert (state.state_heads, state.state_key_dim, state.state_value_dim) == (48, 128, 128)
    conv = next(c for c in anatomy("Qwen/Qwen3.5-27B").caches if c.kind == "conv_state")
    assert (conv.conv_channels, conv.conv_kernel) == (10240, 4)
    assert {c.kind for c in anatomy("meta-llama/Llama-3.2-11B-Vision-Instruct").caches} == {"full", "cross"}
