"""The plain decoder: embedding, layers of attention and feed-forward, final norm, output matrix.

Most families are this with other names, biases and norms: a `Style` states the differences, `build` adds the parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fitmart.estimator.architectures.attention import (
    Heads,
    attention_kinds,
    projections,
    read_heads,
    window_caches,
)
from fitmart.estimator.architectures.config import MAX_LAYERS, Config
from fitmart.estimator.architectures.feedforward import GATED, Moe, experts, mlp, moe_layers, read_moe
from fitmart.estimator.architectures.parts import Layers, Parts

Flag = bool | str  # a constant of the class, or the config field that decides


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeStyle:
    """How a family names its experts; `layers` tells which layers hold them."""

    block: str = "mlp."
    router: str = "gate"
    router_bias: Flag = False
    correction: str | None = None
    names: Sequence[str] = GATED
    pattern: str = "experts.{expert}."
    shared: str = "shared_experts."
    shared_names: Sequence[str] = GATED
    shared_gate: str | None = None
    width: str = "moe_intermediate_size"
    layers: Callable[[Config, int], Layers] = moe_layers
    dense_block: str = "mlp."
    fused: str | None = None  # gate and up of each expert in one matrix
    is_correction_param: bool = False  # counted as a parameter, not as a buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """One family's departures from Llama. Names are relative to the layer."""

    attention: str = "self_attn."
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj")
    fused_qkv: str | None = None
    qkv_bias: Flag = False
    o_bias: Flag = False
    qk_norm: str | None = None  # head: one weight a dimension; per_head: one a head and dimension
    qk_norm_if: Flag = True
    qk_names: tuple[str, str] = ("q_norm", "k_norm")
    qk_norm_bias: bool = False
    window: str = "none"  # rule of attention_kinds
    window_if: Flag = True
    mlp: str = "mlp."
    mlp_names: Sequence[str] = GATED
    mlp_bias: Flag = False
    fused_mlp: str | None = None
    norms: Sequence[str] = ("input_layernorm", "post_attention_layernorm")
    norm_bias: bool = False
    gate: str | None = None  # an output gate of the queries' width
    has_norms: bool = True  # OLMo 1 normalizes without weights
    layer: str = "layers.{layer}."
    embedding: str = "embed_tokens"
    embedding_width: int | None = None  # where narrower than the model
    final_norm: str | None = "norm"
    head: str | None = None
    head_bias: Flag = False
    is_tied_stored: bool = False
    width: Sequence[str] = ("intermediate_size",)
    width_share: int = 1  # the stated width counts so many halves
    width_factor: int | None = None  # width = factor × hidden where the field is absent
    moe: MoeStyle | None = None
    model: str | None = None  # prefix, where the checkpoint's is not "model."
    extra: Callable[[Parts, "Shape"], None] | None = None


@dataclass(slots=True, kw_only=True)
class Shape:
    """What reading a text config has found; facts are made from it."""

    layers: int
    hidden: int
    vocab: int
    is_tied: bool
    heads: Heads | None = None
    width: int | None = None
    moe: Moe | None = None
    attention_kind: str | None = None
    q_lora: int | None = None
    kv_lora: int | None = None
    mtp_layers: int = 0
    is_encoder: bool = False
    extras: dict[str, float] = field(default_factory=dict)

    @property
    def every(self) -> Layers:
        return tuple(range(self.layers))


LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")


def flag(c: Config, value: Flag) -> bool:
    """A constant, or the boolean field of that name."""
    return value if isinstance(value, bool) else c.boolean(value)


def read_shape(c: Config, *, layers: int | None = None) -> Shape:
    """The sizes that every model has; `layers` where the family counts them in its own way."""
    return Shape(
        layers=layers or c.integer(*LAYERS, high=MAX_LAYERS),
        hidden=c.integer(*HIDDEN),
        vocab=c.integer("vocab_size", "padded_vocab_size"),
        is_tied=c.boolean("tie_word_embeddings"),
    )


def frame(parts: Parts, shape: Shape, style: Style) -> None:
    """Embedding, final norm and output matrix."""
    width = style.embedding_width or shape.hidden
    parts.embed(shape.vocab, width, name=style.embedding)
    if style.has_norms and style.final_norm:
        parts.norm(f"{parts.model}{style.final_norm}", shape.hidden, bias=style.norm_bias)
    parts.output(
        shape.vocab,
        width,
        is_tied=shape.is_tied,
        is_tied_stored=style.is_tied_stored,
        bias=flag(parts.config, style.head_bias),
    )


