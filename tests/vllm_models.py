"""Shapes of published models, as far as vLLM's memory reads them, and a deployment to put them on.

The numbers are those of each repository's config.json on huggingface.co.
"""

from dataclasses import replace
from pathlib import Path

import polars as pl

from fitmart.estimator.anatomy import Anatomy, Cache, ModelFacts, Tensor, to_frames
from fitmart.estimator.engines.vllm import vllm_memory
from fitmart.estimator.engines.vllm_kv import with_pool
from fitmart.estimator.engines.vllm_pages import LAYOUT_KEY, cutlass_mla, page_layout
from fitmart.estimator.engines.vllm_rules import VllmRules
from fitmart.estimator.engines.vllm_settings import with_settings
from fitmart.estimator.frames import DEPLOYMENT_SCHEMA

GIB = 2**30
SEEDS = Path(__file__).parents[1] / "warehouse" / "seeds"
RULES = {p.stem: pl.read_csv(p, infer_schema_length=None, try_parse_dates=True) for p in SEEDS.glob("vllm_*.csv")}
TABLES = VllmRules.of(RULES)

_GPU = {
    "vendor": pl.String,
    "gpu_name": pl.String,
    "compute_capability": pl.String,
    "torch_memory_bytes": pl.Int64,
    "is_unified_memory": pl.Boolean,
}


def facts(model_id, **given):
    base = {
        "family": "test",
        "architecture": "LlamaForCausalLM",
        "model_type": "llama",
        "task": "text-generation",
        "layers": 32,
        "hidden_size": 4096,
        "vocab_size": 128256,
        "max_context_tokens": 131072,
        "extended_context_tokens": 131072,
    }
    return ModelFacts(model_id=model_id, **(base | given))


def attention(kind, layers, heads, dim, window=None):
    return Cache(
        kind=kind,
        layers=tuple(range(layers)),
        elements_per_token=2 * heads * dim,
        window_tokens=window,
        kv_heads=heads,
        key_dim=dim,
        value_dim=dim,
    )


def gated_delta(layers, key_heads, value_heads, dim, kernel, state_bytes):
    ids = tuple(range(layers))
    channels = (2 * key_heads + value_heads) * dim
    return (
        Cache(
            kind="linear_state",
            layers=ids,
            fixed_elements=value_heads * dim * dim,
            state_heads=value_heads,
            state_key_dim=dim,
            state_value_dim=dim,
            state_element_bytes=state_bytes,
        ),
        Cache(
            kind="conv_state",
            layers=ids,
            fixed_elements=channels * (kernel - 1),
            conv_channels=channels,
            conv_kernel=kernel,
        ),
    )


def latent(layers, width):
    return Cache(kind="mla", layers=tuple(range(layers)), elements_per_token=width, key_dim=width)


def indexer(layers, width):
    return Cache(kind="indexer", layers=tuple(range(layers)), elements_per_token=width, key_dim=width)


def dense(model_id, layers, hidden, vocab, heads, kv_heads, dim, ffn, **given):
    shape = {
        "layers": layers,
        "hidden_size": hidden,
        "vocab_size": vocab,
        "attention_heads": heads,
        "kv_heads": kv_heads,
        "head_dim": dim,
        "intermediate_size": ffn,
    }
    return Anatomy(
        facts=facts(model_id, **(shape | given)), tensors=(), caches=(attention("full", layers, kv_heads, dim),)
    )


def tower(layers, hidden, width):
    """The MLP of a vision tower, whose sizes decide what its pass holds."""
    ids = tuple(range(layers))
    up = Tensor(component="vision", name="vision.{layer}.fc1", rows=width, columns=hidden, layers=ids)
    return up, Tensor(component="vision", name="vision.{layer}.fc2", rows=hidden, columns=width, layers=ids)


