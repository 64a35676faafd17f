"""Shapes of published models, as far as llama.cpp's memory reads them, and a deployment to put them on.

The numbers are those of each repository's config.json on huggingface.co; the GGUF layout is the converter's.
"""

from pathlib import Path

import polars as pl

from fitmart.estimator.anatomy import Anatomy, Cache, ModelFacts, to_frames
from fitmart.estimator.engines.llamacpp import llamacpp_memory
from fitmart.estimator.engines.llamacpp_rules import (
    BUILD_SCHEMA,
    CACHE_TYPE_SCHEMA,
    MODEL_RULE_SCHEMA,
    OVERHEAD_SCHEMA,
    RULE_SCHEMA,
)
from fitmart.estimator.frames import DEPLOYMENT_SCHEMA, GGUF_TENSOR_SCHEMA

MIB, GIB = 2**20, 2**30
SEEDS = Path(__file__).parents[1] / "warehouse" / "seeds"
SCHEMAS = {
    "llamacpp_rule": RULE_SCHEMA,
    "llamacpp_build": BUILD_SCHEMA,
    "llamacpp_cache_type": CACHE_TYPE_SCHEMA,
    "llamacpp_overhead": OVERHEAD_SCHEMA,
    "llamacpp_model_rule": MODEL_RULE_SCHEMA,
}
RULES = {name: pl.read_csv(SEEDS / f"{name}.csv", schema_overrides=dict(want)) for name, want in SCHEMAS.items()}
# bytes of one weight: ggml's block sizes
WEIGHT = {"gguf-f32": 4, "gguf-f16": 2, "gguf-q8_0": 34 / 32, "gguf-q4_0": 18 / 32, "gguf-q4_1": 20 / 32}
_GPU = {
    "vendor": pl.String,
    "memory_bytes": pl.Int64,
    "torch_memory_bytes": pl.Int64,
    "is_unified_memory": pl.Boolean,
    "addressable_share": pl.Float64,
}


class Model:
    """Facts, caches and GGUF tensors of one model: what a parser and the size rules would hand over."""

    def __init__(self, facts: ModelFacts, caches: list[Cache], tensors: list[tuple]) -> None:
        """`tensors`: (role, rows, columns, copies, how many layers; 0: once)."""
        self.facts, self.caches, self.tensors = facts, caches, tensors

    def gguf(self, precision: str, version: str | None) -> list[dict]:
        rows = []
        for role, height, width, copies, layers in self.tensors:
            size = WEIGHT[precision] if width > 1 else 4
            one = int(height * width * copies * size)
            if precision == "gguf-q4_0" and role == "output":
                one = height * width * 210 // 256  # the output matrix of a Q4_0 file is Q6_K
            rows.append(
                {
                    "model_id": self.facts.model_id,
                    "precision_id": precision,
                    "engine_version": version,
                    "imatrix": None,
                    "component": "attention",
                    "role": role,
                    "tensor": role,
                    "layer_ids": list(range(layers)),
                    "ggml_type": precision,
                    "rows": height,
                    "columns": width,
                    "copies": copies,
                    "layer_bytes": one,
                    "total_bytes": one * max(layers, 1),
                }
            )
        return rows


def facts(model_id: str, **given: object) -> ModelFacts:
    base = {
        "family": "test",
        "architecture": None,
        "model_type": "llama",
        "task": "text-generation",
        "max_context_tokens": 131072,
    }
    return ModelFacts(model_id=model_id, **(base | given))  # type: ignore[arg-type]


def dense(
    model_id: str,
    *,
    layers: int,
    hidden: int,
    feed: int,
    heads: int,
    kv_heads: int,
    vocab: int,
    head_dim: int = 128,
    is_tied: bool = False,
    has_bias: bool = False,
    is_fused: bool = False,
    **given: object,
) -> Model:
    """A plain decoder: RMS norms, gated feed-forward; `is_fused`: one matrix for q, k and v."""
    query, kv = heads * head_dim, kv_heads * head_dim
    joint = [("attn_qkv", query + 2 * kv, hidden)]
    parts = joint if is_fused else [("attn_q", query, hidden), ("attn_k", kv, hidden), ("attn_v", kv, hidden)]
    parts += [("attn_output", hidden, query), ("ffn_up", feed, hidden), ("ffn_gate", feed, hidden)]
    parts += [("ffn_down", hidden, feed), ("attn_norm", hidden, 1), ("ffn_norm", hidden, 1)]
    if has_bias:
        parts += [("attn_q.bias", query, 1), ("attn_k.bias", kv, 1), ("attn_v.bias", kv, 1)]
    tensors = [(*part, 1, layers) for part in parts]
    tensors += [("token_embd", vocab, hidden, 1, 0), ("output_norm", hidden, 1, 1, 0)]
    if not is_tied:
        tensors.append(("output", vocab, hidden, 1, 0))
    cache = Cache(
        kind="full",
        layers=tuple(range(layers)),
        elements_per_token=2 * kv,
        kv_heads=kv_heads,
        key_dim=head_dim,
        value_dim=head_dim,
    )
    known = facts(
        model_id,
        layers=layers,
        hidden_size=hidden,
        vocab_size=vocab,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=feed,
        is_tied=is_tied,
        **given,
    )
    return Model(known, [cache], tensors)


