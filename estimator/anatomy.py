"""What a model is made of: its tensors, and what one sequence leaves in its caches.

Every family parser in `fitmart.estimator.architectures` ends in an `Anatomy`; everything downstream is arithmetic on
these records (or on the frames made of them) and does not know families.
"""

from dataclasses import dataclass, field, fields
from typing import Literal, get_args, get_type_hints

import polars as pl
from polars._typing import PolarsDataType

from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import schema

Component = Literal["embedding", "attention", "mlp", "experts", "router", "norm", "lm_head", "vision", "audio", "mtp"]
CacheKind = Literal["full", "sliding", "chunked", "mla", "linear_state", "conv_state", "cross", "indexer"]
TpAxis = Literal["rows", "columns", "replicated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One weight pattern: `layers` × `copies` equal tensors of `rows` × `columns`.

    `name` is the checkpoint's, with `{layer}` and `{expert}` for the indexes. A vector has `columns` = 1; a convolution
    kernel folds everything behind its output channels into `columns`. `rows` are output features, `columns` input
    features (the axis along which quantization groups run).
    """

    component: Component
    name: str
    rows: int
    columns: int = 1
    layers: tuple[int, ...] = ()  # empty: exists once, outside the layers
    copies: int = 1  # experts per layer
    tp_axis: TpAxis = "replicated"  # how tensor parallelism cuts it
    tp_max_shards: int | None = None  # K and V projections: no more shards than KV heads
    is_in_memory: bool = True  # False: stored in the checkpoint, not loaded (MTP, a stored tied head)
    is_stored: bool = True  # False: made at load
    stored_format: str | None = None  # format in the checkpoint (formats.py); None: the native dtype

    @property
    def layer_count(self) -> int:
        return len(self.layers) or 1

    @property
    def params(self) -> int:
        return self.rows * self.columns * self.layer_count * self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """What one sequence keeps in each of `layers`: elements a token (growing) and fixed elements (states).

    At context T a layer holds `elements_per_token` × min(T, `window_tokens`) // `tokens_per_entry` + `fixed_elements`.
    K and V both are in `elements_per_token`. The dimensions beside say how engines cut and pad it.
    """

    kind: CacheKind
    layers: tuple[int, ...]
    elements_per_token: int = 0
    fixed_elements: int = 0
    window_tokens: int | None = None
    tokens_per_entry: int = 1  # compressed attention keeps one entry for several tokens
    kv_heads: int = 0  # full, sliding, chunked, cross: heads that TP divides; 0 for latents and states
    key_dim: int = 0  # per head (latent: kv_lora_rank + rope)
    value_dim: int = 0  # per head (latent: 0)
    state_heads: int = 0  # linear_state: heads × key_dim × value_dim elements
    state_key_dim: int = 0
    state_value_dim: int = 0
    conv_channels: int = 0  # conv_state: channels × (kernel - 1) elements
    conv_kernel: int = 0
    state_element_bytes: int = 2  # linear_state: bytes an engine keeps per element (4 where the config says float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The scalars of a config that engines, speed and cost need. None: the model has no such thing."""

    model_id: str
    family: str
    architecture: str | None
    model_type: str
    task: str  # text-generation, image-text-to-text, feature-extraction, …
    layers: int
    hidden_size: int
    vocab_size: int
    attention_heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    expert_intermediate_size: int | None = None
    shared_expert_intermediate_size: int | None = None
    moe_layers: int = 0
    attention_kind: str = "gqa"  # mha, gqa, mqa, mla, hybrid, none
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    max_context_tokens: int | None = None
    extended_context_tokens: int | None = None
    native_dtype: str = "bf16"  # bf16, fp16, fp32: of what is not quantized
    native_precision: str = "bf16"  # precision id of the repository as stored
    quant_method: str | None = None
    kv_cache_scheme: str | None = None  # "fp8" where the checkpoint carries scales for an 8-bit KV cache
    is_tied: bool = False
    is_multimodal: bool = False
    is_encoder: bool = False  # keeps no KV cache
    mtp_layers: int = 0
    anatomy_basis: str = "config"  # header, config, assumed (unknown model_type read as a plain decoder)
    stored_bytes: int | None = None  # of all tensors as stored, scales included; known from headers only
    extras: dict[str, float] = field(default_factory=dict)  # rare numbers one engine rule needs; keys documented there


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """One model: facts, tensors, caches."""

    facts: ModelFacts
    tensors: tuple[Tensor, ...]
    caches: tuple[Cache, ...]


class AnatomyError(FitmartError):
    """A config from which no anatomy can be made; the message is one clear line for the user."""


TENSOR_SCHEMA = schema(
    model_id=pl.String,
    component=pl.String,
    tensor=pl.String,
    rows=pl.Int64,
    columns=pl.Int64,
    layer_ids=pl.List(pl.Int32),
    layer_count=pl.Int64,
    copies=pl.Int64,
    params=pl.Int64,
    tp_axis=pl.String,
    tp_max_shards=pl.Int64,
    is_in_memory=pl.Boolean,
    is_stored=pl.Boolean,
    stored_format=pl.String,
)

CACHE_SCHEMA = schema(
    model_id=pl.String,
    kind=pl.String,
    layer_ids=pl.List(pl.Int32),
    layer_count=pl.Int64,
    window_tokens=pl.Int64,
    tokens_per_entry=pl.Int64,
    elements_per_token=pl.Int64,
    fixed_elements=pl.Int64,
    kv_heads=pl.Int64,
    key_dim=pl.Int64,
    value_dim=pl.Int64,
    state_heads=pl.Int64,
    state_key_dim=pl.Int64,
    state_value_dim=pl.Int64,
    conv_channels=pl.Int64,
    conv_kernel=pl.Int64,
    state_element_bytes=pl.Int64,
)


def _sum(tensors: tuple[Tensor, ...], *components: str) -> int:
    return sum(t.params for t in tensors if t.component in components and t.is_in_memory)


def count_params(anatomy: Anatomy) -> dict[str, int]:
    """Parameter counts of one model.

    `params_total`: what the model's class holds in memory, tied embeddings once, MTP apart. `params_active`: touched by
    one token, embedding and head counted, routed experts × k / n. `stored_params`: elements the checkpoint holds (MTP
    and a stored tied head included), before packing.
    """
    facts, tensors = anatomy.facts, anatomy.tensors
    total = sum(t.params for t in tensors if t.is_in_memory and t.component != "mtp")
    experts = _sum(tensors, "experts")
    used = experts * (facts.experts_per_token or 0) // facts.experts if facts.experts else experts
    return {
        "params_total": total,
        "params_active": total - experts + used,
        "params_embedding": _sum(tensors, "embedding"),
        "params_lm_head": _sum(tensors, "lm_head"),
        "params_vision": _sum(tensors, "vision", "audio"),
        "params_mtp": sum(t.params for t in tensors if t.component == "mtp"),
        "stored_params": sum(t.params for t in tensors if t.is_stored),
    }


_COUNTS = (
    "params_total",
    "params_active",
    "params_embedding",
    "params_lm_head",
    "params_vision",
    "params_mtp",
    "stored_params",
)
_DTYPES: dict[type, PolarsDataType] = {int: pl.Int64, str: pl.String, bool: pl.Boolean}
_FACTS = tuple(f.name for f in fields(ModelFacts) if f.name != "extras")


def _fact_schema() -> pl.Schema:
    hints = get_type_hints(ModelFacts)
    scalar = {name: (get_args(hints[name]) or (hints[name],))[0] for name in _FACTS}  # `int | None` is an int column
    return schema(**{n: _DTYPES[t] for n, t in scalar.items()}, **dict.fromkeys(_COUNTS, pl.Int64))


MODEL_SCHEMA = _fact_schema()


def to_frames(anatomies: list[Anatomy]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Anatomies → (models, tensors, caches) frames of MODEL_SCHEMA, TENSOR_SCHEMA, CACHE_SCHEMA, in the given order."""
    models, tensors, caches = [], [], []
    for a in anatomies:
        models.append({name: getattr(a.facts, name) for name in _FACTS} | count_params(a))
        for t in a.tensors:
            tensors.append(
                {
                    "model_id": a.facts.model_id,
                    "component": t.component,
                    "tensor": t.name,
                    "rows": t.rows,
                    "columns": t.columns,
                    "layer_ids": list(t.layers),
                    "layer_count": t.layer_count,
                    "copies": t.copies,
                    "params": t.params,
                    "tp_axis": t.tp_axis,
                    "tp_max_shards": t.tp_max_shards,
                    "is_in_memory": t.is_in_memory,
                    "is_stored": t.is_stored,
                    "stored_format": t.stored_format,
                }
            )
        for c in a.caches:
            row = {f.name: getattr(c, f.name) for f in fields(Cache) if f.name != "layers"}
            layers = {"layer_ids": list(c.layers), "layer_count": len(c.layers)}
            caches.append({"model_id": a.facts.model_id} | row | layers)
    return (
        pl.DataFrame(models, schema=MODEL_SCHEMA),
        pl.DataFrame(tensors, schema=TENSOR_SCHEMA),
        pl.DataFrame(caches, schema=CACHE_SCHEMA),
    )
