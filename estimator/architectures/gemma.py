"""Gemma 3n and 4, whose layers differ: own sizes on full-attention layers, shared KV, per-layer embeddings, AltUp."""

from collections.abc import Sequence

from fitmart.estimator.architectures.attention import (
    Heads,
    attention_cache,
    attention_kinds,
    projections,
    read_heads,
)
from fitmart.estimator.architectures.decoder import Shape, Style, frame, layer_norms, read_shape
from fitmart.estimator.architectures.feedforward import experts, mlp, read_moe
from fitmart.estimator.architectures.llama_like import GEMMA2_NORMS
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family

STYLE = Style(norms=GEMMA2_NORMS)


def _attention(parts: Parts, shape: Shape, heads: Heads, layers: Layers, owners: int, *, has_values: bool) -> None:
    """Layers from `owners` on reuse the keys and values of earlier ones; their weights are stored all the same."""
    at = f"{parts.model}layers.{{layer}}.self_attn."
    own = tuple(i for i in layers if i < owners)
    shared = tuple(i for i in layers if i >= owners)
    projections(parts, at, shape.hidden, heads, own, has_values=has_values)
    projections(parts, at, shape.hidden, heads, shared, has_keys=False)
    parts.norm(f"{at}q_norm", heads.key_dim, layers=layers)
    parts.norm(f"{at}k_norm", heads.key_dim, layers=own)
    if shared:
        for name in ("k_proj", "v_proj")[: 2 if has_values else 1]:
            parts.buffer("attention", f"{at}{name}.weight", heads.kv * heads.key_dim, shape.hidden, layers=shared)
        parts.buffer("attention", f"{at}k_norm.weight", heads.key_dim, layers=shared)


def _per_layer_inputs(parts: Parts, shape: Shape, width: int) -> None:
    """A second embedding table with `width` values for each layer, and the gates that mix it in."""
    c, hidden, every = parts.config, shape.hidden, shape.every
    vocab = c.integer("vocab_size_per_layer_input", default=shape.vocab)
    table = shape.layers * width
    parts.add("embedding", f"{parts.model}embed_tokens_per_layer.weight", vocab, table, axis="rows")
    parts.linear("mlp", f"{parts.model}per_layer_model_projection", table, hidden)
    parts.norm(f"{parts.model}per_layer_projection_norm", width)
    at = f"{parts.model}layers.{{layer}}."
    parts.linear("mlp", f"{at}per_layer_input_gate", width, hidden, layers=every)
    parts.linear("mlp", f"{at}per_layer_projection", hidden, width, layers=every)
    parts.norm(f"{at}post_per_layer_input_norm", hidden, layers=every)


def _caches(parts: Parts, kinds: Sequence[str], heads: dict[str, Heads], owners: int, window: int | None) -> None:
    for kind in ("full", "sliding"):
        layers = tuple(i for i, k in enumerate(kinds) if k == kind and i < owners)
        attention_cache(parts, kind, heads[kind], layers, window=window if kind == "sliding" else None)


@family("gemma4_text", "gemma4_unified_text")
def gemma4(parts: Parts) -> Shape:
    """Gemma 4: full layers have their own head size and KV heads, and may drop v_proj (the cache keeps both)."""
    c = parts.config
    shape = read_shape(c)
    sliding = read_heads(c, shape.hidden)
    dim = c.optional_integer("global_head_dim", default=512, low=1) or sliding.key_dim
    is_k_eq_v = c.boolean("attention_k_eq_v")
    kv = (c.optional_integer("num_global_key_value_heads", low=1) if is_k_eq_v else None) or sliding.kv
    full = Heads(query=sliding.query, kv=kv, key_dim=dim, value_dim=dim)
    window = c.optional_integer("sliding_window", low=1)
    kinds = attention_kinds(c, shape.layers, "every:6", window)
    kinds[-1] = "full"  # the class forces it
    owners = shape.layers - c.integer("num_kv_shared_layers", default=0, low=0, high=shape.layers)
    shape.heads, shape.width = sliding, c.integer("intermediate_size")
    width = c.optional_integer("hidden_size_per_layer_input")
    frame(parts, shape, STYLE)
    layer_norms(parts, shape, STYLE, shape.every)
    parts.buffer("norm", f"{parts.model}layers.{{layer}}.layer_scalar", 1, layers=shape.every)
    heads = {"full": full, "sliding": sliding}
    for kind, own in heads.items():
        layers = tuple(i for i, k in enumerate(kinds) if k == kind)
        _attention(parts, shape, own, layers, owners, has_values=not (is_k_eq_v and kind == "full"))
    _gemma4_feed(parts, shape, owners)
    if width:
        _per_layer_inputs(parts, shape, width)
    _caches(parts, kinds, heads, owners, window)
    return shape