def latent(
    model_id: str, *, layers: int, hidden: int, heads: int, q_lora: int | None, vocab: int, **given: object
) -> Model:
    """DeepSeek-V2's attention: latent 512 + 64 rotary, heads of 192 and 128; no weights but those that are read."""
    tensors = [
        ("attn_q_b" if q_lora else "attn_q", heads * 192, q_lora or hidden, 1, layers),
        ("attn_kv_b", heads * 256, 512, 1, layers),
        ("attn_output", hidden, heads * 128, 1, layers),
        ("token_embd", vocab, hidden, 1, 0),
        ("output", vocab, hidden, 1, 0),
    ]
    cache = Cache(kind="mla", layers=tuple(range(layers)), elements_per_token=576, key_dim=576)
    known = facts(
        model_id,
        layers=layers,
        hidden_size=hidden,
        vocab_size=vocab,
        attention_heads=heads,
        attention_kind="mla",
        q_lora_rank=q_lora,
        kv_lora_rank=512,
        **given,
    )
    return Model(known, [cache], tensors)


LLAMA_2_7B = dense(
    "meta-llama/Llama-2-7b-hf", layers=32, hidden=4096, feed=11008, heads=32, kv_heads=32, vocab=32000,
    max_context_tokens=4096,
)  # fmt: skip
MISTRAL_7B = dense(
    "mistralai/Mistral-7B-Instruct-v0.3", layers=32, hidden=4096, feed=14336, heads=32, kv_heads=8, vocab=32768,
    model_type="mistral", max_context_tokens=32768,
)  # fmt: skip
MISTRAL_7B_V2 = dense(
    "mistralai/Mistral-7B-Instruct-v0.2", layers=32, hidden=4096, feed=14336, heads=32, kv_heads=8, vocab=32000,
    model_type="mistral", max_context_tokens=32768,
)  # fmt: skip
QWEN2_7B = dense(
    "Qwen/Qwen2-7B-Instruct", layers=28, hidden=3584, feed=18944, heads=28, kv_heads=4, vocab=152064,
    model_type="qwen2", has_bias=True, max_context_tokens=32768,
)  # fmt: skip
QWEN2_1_5B = dense(
    "Qwen/Qwen2-1.5B-Instruct", layers=28, hidden=1536, feed=8960, heads=12, kv_heads=2, vocab=151936,
    model_type="qwen2", has_bias=True, is_tied=True, max_context_tokens=32768,
)  # fmt: skip
QWQ_32B = dense(
    "Qwen/QwQ-32B", layers=64, hidden=5120, feed=27648, heads=40, kv_heads=8, vocab=152064,
    model_type="qwen2", has_bias=True,
)  # fmt: skip
GEMMA_2B = dense(
    "google/gemma-2b-it", layers=18, hidden=2048, feed=16384, heads=8, kv_heads=1, vocab=256000, head_dim=256,
    model_type="gemma", is_tied=True, max_context_tokens=8192,
)  # fmt: skip
PHI_3_5_MINI = dense(
    "microsoft/Phi-3.5-mini-instruct", layers=32, hidden=3072, feed=8192, heads=32, kv_heads=32, vocab=32064,
    head_dim=96, model_type="phi3", is_fused=True,
)  # fmt: skip
COMMAND_R = dense(
    "CohereLabs/c4ai-command-r-v01", layers=40, hidden=8192, feed=22528, heads=64, kv_heads=64, vocab=256000,
    model_type="cohere", is_tied=True,
)  # fmt: skip
DEEPSEEK_V2_LITE = latent("deepseek-ai/DeepSeek-V2-Lite", layers=27, hidden=2048, heads=16, q_lora=None, vocab=102400)
DEEPSEEK_V2 = latent("deepseek-ai/DeepSeek-V2", layers=60, hidden=5120, heads=128, q_lora=1536, vocab=102400)
DEEPSEEK_V3 = latent("deepseek-ai/DeepSeek-V3", layers=61, hidden=7168, heads=128, q_lora=1536, vocab=129280)
QWEN3_30B_A3B = Model(
    facts(
        "Qwen/Qwen3-30B-A3B", layers=48, hidden_size=2048, vocab_size=151936, attention_heads=32, kv_heads=4,
        head_dim=128, experts=128, experts_per_token=8, expert_intermediate_size=768, max_context_tokens=40960,
    ),
    [Cache(kind="full", layers=tuple(range(48)), elements_per_token=1024, kv_heads=4, key_dim=128, value_dim=128)],
    [
        ("attn_q", 4096, 2048, 1, 48), ("attn_k", 512, 2048, 1, 48), ("attn_v", 512, 2048, 1, 48),
        ("attn_output", 2048, 4096, 1, 48), ("ffn_up_exps", 768, 2048, 128, 48), ("ffn_gate_exps", 768, 2048, 128, 48),
        ("ffn_down_exps", 2048, 768, 128, 48), ("token_embd", 151936, 2048, 1, 0), ("output", 151936, 2048, 1, 0),
    ],
)  # fmt: skip
# 42 layers; the last 18 reuse the caches of earlier ones; every sixth layer attends to everything, with wider heads.
_FULL, _SLIDING = (5, 11, 17, 23), tuple(i for i in range(24) if i % 6 != 5)
GEMMA_4_E4B = Model(
    facts(
        "google/gemma-4-E4B-it", layers=42, hidden_size=2560, vocab_size=262144, attention_heads=8, kv_heads=2,
        head_dim=256, intermediate_size=10240, model_type="gemma4_text", is_tied=True,
    ),
    [
        Cache(kind="full", layers=_FULL, elements_per_token=2048, kv_heads=2, key_dim=512, value_dim=512),
        Cache(
            kind="sliding", layers=_SLIDING, elements_per_token=1024, kv_heads=2, key_dim=256, value_dim=256,
            window_tokens=512,
        ),
    ],
    [("token_embd", 262144, 2560, 1, 0), ("per_layer_token_embd", 262144, 42 * 256, 1, 0)],
)  # fmt: skip
GPT_OSS_20B = Model(
    facts("openai/gpt-oss-20b", layers=24, hidden_size=2880, vocab_size=201088, attention_heads=64, kv_heads=8,
          head_dim=64, experts=32, experts_per_token=4, expert_intermediate_size=2880, model_type="gpt_oss"),
    [
        Cache(kind="sliding", layers=tuple(range(0, 24, 2)), elements_per_token=1024, kv_heads=8, key_dim=64,
              value_dim=64, window_tokens=128),
        Cache(kind="full", layers=tuple(range(1, 24, 2)), elements_per_token=1024, kv_heads=8, key_dim=64,
              value_dim=64),
    ],
    [("token_embd", 201088, 2880, 1, 0), ("output", 201088, 2880, 1, 0)],
)  # fmt: skip


