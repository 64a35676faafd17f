"""Decoders whose local layers have other heads than the global ones, or sinks: gpt-oss, MiMo-V2, Laguna, Step-3.5."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fitmart.estimator.anatomy import CacheKind
from fitmart.estimator.architectures.attention import (
    Heads,
    attention_cache,
    attention_kinds,
    projections,
    read_heads,
    window_caches,
)
from fitmart.estimator.architectures.config import MAX_LAYERS, Config
from fitmart.estimator.architectures.decoder import Shape, Style, feed, frame, layer_norms, read_shape
from fitmart.estimator.architectures.feedforward import mlp, moe_layers, read_moe
from fitmart.estimator.architectures.moe import CORRECTED
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family


def all_but_first(c: Config, layers: int) -> Layers:
    """Experts everywhere but in the first layer, where the config does not list them."""
    if c.has("mlp_layer_types") or c.has("moe_layer_freq") or c.has("first_k_dense_replace"):
        return moe_layers(c, layers)
    return tuple(range(1, layers))


def _where(kinds: Sequence[str], kind: str) -> Layers:
    return tuple(i for i, k in enumerate(kinds) if k == kind)


@family("gpt_oss")
def gpt_oss(parts: Parts) -> Shape:
    """gpt-oss: attention sinks, a window in every second layer, experts with biases stored as one tensor a layer."""
    c = parts.config
    style = Style(qkv_bias="attention_bias", o_bias="attention_bias", window="even")
    shape = read_shape(c)
    shape.heads = heads = read_heads(c, shape.hidden)
    shape.moe = moe = read_moe(c, shape.every, width="intermediate_size")
    at, hidden, every = f"{parts.model}layers.{{layer}}.", shape.hidden, shape.every
    frame(parts, shape, style)
    layer_norms(parts, shape, style, every)
    bias = c.boolean("attention_bias")
    projections(parts, f"{at}self_attn.", hidden, heads, every, qkv_bias=bias, o_bias=bias)
    parts.add("attention", f"{at}self_attn.sinks", heads.query, layers=every, axis="rows")
    parts.linear("router", f"{at}mlp.router", moe.experts, hidden, layers=every, bias=True)
    wide, narrow = f"{at}mlp.experts.gate_up_proj", f"{at}mlp.experts.down_proj"
    parts.add("experts", wide, 2 * moe.width, hidden, layers=every, copies=moe.experts, axis="rows")
    parts.add("experts", f"{wide}_bias", 2 * moe.width, layers=every, copies=moe.experts, axis="rows")
    parts.add("experts", narrow, hidden, moe.width, layers=every, copies=moe.experts, axis="columns")
    parts.add("experts", f"{narrow}_bias", hidden, layers=every, copies=moe.experts)
    window = c.optional_integer("sliding_window", low=1)
    kinds = attention_kinds(c, shape.layers, "even", window)
    window_caches(parts, kinds, heads, window)
    return shape


@family("mimo_v2_flash")
def mimo_v2_flash(parts: Parts) -> Shape:
    """MiMo-V2-Flash: more KV heads in sliding layers, values narrower than keys, sinks where the config asks."""
    c = parts.config
    style = Style(moe=CORRECTED)
    shape = read_shape(c)
    base = read_heads(c, shape.hidden)
    full = replace(base, value_dim=c.integer("v_head_dim", default=base.key_dim))
    sliding = Heads(
        query=c.integer("swa_num_attention_heads", default=full.query),
        kv=c.integer("swa_num_key_value_heads", default=2 * full.kv),
        key_dim=c.integer("swa_head_dim", default=full.key_dim),
        value_dim=c.integer("swa_v_head_dim", default=full.value_dim),
    )
    window = c.integer("sliding_window", "sliding_window_size", default=128)
    shape.heads, shape.width = full, c.integer("intermediate_size")
    where = all_but_first(c, shape.layers)
    shape.moe = read_moe(c, where)
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    feed(parts, shape, style, shape.every)
    at, kinds = f"{parts.model}layers.{{layer}}.self_attn.", _mimo_kinds(c, shape.layers)
    sinks = {
        "full": c.boolean("add_full_attention_sink_bias"),
        "sliding": c.boolean("add_swa_attention_sink_bias", default=True),
    }
    both: tuple[tuple[CacheKind, Heads], ...] = (("full", full), ("sliding", sliding))
    for kind, heads in both:
        layers = _where(kinds, kind)
        projections(parts, at, shape.hidden, heads, layers, qkv_bias=c.boolean("attention_bias"))
        if sinks[kind]:
            parts.add("attention", f"{at}attention_sink_bias", heads.query, layers=layers, axis="rows")
        attention_cache(parts, kind, heads, layers, window=window if kind == "sliding" else None)
    _mimo_mtp(parts, shape, sliding)
    return shape


def _mimo_mtp(parts: Parts, shape: Shape, heads: Heads) -> None:
    """Three dense prediction layers with sliding heads are stored; the config does not name them."""
    c, hidden = parts.config, shape.hidden
    shape.mtp_layers = count = c.integer("num_nextn_predict_layers", default=3, low=0, high=MAX_LAYERS)
    if not count or shape.width is None:
        return
    since, layers, at = len(parts.tensors), tuple(range(count)), f"{parts.model}mtp.layers.{{layer}}."
    projections(parts, f"{at}self_attn.", hidden, heads, layers, qkv_bias=c.boolean("attention_bias"))
    parts.add("mtp", f"{at}self_attn.attention_sink_bias", heads.query, layers=layers)
    mlp(parts, f"{at}mlp.", hidden, shape.width, layers)
    parts.linear("mtp", f"{at}eh_proj", hidden, 2 * hidden, layers=layers)
    for name in ("enorm", "hnorm", "input_layernorm", "pre_mlp_layernorm", "final_layernorm"):
        parts.norm(at + name, hidden, layers=layers)
    parts.as_mtp(since)


def _mimo_kinds(c: Config, layers: int) -> list[str]:
    """`hybrid_layer_pattern` (1 = sliding), else `layer_types`, else the first and every sixth layer are full."""
    pattern = c.integers("hybrid_layer_pattern", at_least=layers, high=1)
    if pattern is not None:
        return ["sliding" if flag else "full" for flag in pattern]
    if c.items("layer_types") is not None:
        return attention_kinds(c, layers, "none", None)
    return ["full" if i == 0 or (i + 1) % 6 == 0 else "sliding" for i in range(layers)]


@family("laguna")
def laguna(parts: Parts) -> Shape:
    """Laguna: query heads by layer, an output gate a head, the router's correction counted as a parameter."""
    c = parts.config
    moe = replace(CORRECTED, is_correction_param=True)
    shape = read_shape(c)
    base = read_heads(c, shape.hidden)
    queries = c.per_layer("num_attention_heads_per_layer", "num_attention_heads", layers=shape.layers, low=1)
    gate = c.get("gating", default=True)
    return _gated_heads(
        parts, shape, base, queries, Style(moe=moe), all_but_first, is_per_head=gate in (True, "per-head")
    )


