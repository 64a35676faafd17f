"""Meta's later shapes: Llama 4 (chunked attention, one expert beside a shared one) and Mllama (cross-attention)."""

from dataclasses import replace

from fitmart.estimator.anatomy import Cache, CacheKind
from fitmart.estimator.architectures.attention import attention_cache, projections, read_heads
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.decoder import Shape, Style, frame, layer_norms, read_shape
from fitmart.estimator.architectures.feedforward import experts, mlp, read_moe
from fitmart.estimator.architectures.mamba import others
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family


def full_layers(c: Config, layers: int) -> Layers:
    """Layers without rotary positions see everything: `layer_types`, else `no_rope_layers` (0), else every fourth."""
    kinds = c.items("layer_types", at_least=layers)
    if kinds is not None:
        return tuple(i for i, kind in enumerate(kinds) if kind == "full_attention")
    flags = c.integers("no_rope_layers", high=1)
    if flags:
        return tuple(i for i, flag in enumerate(flags[:layers]) if not flag)
    every = c.integer("no_rope_layer_interval", default=4)
    return tuple(i for i in range(layers) if (i + 1) % every == 0)


@family("llama4_text")
def llama4(parts: Parts) -> Shape:
    """Llama 4: `intermediate_size` is the expert's, `intermediate_size_mlp` the dense layers' width."""
    c = parts.config
    style = Style()
    shape = read_shape(c)
    shape.heads = heads = read_heads(c, shape.hidden)
    stated = c.integers("moe_layers", high=shape.layers - 1)
    step = c.integer("interleave_moe_layer_step", default=1)
    where = tuple(stated) if stated is not None else tuple(range(step - 1, shape.layers, step))
    at, hidden = f"{parts.model}layers.{{layer}}.", shape.hidden
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    bias = c.boolean("attention_bias")
    projections(parts, f"{at}self_attn.", hidden, heads, shape.every, qkv_bias=bias, o_bias=bias)
    moe = read_moe(c, where, width="intermediate_size")
    shape.moe = moe = replace(moe, shared_width=moe.width)
    experts(
        parts,
        f"{at}feed_forward.",
        hidden,
        moe,
        router="router",
        pattern="experts.",
        fused="gate_up_proj",
        shared="shared_expert.",
        is_bare=True,
    )
    dense = others(shape.layers, where)
    shape.width = c.integer("intermediate_size_mlp", default=16384)
    mlp(parts, f"{at}feed_forward.", hidden, shape.width, dense)
    full = full_layers(c, shape.layers)
    attention_cache(parts, "full", heads, full)
    chunk = c.optional_integer("attention_chunk_size", low=1)
    kind: CacheKind = "chunked" if chunk else "full"
    attention_cache(parts, kind, heads, others(shape.layers, full), window=chunk)
    return shape


@family("mllama_text_model")
def mllama(parts: Parts) -> Shape:
    """Llama 3.2 Vision: `cross_attention_layers` read the image, and keep nothing of the text."""
    c = parts.config
    style = Style()
    shape = read_shape(c)
    shape.heads = heads = read_heads(c, shape.hidden)
    shape.width = c.integer("intermediate_size")
    cross = tuple(c.integers("cross_attention_layers", high=shape.layers - 1) or [])
    own = others(shape.layers, cross)
    at, hidden = f"{parts.model}layers.{{layer}}.", shape.hidden
    parts.add("embedding", f"{parts.model}embed_tokens.weight", shape.vocab + 8, hidden, axis="rows")
    parts.norm(f"{parts.model}norm", hidden)
    parts.output(shape.vocab, hidden, is_tied=shape.is_tied)
    layer_norms(parts, shape, style, shape.every)
    projections(parts, f"{at}self_attn.", hidden, heads, own)
    projections(parts, f"{at}cross_attn.", hidden, heads, cross)
    for name in ("q_norm", "k_norm"):
        parts.norm(f"{at}cross_attn.{name}", heads.key_dim, layers=cross)
    for name in ("cross_attn_attn_gate", "cross_attn_mlp_gate"):
        parts.add("attention", at + name, 1, layers=cross)
    mlp(parts, f"{at}mlp.", hidden, shape.width, shape.every)
    attention_cache(parts, "full", heads, own)
    if cross:
        parts.caches.append(
            Cache(
                kind="cross",
                layers=cross,
                kv_heads=heads.kv,
                key_dim=heads.key_dim,
                value_dim=heads.value_dim,
            )
        )
    return shape
