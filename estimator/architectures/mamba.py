"""Mamba models and hybrids of Mamba and attention: Jamba, Bamba, Granite 4 H, Falcon-H1, Zamba 2."""

from dataclasses import replace

from fitmart.estimator.architectures.attention import (
    Heads,
    attention_cache,
    attention_kinds,
    projections,
    read_heads,
)
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.decoder import Shape, Style, frame, layer_norms, read_shape
from fitmart.estimator.architectures.feedforward import experts, mlp, read_moe
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family
from fitmart.estimator.architectures.state_space import mamba1, mamba2, read_mamba1, read_mamba2

PURE = Style(embedding="embeddings", final_norm="norm_f", norms=("norm",))
PRE_FF = Style(norms=("input_layernorm", "pre_ff_layernorm"), final_norm="final_layernorm")


def others(layers: int, some: Layers) -> Layers:
    """The layers that are not among `some`."""
    chosen = set(some)
    return tuple(i for i in range(layers) if i not in chosen)


def periodic(c: Config, layers: int, kind: str, *, period: int, offset: int) -> Layers:
    """Jamba's way: layer i is one where i ≡ offset (mod period)."""
    every = c.integer(f"{kind}_layer_period", default=period)
    at = c.integer(f"{kind}_layer_offset", default=offset, low=0)
    return tuple(i for i in range(layers) if (i - at) % every == 0)


def attend(parts: Parts, shape: Shape, layers: Layers) -> None:
    """Plain attention in `layers`, with its full cache."""
    c = parts.config
    shape.heads = heads = read_heads(c, shape.hidden)
    bias = c.boolean("attention_bias")
    at = f"{parts.model}layers.{{layer}}.self_attn."
    projections(parts, at, shape.hidden, heads, layers, qkv_bias=bias, o_bias=bias)
    attention_cache(parts, "full", heads, layers)


@family("mamba", "falcon_mamba")
def pure_mamba(parts: Parts) -> Shape:
    """Mamba 1: a mixer and a norm a layer, nothing else. A stated inner width wins over `expand`."""
    parts.model = "backbone."
    shape = read_shape(parts.config)
    frame(parts, shape, PURE)
    layer_norms(parts, shape, PURE, shape.every)
    sizes = read_mamba1(parts.config, shape.hidden)
    inner = parts.config.optional_integer("intermediate_size", low=1)
    sizes = replace(sizes, inner=inner) if inner else sizes
    mamba1(parts, "backbone.layers.{layer}.mixer.", shape.hidden, sizes, shape.every)
    return shape