def rows(*wanted: dict) -> tuple[pl.DataFrame, ...]:
    """Deployments with the GPU's columns, and the models, caches and GGUF tensors they name; `model` is a Model."""
    deployments, gguf, seen = [], [], {}
    for row, given in enumerate(wanted):
        model = given["model"]
        version, precision = given.get("engine_version"), given.get("precision_id", "gguf-f16")
        seen[model.facts.model_id] = model
        key = (model.facts.model_id, precision, version)
        if key not in {(t["model_id"], t["precision_id"], t["engine_version"]) for t in gguf}:
            gguf += model.gguf(precision, version)
        filled = {"row": row, "model_id": model.facts.model_id, "precision_id": precision, "engine_id": "llama.cpp"}
        deployments.append(filled | {k: v for k, v in given.items() if k != "model"})
    anatomies = [Anatomy(facts=m.facts, tensors=(), caches=tuple(m.caches)) for m in seen.values()]
    models, _, caches = to_frames(anatomies)
    frame = pl.DataFrame(deployments, schema=dict(DEPLOYMENT_SCHEMA) | _GPU)
    return frame, models, caches, pl.DataFrame(gguf, schema=GGUF_TENSOR_SCHEMA)


def memory(*wanted: dict) -> list[dict]:
    """llamacpp_memory of the wanted deployments, as dictionaries in their order."""
    return llamacpp_memory(*rows(*wanted), RULES).sort("row").to_dicts()


def one(model: Model, **given: object) -> dict:
    return memory({"model": model} | given)[0]