def attend(parts: Parts, shape: Shape, style: Style, heads: Heads, layers: Layers) -> None:
    """One kind of attention block in `layers`: projections and query/key norms."""
    c, prefix = parts.config, f"{parts.model}{style.layer}{style.attention}"
    projections(
        parts,
        prefix,
        shape.hidden,
        heads,
        layers,
        names=style.names,
        fused=style.fused_qkv,
        qkv_bias=flag(c, style.qkv_bias),
        o_bias=flag(c, style.o_bias),
    )
    if style.gate:
        gate = heads.query * heads.value_dim
        parts.linear("attention", prefix + style.gate, gate, shape.hidden, layers=layers, axis="rows")
    if style.qk_norm and flag(c, style.qk_norm_if):
        per_head = style.qk_norm == "per_head"
        for name, count in zip(style.qk_names, (heads.query, heads.kv), strict=True):
            size = heads.key_dim * (count if per_head else 1)
            parts.norm(prefix + name, size, layers=layers, bias=style.qk_norm_bias)


def layer_norms(parts: Parts, shape: Shape, style: Style, layers: Layers) -> None:
    """The norms of each layer."""
    if style.has_norms:
        for name in style.norms:
            parts.norm(f"{parts.model}{style.layer}{name}", shape.hidden, layers=layers, bias=style.norm_bias)


def feed(parts: Parts, shape: Shape, style: Style, layers: Layers) -> None:
    """Dense and expert feed-forwards of `layers`."""
    c, at = parts.config, f"{parts.model}{style.layer}"
    if style.moe and shape.moe:
        routed_experts(parts, at, shape.hidden, style.moe, shape.moe)
    dense = tuple(i for i in layers if not shape.moe or i not in shape.moe.layers)
    if dense and shape.width is not None:
        block = style.moe.dense_block if style.moe else style.mlp
        mlp(
            parts,
            at + block,
            shape.hidden,
            shape.width,
            dense,
            names=style.mlp_names,
            bias=flag(c, style.mlp_bias),
            fused=style.fused_mlp,
        )


def routed_experts(parts: Parts, at: str, hidden: int, style: MoeStyle, moe: Moe) -> None:
    """The experts of one style in the layers of `moe`."""
    experts(
        parts,
        at + style.block,
        hidden,
        moe,
        names=style.names,
        router=style.router,
        router_bias=flag(parts.config, style.router_bias),
        correction=style.correction,
        pattern=style.pattern,
        shared=style.shared,
        shared_names=style.shared_names,
        shared_gate=style.shared_gate,
        fused=style.fused,
        is_correction_param=style.is_correction_param,
    )


def decoder_layers(parts: Parts, shape: Shape, style: Style, layers: Layers) -> None:
    """Attention, norms and feed-forward of `layers`."""
    if shape.heads:
        attend(parts, shape, style, shape.heads, layers)
    layer_norms(parts, shape, style, layers)
    feed(parts, shape, style, layers)


def read_width(c: Config, style: Style, hidden: int) -> int:
    """The dense feed-forward's width."""
    default = style.width_factor * hidden if style.width_factor else None
    return c.integer(*style.width, default=default) if style.width else default or 4 * hidden


def window_of(c: Config, style: Style) -> int | None:
    """The sliding window in tokens, or None where it is off."""
    if not flag(c, style.window_if):
        return None
    return c.optional_integer("sliding_window", "sliding_window_size", low=1)


def build(parts: Parts, style: Style, *, kv_heads: int | None = None) -> Shape:
    """A whole plain decoder of `style`; `kv_heads` where the family has its own way of stating them."""
    c = parts.config
    parts.model = style.model or parts.model
    parts.head = style.head or parts.head
    shape = read_shape(c)
    heads = read_heads(c, shape.hidden)
    shape.heads = heads = replace(heads, kv=kv_heads) if kv_heads else heads
    if style.moe:
        where = style.moe.layers(c, shape.layers)
        shape.moe = read_moe(c, where, width=style.moe.width) if where else None
    if not (shape.moe and len(shape.moe.layers) == shape.layers):
        shape.width = read_width(c, style, shape.hidden) // style.width_share
    frame(parts, shape, style)
    decoder_layers(parts, shape, style, shape.every)
    window = window_of(c, style)
    window_caches(parts, attention_kinds(c, shape.layers, style.window, window), heads, window)
    if style.extra:
        style.extra(parts, shape)
    return shape