LLAMA_8B = dense("llama-3.1-8b", 32, 4096, 128256, 32, 8, 128, 14336)
LLAMA_70B = dense("llama-3.3-70b", 80, 8192, 128256, 64, 8, 128, 28672)
QWEN3_06B = dense("qwen3-0.6b", 28, 1024, 151936, 16, 8, 128, 3072, architecture="Qwen3ForCausalLM")
QWEN3_32B = dense("qwen3-32b", 64, 5120, 151936, 64, 8, 128, 25600, architecture="Qwen3ForCausalLM")
QWEN25_05B = dense("qwen2.5-0.5b", 24, 896, 151936, 14, 2, 64, 4864, architecture="Qwen2ForCausalLM")
QWEN25_15B = dense("qwen2.5-1.5b", 28, 1536, 151936, 12, 2, 128, 8960, architecture="Qwen2ForCausalLM")
QWEN25_3B = dense("qwen2.5-3b", 36, 2048, 151936, 16, 2, 128, 11008, architecture="Qwen2ForCausalLM")
QWEN25_7B = dense("qwen2.5-7b", 28, 3584, 152064, 28, 4, 128, 18944, architecture="Qwen2ForCausalLM")
R1_QWEN_32B = dense("r1-distill-qwen-32b", 64, 5120, 152064, 40, 8, 128, 27648, architecture="Qwen2ForCausalLM")
OPT_125M = dense("opt-125m", 12, 768, 50272, 12, 12, 64, 3072, architecture="OPTForCausalLM")
E5_MISTRAL = dense("e5-mistral-7b", 32, 4096, 32000, 32, 8, 128, 14336, task="feature-extraction")
QWEN3_30B_A3B = dense(
    "qwen3-30b-a3b", 48, 2048, 151936, 32, 4, 128, 6144,
    architecture="Qwen3MoeForCausalLM", experts=128, experts_per_token=8, expert_intermediate_size=768,
)  # fmt: skip
GPT_OSS_20B = Anatomy(
    facts=facts(
        "gpt-oss-20b", layers=24, hidden_size=2880, vocab_size=201088, attention_heads=64, kv_heads=8, head_dim=64,
        intermediate_size=2880, experts=32, experts_per_token=4, expert_intermediate_size=2880,
        architecture="GptOssForCausalLM",
    ),
    tensors=(),
    caches=(attention("full", 12, 8, 64), attention("sliding", 12, 8, 64, window=128)),
)  # fmt: skip
GEMMA4_26B = Anatomy(
    facts=facts("gemma-4-26b-a4b", layers=30, hidden_size=2816, vocab_size=262144, max_context_tokens=262144,
                extended_context_tokens=262144, attention_heads=16, kv_heads=8, head_dim=256, experts=128),
    tensors=(),
    caches=(attention("full", 5, 2, 512), attention("sliding", 25, 8, 256, window=1024)),
)  # fmt: skip
# 42 layers, of which the last 18 share the cache of earlier ones: 24 own layers, every sixth of them full.
GEMMA4_E4B = Anatomy(
    facts=facts("gemma-4-e4b", layers=42, hidden_size=2560, vocab_size=262144, attention_heads=8, kv_heads=2),
    tensors=(),
    caches=(attention("full", 4, 2, 512), attention("sliding", 20, 2, 256, window=512)),
)
QWEN35_27B = Anatomy(
    facts=facts("qwen3.5-27b", layers=64, hidden_size=5120, vocab_size=248320, attention_heads=24, kv_heads=4,
                max_context_tokens=262144, extended_context_tokens=262144, mtp_layers=1),
    tensors=(),
    caches=(attention("full", 16, 4, 256), *gated_delta(48, 16, 48, 128, 4, 4)),
)  # fmt: skip
QWEN35_9B = Anatomy(
    facts=facts("qwen3.5-9b", layers=32, hidden_size=4096, vocab_size=248320, attention_heads=16, kv_heads=4,
                max_context_tokens=262144, extended_context_tokens=262144, mtp_layers=1),
    tensors=(),
    caches=(attention("full", 8, 4, 256), *gated_delta(24, 16, 32, 128, 4, 4)),
)  # fmt: skip
QWEN35_35B = Anatomy(
    facts=facts("qwen3.5-35b-a3b", layers=40, hidden_size=2048, vocab_size=248320, attention_heads=16, kv_heads=2,
                max_context_tokens=262144, extended_context_tokens=262144, mtp_layers=1, experts=256),
    tensors=(),
    caches=(attention("full", 10, 2, 256), *gated_delta(30, 16, 32, 128, 4, 4)),
)  # fmt: skip
DEEPSEEK_V3 = Anatomy(
    facts=facts("deepseek-v3", layers=61, hidden_size=7168, vocab_size=129280, attention_heads=128, kv_heads=128,
                kv_lora_rank=512, experts=256, experts_per_token=8, expert_intermediate_size=2048),
    tensors=(),
    caches=(latent(61, 576),),
)  # fmt: skip
DEEPSEEK_V32 = Anatomy(
    facts=facts("deepseek-v3.2", layers=61, hidden_size=7168, vocab_size=129280, attention_heads=128, kv_heads=128,
                kv_lora_rank=512, experts=256, experts_per_token=8, expert_intermediate_size=2048),
    tensors=(),
    caches=(latent(61, 576), indexer(61, 128)),
)  # fmt: skip
# DeepSeek-V4-Flash: every layer keeps a window of 128 latents; 21 layers also one latent and one index key for 4
# tokens, 20 one latent for 128.
DEEPSEEK_V4 = Anatomy(
    facts=facts("deepseek-v4-flash", layers=43, vocab_size=129280, attention_heads=64, kv_heads=1, kv_lora_rank=512,
                max_context_tokens=1048576, extended_context_tokens=1048576),
    tensors=(),
    caches=(
        replace(latent(43, 512), window_tokens=128),
        replace(latent(21, 512), tokens_per_entry=4),
        replace(indexer(21, 128), tokens_per_entry=4),
        replace(latent(20, 512), tokens_per_entry=128),
    ),
)  # fmt: skip
MISTRAL_V01 = Anatomy(
    facts=facts("mistral-7b-v0.1", layers=32, vocab_size=32000, attention_heads=32, kv_heads=8, head_dim=128,
                intermediate_size=14336, max_context_tokens=32768, extended_context_tokens=32768),
    tensors=(),
    caches=(attention("sliding", 32, 8, 128, window=4096),),
)  # fmt: skip
# Jamba 1.5 Mini: 4 attention layers, 28 Mamba layers of inner size 8192, state 16, convolution of 4.
JAMBA_MINI = Anatomy(
    facts=facts("jamba-1.5-mini", layers=32, hidden_size=4096, vocab_size=65536, attention_heads=32, kv_heads=8,
                head_dim=128, intermediate_size=14336, experts=16, experts_per_token=2,
                expert_intermediate_size=14336),
    tensors=(),
    caches=(
        attention("full", 4, 8, 128),
        Cache(kind="linear_state", layers=tuple(range(28)), fixed_elements=8192 * 16, state_heads=8192,
              state_key_dim=1, state_value_dim=16),
        Cache(kind="conv_state", layers=tuple(range(28)), fixed_elements=8192 * 3, conv_channels=8192, conv_kernel=4),
    ),
)  # fmt: skip
BERT = Anatomy(
    facts=facts("bert-base", layers=12, hidden_size=768, vocab_size=30522, attention_heads=12, kv_heads=12,
                head_dim=64, intermediate_size=3072, task="feature-extraction", is_encoder=True,
                max_context_tokens=512, extended_context_tokens=512),
    tensors=(),
    caches=(),
)  # fmt: skip
LLAVA_7B = Anatomy(
    facts=facts(
        "llava-1.5-7b", model_type="llava", layers=32, vocab_size=32064, attention_heads=32, kv_heads=32, head_dim=128,
        intermediate_size=11008, max_context_tokens=4096, extended_context_tokens=4096, is_multimodal=True,
        architecture="LlavaForConditionalGeneration",
    ),
    tensors=tower(24, 1024, 4096),
    caches=(attention("full", 32, 32, 128),),
)  # fmt: skip
QWEN25_VL_72B = Anatomy(
    facts=facts(
        "qwen2.5-vl-72b", model_type="qwen2_5_vl", layers=80, hidden_size=8192, vocab_size=152064, attention_heads=64,
        kv_heads=8, head_dim=128, intermediate_size=29568, max_context_tokens=128000, extended_context_tokens=128000,
        is_multimodal=True, architecture="Qwen2_5_VLForConditionalGeneration",
    ),
    tensors=tower(32, 1280, 3456),
    caches=(attention("full", 80, 8, 128),),
)  # fmt: skip
MODELS = [
    LLAMA_8B, LLAMA_70B, QWEN3_06B, QWEN3_32B, QWEN25_05B, QWEN25_15B, QWEN25_3B, QWEN25_7B, R1_QWEN_32B, OPT_125M,
    E5_MISTRAL, QWEN3_30B_A3B, GPT_OSS_20B, GEMMA4_26B, GEMMA4_E4B, QWEN35_27B, QWEN35_9B, QWEN35_35B, DEEPSEEK_V3,
    DEEPSEEK_V32, DEEPSEEK_V4, MISTRAL_V01, JAMBA_MINI, BERT, LLAVA_7B, QWEN25_VL_72B,
]  # fmt: skip
FRAMES = to_frames(MODELS)


