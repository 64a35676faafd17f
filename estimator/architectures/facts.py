"""The scalars of a model, from its config and what reading it has found."""

from typing import Any

from fitmart.estimator.anatomy import ModelFacts
from fitmart.estimator.architectures.config import MAX_TOKENS, Config
from fitmart.estimator.architectures.decoder import Shape
from fitmart.estimator.architectures.parts import Parts

DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
CONTEXTS = (
    "max_position_embeddings",
    "model_max_length",
    "max_sequence_length",
    "max_seq_len",
    "n_positions",
    "seq_length",
    "n_ctx",
)


def native_dtype(c: Config) -> str:
    """The dtype of what is not quantized: `dtype` (transformers 5) or `torch_dtype`; bf16 where nothing is said."""
    name = c.string("dtype", "torch_dtype") or "bfloat16"
    return DTYPES.get(name.removeprefix("torch."), "bf16")


def contexts(c: Config) -> tuple[int | None, int | None]:
    """(context as stated, context with the config's own RoPE extension).

    Llama-3.1's and long-RoPE's `max_position_embeddings` already include the factor. YaRN states the length before:
    the extended one is original × factor where that exceeds what is stated.
    """
    stated = c.optional_integer(*CONTEXTS, low=1, high=MAX_TOKENS)
    rope = c.section("rope_scaling") or c.section("rope_parameters")
    if stated is None or rope is None:
        return stated, stated
    kind = rope.string("rope_type", "type") or ""
    factor = rope.number("factor", default=1.0)
    original = rope.optional_integer("original_max_position_embeddings", low=1, high=MAX_TOKENS)
    extended = stated
    if kind == "yarn" and factor > 1 and original:
        extended = max(stated, int(original * factor))
    if kind == "dynamic" and factor > 1:
        extended = int(stated * factor)
    if extended > MAX_TOKENS:
        raise c.fail(f"rope_scaling extends the context to {extended:,} tokens, beyond {MAX_TOKENS:,}")
    return stated, extended


def attention_kind(parts: Parts, shape: Shape) -> str:
    """mha, gqa, mqa, mla, hybrid (states beside attention) or none."""
    if shape.attention_kind:
        return shape.attention_kind
    kinds = {cache.kind for cache in parts.caches}
    attention = kinds & {"full", "sliding", "chunked", "mla"}
    if not attention:
        return "none"
    if kinds & {"linear_state", "conv_state"}:
        return "hybrid"
    if "mla" in kinds:
        return "mla"
    if shape.heads is None:
        return "gqa"
    if shape.heads.kv == shape.heads.query:
        return "mha"
    return "mqa" if shape.heads.kv == 1 else "gqa"


def make_facts(parts: Parts, shape: Shape, *, model_type: str, architecture: str | None, **known: Any) -> ModelFacts:
    """All facts; `known` holds what only the caller knows (precision, task, basis, …)."""
    stated, extended = contexts(parts.config)
    moe, heads = shape.moe, shape.heads
    return ModelFacts(
        model_id=parts.config.model_id,
        architecture=architecture,
        model_type=model_type,
        layers=shape.layers,
        hidden_size=shape.hidden,
        vocab_size=shape.vocab,
        attention_heads=heads.query if heads else None,
        kv_heads=heads.kv if heads else None,
        head_dim=heads.key_dim if heads else None,
        intermediate_size=shape.width,
        experts=moe.experts if moe else None,
        experts_per_token=moe.top_k if moe else None,
        expert_intermediate_size=moe.width if moe else None,
        shared_expert_intermediate_size=(moe.shared_width or None) if moe else None,
        moe_layers=len(moe.layers) if moe else 0,
        attention_kind=attention_kind(parts, shape),
        q_lora_rank=shape.q_lora,
        kv_lora_rank=shape.kv_lora,
        max_context_tokens=stated,
        extended_context_tokens=extended,
        is_tied=shape.is_tied,
        is_encoder=shape.is_encoder,
        mtp_layers=shape.mtp_layers,
        extras=shape.extras,
        **known,
    )
