"""config.json → Anatomy, through the family that its model_type names."""

from collections.abc import Mapping
from typing import Any

from fitmart.estimator.anatomy import Anatomy, AnatomyError, ModelFacts
from fitmart.estimator.architectures.class_defaults import class_defaults
from fitmart.estimator.architectures.config import Config, Reads
from fitmart.estimator.architectures.decoder import Shape, Style, build
from fitmart.estimator.architectures.facts import make_facts, native_dtype
from fitmart.estimator.architectures.multimodal import NESTED, WRAPPERS, Wrapper, add_plain_tower, add_towers
from fitmart.estimator.architectures.parts import Parts
from fitmart.estimator.architectures.quantization import Quantization, read_quantization
from fitmart.estimator.architectures.registry import FAMILIES

MAX_PARAMS = 10**15  # Int64 holds the sums of anything below
PLAIN_FIELDS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
EXOTIC_FIELDS = (  # an unknown type with one of these is no plain decoder: its caches or weights would be wrong
    "kv_lora_rank",
    "state_size",
    "ssm_state_size",
    "mamba_d_state",
    "hybrid_override_pattern",
    "linear_attn_config",
    "linear_num_value_heads",
    "n_routed_experts",
    "num_local_experts",
    "num_experts",
    "moe_intermediate_size",
    "block_configs",
    "layers_block_type",
    "compress_ratios",
    "is_encoder_decoder",
    "encoder_layers",
)


def read_anatomy(
    model_id: str, config: Mapping[str, Any], reads: Reads, quant_config: Mapping[str, Any] | None = None
) -> Anatomy:
    """The anatomy of one config; `reads` gathers the fields that were looked at."""
    if not isinstance(config, Mapping):
        raise AnatomyError(f"{model_id}: config.json is not an object")
    top = Config(model_id, [((), config)], reads=reads)
    model_type = top.string("model_type") or ""
    wrapper = WRAPPERS.get(model_type)
    nested = top.section(*NESTED)
    text_type = _text_type(nested, wrapper, model_type)
    c = top.text(nested, class_defaults(text_type, is_nested=wrapper is not None and _is_nested(nested, model_type)))
    names = wrapper.names if wrapper else ("model.", "lm_head")
    architecture = _architecture(top)
    parts = Parts(c, model=names[0], head=names[1])
    basis = "config"
    if text_type in FAMILIES:
        shape = FAMILIES[text_type](parts)
    else:
        shape, basis = _assume(parts, model_type, architecture), "assumed"
    if wrapper:
        add_towers(parts, top, wrapper, shape.hidden)
    elif nested is not None:
        basis = "assumed"
        add_plain_tower(parts, top, model_type, shape.hidden)
    if _is_headless(architecture, model_type):
        _drop_head(parts, names[0])
    dtype = native_dtype(c)
    quantization = read_quantization(top, c, quant_config, native=dtype)
    parts.tensors = quantization.apply(parts.tensors)
    anatomy = Anatomy(
        facts=_facts(
            parts,
            shape,
            quantization,
            model_type,
            architecture,
            dtype,
            basis,
            is_multimodal=wrapper is not None or top.section("vision_config") is not None,
        ),
        tensors=tuple(parts.tensors),
        caches=tuple(parts.caches),
    )
    _check(anatomy)
    return anatomy


def _check(anatomy: Anatomy) -> None:
    """Sizes that are possible one by one may still not be together."""
    empty = next((t.name for t in anatomy.tensors if t.rows < 1 or t.columns < 1), None)
    if empty:
        raise AnatomyError(f"{anatomy.facts.model_id}: the sizes leave nothing of {empty}")
    if sum(t.params for t in anatomy.tensors) > MAX_PARAMS:
        raise AnatomyError(f"{anatomy.facts.model_id}: the sizes multiply to more than {MAX_PARAMS:.0e} parameters")


def _facts(
    parts: Parts,
    shape: Shape,
    quantization: Quantization,
    model_type: str,
    architecture: str | None,
    dtype: str,
    basis: str,
    *,
    is_multimodal: bool,
) -> ModelFacts:
    task = "image-text-to-text" if is_multimodal else "text-generation"
    if shape.is_encoder or _is_headless(architecture, model_type):
        task = "feature-extraction"
    return make_facts(
        parts,
        shape,
        model_type=model_type,
        architecture=architecture,
        family=model_type or "unknown",
        task=task,
        is_multimodal=is_multimodal,
        native_dtype=dtype,
        native_precision=quantization.precision_of(parts.tensors),
        quant_method=quantization.method,
        kv_cache_scheme=quantization.kv_cache_scheme,
        anatomy_basis=basis,
    )


def _text_type(nested: Config | None, wrapper: Wrapper | None, model_type: str) -> str:
    """The family of the text model: its own model_type, else the wrapper's usual one, else the top level's."""
    own = nested.string("model_type") if nested else None
    if own in FAMILIES:
        return str(own)
    if wrapper:
        return wrapper.text
    return own or model_type


def _is_nested(nested: Config | None, model_type: str) -> bool:
    """Whether class sizes fill gaps: in a nested text config, or where the wrapper's file says nothing at all."""
    return nested is not None or model_type == "gemma3n"


def _architecture(top: Config) -> str | None:
    names = top.items("architectures") or []
    return str(names[0]) if names else None


def _is_headless(architecture: str | None, model_type: str) -> bool:
    """XxxModel holds no output matrix. GPT-2's LMHeadModel does, and so do two remote classes of that name."""
    if architecture is None or model_type in ("aquila", "chatglm"):
        return False
    return architecture.endswith("Model") and not architecture.endswith("LMHeadModel")


def _drop_head(parts: Parts, prefix: str) -> None:
    parts.tensors = [t for t in parts.tensors if t.component != "lm_head"]


def _assume(parts: Parts, model_type: str, architecture: str | None) -> Shape:
    """An unknown type that has Llama's fields and none of another mechanism is read as Llama."""
    c = parts.config
    name = f"unknown model_type {model_type!r}" if model_type else "config.json lacks model_type"
    if architecture and "CausalLM" not in architecture and "ConditionalGeneration" not in architecture:
        raise c.fail(f"{name}, and its class {architecture} is no causal language model")
    missing = [f for f in PLAIN_FIELDS if not c.has(f)]
    if missing:
        raise c.fail(f"{name}, and it is not a plain decoder: {missing[0]} is missing")
    exotic = [f for f in EXOTIC_FIELDS if c.get(f, default=None) not in (None, False, 0)]
    if exotic:
        raise c.fail(f"{name}, and it is not a plain decoder: it has {exotic[0]}")
    return build(parts, Style(qkv_bias="attention_bias", o_bias="attention_bias", mlp_bias="mlp_bias", window="all"))