def deployment(model, **given):
    """Rows for `vllm_memory`; a scalar stands for all rows, a list gives one row an entry."""
    base = {"model_id": model.facts.model_id, "precision_id": "bf16", "engine_id": "vllm", "engine_core": "v1"}
    given = base | given
    count = max((len(v) for v in given.values() if isinstance(v, list)), default=1)
    columns = {k: v if isinstance(v, list) else [v] * count for k, v in given.items()}
    schema = dict(DEPLOYMENT_SCHEMA) | _GPU
    rows = {name: columns.get(name, [None] * count) for name in schema} | {"row": list(range(count))}
    return pl.DataFrame(rows, schema=schema)


def memory(model, weights_gib=1.0, **given):
    """Engine memory of `deployment(model, …)` with these weights on the fullest GPU."""
    rows = deployment(model, **given)
    weights = pl.lit(int(weights_gib * GIB), pl.Int64)
    shards = rows.select("row", weights_bytes=weights)
    return vllm_memory(rows, *FRAMES, shards, RULES)


def pool(model, kv_gib, **given):
    """The cache stage alone, for a pool of so many GiB: what vLLM prints once it has found the pool's size."""
    models, _, caches = FRAMES
    rows = with_settings(deployment(model, **given), models, caches, TABLES).with_columns(is_cutlass_mla=cutlass_mla())
    rows = rows.join(page_layout(rows, caches), on=list(LAYOUT_KEY), how="left", nulls_equal=True)
    return with_pool(rows.with_columns(kv_available_bytes=pl.lit(int(kv_gib * GIB), pl.Int64)))