def _gemma4_feed(parts: Parts, shape: Shape, owners: int) -> None:
    """A dense MLP in every layer (twice as wide where KV is shared, if asked) and, in MoE models, experts beside it."""
    c, at, width = parts.config, f"{parts.model}layers.{{layer}}.", shape.width or 0
    is_double = c.boolean("use_double_wide_mlp")
    split = owners if is_double else shape.layers
    mlp(parts, f"{at}mlp.", shape.hidden, width, shape.every[:split])
    mlp(parts, f"{at}mlp.", shape.hidden, 2 * width, shape.every[split:])
    if not c.boolean("enable_moe_block"):
        return
    shape.moe = read_moe(c, shape.every)
    experts(parts, at, shape.hidden, shape.moe, router="router.proj")
    parts.add("router", f"{at}router.scale", shape.hidden, layers=shape.every)
    parts.add("router", f"{at}router.per_expert_scale", shape.moe.experts, layers=shape.every)
    for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"):
        parts.norm(at + name, shape.hidden, layers=shape.every)


@family("gemma3n_text")
def gemma3n(parts: Parts) -> Shape:
    """Gemma 3n: AltUp streams, LAuReL low-rank residuals, per-layer embeddings, the last layers without own KV."""
    c = parts.config
    shape = read_shape(c)
    shape.heads = heads = read_heads(c, shape.hidden)
    window = c.optional_integer("sliding_window", low=1)
    kinds = attention_kinds(c, shape.layers, "every:5", window)
    owners = shape.layers - c.integer("num_kv_shared_layers", default=15, low=0, high=shape.layers)
    widths = c.per_layer("intermediate_size", layers=shape.layers, low=1)
    shape.width = max(widths)
    frame(parts, shape, STYLE)
    layer_norms(parts, shape, STYLE, shape.every)
    _attention(parts, shape, heads, shape.every, owners, has_values=True)
    at, hidden, every = f"{parts.model}layers.{{layer}}.", shape.hidden, shape.every
    for width in sorted(set(widths)):
        mlp(parts, f"{at}mlp.", hidden, width, tuple(i for i, w in enumerate(widths) if w == width))
    streams = c.integer("altup_num_inputs", default=4)
    parts.add("norm", f"{at}altup.correct_output_scale", hidden, layers=every)
    parts.linear("mlp", f"{at}altup.correction_coefs", streams, streams, layers=every)
    parts.linear("mlp", f"{at}altup.prediction_coefs", streams * streams, streams, layers=every)
    parts.linear("mlp", f"{at}altup.modality_router", streams, hidden, layers=every)
    parts.norm(f"{at}altup.router_norm", hidden, layers=every)
    rank = c.integer("laurel_rank", default=64)
    parts.linear("mlp", f"{at}laurel.linear_left", rank, hidden, layers=every)
    parts.linear("mlp", f"{at}laurel.linear_right", hidden, rank, layers=every)
    parts.norm(f"{at}laurel.post_laurel_norm", hidden, layers=every)
    _per_layer_inputs(parts, shape, c.integer("hidden_size_per_layer_input", default=256))
    for name in ("altup_projections", "altup_unembed_projections"):
        parts.linear("mlp", f"{parts.model}{name}.{{layer}}", hidden, hidden, layers=tuple(range(streams - 1)))
    _caches(parts, kinds, {"full": heads, "sliding": heads}, owners, window)
    return shape