@family("step3p5", "step3p7")
def step3p5(parts: Parts) -> Shape:
    """Step-3.5 and 3.7: more query heads in sliding layers where `attention_other_setting` says so; an output gate."""
    c = parts.config
    shape = read_shape(c)
    kv = c.optional_integer("num_attention_groups", low=1)
    base = read_heads(c, shape.hidden)
    base = replace(base, kv=kv) if kv else base
    other = c.section("attention_other_setting")
    local = (other.optional_integer("num_attention_heads", low=1) if other else None) or base.query
    kinds = attention_kinds(c, shape.layers, "none", None)
    queries = [local if kind == "sliding" else base.query for kind in kinds]
    return _gated_heads(parts, shape, base, queries, Style(moe=CORRECTED), _step_layers)


def _step_layers(c: Config, layers: int) -> Layers:
    """`moe_layers_enum` (a list or "3,4,5"), else the usual fields; by default all but the first three."""
    stated = c.get("moe_layers_enum", default=None)
    if isinstance(stated, str):
        return tuple(int(i) for i in stated.split(",") if i.strip().isdigit() and int(i) < layers)
    if stated is not None:
        return tuple(i for i in c.integers("moe_layers_enum") or [] if i < layers)
    if c.has("mlp_layer_types") or c.has("first_k_dense_replace"):
        return moe_layers(c, layers)
    return tuple(range(min(3, layers), layers))


def _gated_heads(
    parts: Parts,
    shape: Shape,
    base: Heads,
    queries: Sequence[int],
    style: Style,
    expert_layers: Callable[[Config, int], Layers],
    *,
    is_per_head: bool = True,
) -> Shape:
    """Layers with their own number of query heads, query/key norms, and an output gate."""
    c, hidden = parts.config, shape.hidden
    shape.heads, shape.width = base, c.integer("intermediate_size")
    where = expert_layers(c, shape.layers)
    shape.moe = read_moe(c, where) if where else None
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    feed(parts, shape, style, shape.every)
    at, bias = f"{parts.model}layers.{{layer}}.self_attn.", c.boolean("attention_bias")
    for query in sorted(set(queries)):
        layers, heads = tuple(i for i, q in enumerate(queries) if q == query), replace(base, query=query)
        projections(parts, at, hidden, heads, layers, qkv_bias=bias, o_bias=bias)
        gate = query if is_per_head else query * heads.key_dim
        parts.linear("attention", f"{at}g_proj", gate, hidden, layers=layers, axis="rows")
    for name in ("q_norm", "k_norm"):
        parts.norm(at + name, base.key_dim, layers=shape.every)
    window = c.optional_integer("sliding_window", low=1)
    window_caches(parts, attention_kinds(c, shape.layers, "none", window), base, window)
    return shape