@family("mamba2")
def pure_mamba2(parts: Parts) -> Shape:
    """Mamba 2: the class calls its head size head_dim."""
    c = parts.config
    parts.model = "backbone."
    shape = read_shape(c)
    frame(parts, shape, PURE)
    layer_norms(parts, shape, PURE, shape.every)
    heads = c.integer("num_heads")
    inner = c.integer("expand", default=2) * shape.hidden
    sizes = replace(read_mamba2(c, shape.hidden), inner=inner, heads=heads, head_dim=inner // heads)
    mamba2(parts, "backbone.layers.{layer}.mixer.", shape.hidden, sizes, shape.every)
    return shape


@family("jamba")
def jamba(parts: Parts) -> Shape:
    """Jamba: Mamba 1 with one attention layer in eight, experts in every second layer."""
    c = parts.config
    shape = read_shape(c)
    shape.width = c.integer("intermediate_size")
    frame(parts, shape, PRE_FF)
    layer_norms(parts, shape, PRE_FF, shape.every)
    attention = periodic(c, shape.layers, "attn", period=8, offset=4)
    attend(parts, shape, attention)
    states, at = others(shape.layers, attention), f"{parts.model}layers.{{layer}}."
    sizes = read_mamba1(c, shape.hidden)
    mamba1(parts, f"{at}mamba.", shape.hidden, sizes, states)
    for name, size in (("dt", sizes.rank), ("b", sizes.state), ("c", sizes.state)):
        parts.norm(f"{at}mamba.{name}_layernorm", size, layers=states)
    expert = periodic(c, shape.layers, "expert", period=2, offset=1) if c.integer("num_experts", default=16) > 1 else ()
    if expert:
        shape.moe = read_moe(c, expert, width="intermediate_size")
        experts(parts, f"{at}feed_forward.", shape.hidden, shape.moe, router="router")
    mlp(parts, f"{at}feed_forward.", shape.hidden, shape.width, others(shape.layers, expert))
    return shape


@family("bamba")
def bamba(parts: Parts) -> Shape:
    """Bamba: Mamba 2, attention in `attn_layer_indices`."""
    c = parts.config
    shape = read_shape(c)
    shape.width = c.integer("intermediate_size")
    frame(parts, shape, PRE_FF)
    layer_norms(parts, shape, PRE_FF, shape.every)
    attention = tuple(c.integers("attn_layer_indices", high=shape.layers - 1) or [])
    attend(parts, shape, attention)
    at = f"{parts.model}layers.{{layer}}."
    sizes = read_mamba2(c, shape.hidden)
    mamba2(parts, f"{at}mamba.", shape.hidden, sizes, others(shape.layers, attention))
    mlp(parts, f"{at}feed_forward.", shape.hidden, shape.width, shape.every, bias=c.boolean("mlp_bias"))
    return shape


@family("granitemoehybrid")
def granite_hybrid(parts: Parts) -> Shape:
    """Granite 4: layer_types of mamba and attention, a shared MLP everywhere, experts beside it where there are any."""
    c = parts.config
    shape = read_shape(c)
    style = Style()
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    kinds = attention_kinds(c, shape.layers, "none", None)
    attention = tuple(i for i, kind in enumerate(kinds) if kind == "full")
    attend(parts, shape, attention)
    at = f"{parts.model}layers.{{layer}}."
    states = others(shape.layers, attention)
    if states:
        mamba2(parts, f"{at}mamba.", shape.hidden, read_mamba2(c, shape.hidden), states)
    shape.width = shared = c.integer("shared_intermediate_size", default=1024)
    mlp(
        parts,
        f"{at}shared_mlp.",
        shape.hidden,
        shared,
        shape.every,
        names=("gate_proj", "up_proj", "output_linear"),
        fused="input_linear",
    )
    if c.integer("num_local_experts", default=0, low=0):
        moe = read_moe(c, shape.every, width="intermediate_size")
        experts(
            parts,
            f"{at}block_sparse_moe.",
            shape.hidden,
            replace(moe, shared_width=0),
            names=("gate_proj", "up_proj", "output_linear"),
            fused="input_linear",
            pattern="",
            router="router.layer",
        )
        shape.moe = moe
    return shape


@family("falcon_h1")
def falcon_h1(parts: Parts) -> Shape:
    """Falcon-H1: attention and Mamba 2 side by side in every layer."""
    c = parts.config
    shape = read_shape(c)
    shape.width = c.integer("intermediate_size")
    frame(parts, shape, PRE_FF)
    layer_norms(parts, shape, PRE_FF, shape.every)
    attend(parts, shape, shape.every)
    at = f"{parts.model}layers.{{layer}}."
    sizes = replace(read_mamba2(c, shape.hidden), has_norm=c.boolean("mamba_rms_norm"))
    mamba2(parts, f"{at}mamba.", shape.hidden, sizes, shape.every)
    mlp(parts, f"{at}feed_forward.", shape.hidden, shape.width, shape.every, bias=c.boolean("mlp_bias"))
    return shape


@family("zamba2")
def zamba2(parts: Parts) -> Shape:
    """Zamba 2: Mamba 2 everywhere; `hybrid_layer_ids` also run one of `num_mem_blocks` shared transformer blocks.

    A shared block is stored once; each use has its own low-rank adapter and its own keys and values.
    """
    c = parts.config
    shape = read_shape(c)
    hidden, at, model = shape.hidden, f"{parts.model}layers.{{layer}}.", parts.model
    frame(parts, shape, replace(PRE_FF, norms=()))
    kinds = c.items("layers_block_type", at_least=shape.layers)
    hybrid = tuple(c.integers("hybrid_layer_ids", high=shape.layers - 1) or [])
    if not hybrid and kinds:
        hybrid = tuple(i for i, kind in enumerate(kinds) if str(kind).startswith("hybrid"))
    sizes, plain = read_mamba2(c, hidden), others(shape.layers, hybrid)
    mamba2(parts, f"{at}mamba.", hidden, sizes, plain)
    mamba2(parts, f"{at}mamba_decoder.mamba.", hidden, sizes, hybrid)
    parts.norm(f"{at}input_layernorm", hidden, layers=plain)
    parts.norm(f"{at}mamba_decoder.input_layernorm", hidden, layers=hybrid)
    parts.linear("attention", f"{at}linear", hidden, hidden, layers=hybrid)
    blocks = c.integer("num_mem_blocks", default=1)
    query, kv = (
        c.integer("num_attention_heads"),
        c.integer("num_key_value_heads", default=c.integer("num_attention_heads")),
    )
    dim = c.integer("attention_head_dim", default=2 * hidden // query)
    shape.heads = heads = Heads(query=query, kv=kv, key_dim=dim, value_dim=dim)
    shape.width = width = c.integer("intermediate_size", default=4 * hidden)
    shared, uses = f"{model}blocks.{{layer}}.", tuple(range(blocks))
    for name, rows in (("q_proj", query * dim), ("k_proj", kv * dim), ("v_proj", kv * dim)):
        parts.linear("attention", f"{shared}self_attn.{name}", rows, 2 * hidden, layers=uses, axis="rows")
    parts.linear("attention", f"{shared}self_attn.o_proj", hidden, query * dim, layers=uses, axis="columns")
    parts.linear("mlp", f"{shared}feed_forward.gate_up_proj", 2 * width, hidden, layers=uses, axis="rows")
    parts.linear("mlp", f"{shared}feed_forward.down_proj", hidden, width, layers=uses, axis="columns")
    parts.norm(f"{shared}input_layernorm", 2 * hidden, layers=uses)
    parts.norm(f"{shared}pre_ff_layernorm", hidden, layers=uses)
    _zamba2_adapters(parts, shape, hybrid, 2 * hidden)
    attention_cache(parts, "full", heads, hybrid)
    return shape


def _zamba2_adapters(parts: Parts, shape: Shape, hybrid: Layers, wide: int) -> None:
    c = parts.config
    rank, at = c.integer("adapter_rank", default=128), f"{parts.model}layers.{{layer}}.shared_transformer."
    if shape.width:
        parts.linear("mlp", f"{at}feed_forward.gate_up_proj_adapter_list.0", rank, shape.hidden, layers=hybrid)
        parts.linear("mlp", f"{at}feed_forward.gate_up_proj_adapter_list.1", 2 * shape.width, rank, layers=hybrid)
    if c.boolean("use_shared_attention_adapter") and shape.heads:
        for name in ("q", "k", "v"):
            parts.linear("attention", f"{at}self_attn.linear_{name}_adapter_list.0", rank, wide, layers=hybrid)
            parts.linear("attention", f"{at}self_attn.linear_{name}_adapter_list.1", wide, rank, layers=hybrid)
