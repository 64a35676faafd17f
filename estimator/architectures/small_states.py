"""Hybrids of attention and small states: LFM2 (short convolutions), RecurrentGemma (RG-LRU)."""

from fitmart.estimator.architectures.attention import attention_cache, attention_kinds, projections, read_heads
from fitmart.estimator.architectures.decoder import Shape, Style, frame, layer_norms, read_shape
from fitmart.estimator.architectures.feedforward import experts, mlp, read_moe
from fitmart.estimator.architectures.mamba import others
from fitmart.estimator.architectures.parts import Parts
from fitmart.estimator.architectures.registry import family
from fitmart.estimator.architectures.state_space import causal_conv, conv_state, linear_state

LFM = Style(norms=("operator_norm", "ffn_norm"), final_norm="embedding_norm")
W_NAMES = ("w1", "w3", "w2")


def adjusted_width(width: int, multiplier: float, multiple: int) -> int:
    """LFM2's `block_auto_adjust_ff_dim`: 2/3 of the width, times a factor, rounded up to a multiple."""
    inner = int(multiplier * int(2 * width / 3))
    return -(-inner // multiple) * multiple


@family("lfm2", "lfm2_moe")
def lfm2(parts: Parts) -> Shape:
    """LFM2: gated short convolutions with a few attention layers; the MoE form keeps some dense layers in front."""
    c = parts.config
    shape = read_shape(c)
    hidden, at = shape.hidden, f"{parts.model}layers.{{layer}}."
    frame(parts, shape, LFM)
    layer_norms(parts, shape, LFM, shape.every)
    owners = c.integers("full_attn_idxs", high=shape.layers - 1)
    if owners is None:
        kinds = attention_kinds(c, shape.layers, "none", None)
        owners = [i for i, kind in enumerate(kinds) if kind == "full"]
    attention = tuple(owners)
    shape.heads = heads = read_heads(c, hidden)
    projections(parts, f"{at}self_attn.", hidden, heads, attention, names=("q_proj", "k_proj", "v_proj", "out_proj"))
    for name in ("q_layernorm", "k_layernorm"):
        parts.norm(f"{at}self_attn.{name}", heads.key_dim, layers=attention)
    attention_cache(parts, "full", heads, attention)
    conv = others(shape.layers, attention)
    kernel, bias = c.integer("conv_L_cache", default=3), c.boolean("conv_bias")
    causal_conv(parts, f"{at}conv.conv", hidden, kernel, conv, bias=bias)
    parts.linear("attention", f"{at}conv.in_proj", 3 * hidden, hidden, layers=conv, axis="rows", bias=bias)
    parts.linear("attention", f"{at}conv.out_proj", hidden, hidden, layers=conv, axis="columns", bias=bias)
    conv_state(parts, conv, channels=hidden, kernel=kernel)
    _lfm2_feed(parts, shape, f"{at}feed_forward.")
    return shape


def _lfm2_feed(parts: Parts, shape: Shape, at: str) -> None:
    c = parts.config
    width = c.integer("block_ff_dim", "intermediate_size")
    if c.boolean("block_auto_adjust_ff_dim"):
        multiplier = c.number("block_ffn_dim_multiplier", default=1.0)
        width = adjusted_width(width, multiplier, c.integer("block_multiple_of", default=256))
    shape.width = width
    dense = shape.every
    if c.get("num_experts", default=None) is not None:
        first = c.integer("num_dense_layers", default=2, low=0, high=shape.layers)
        dense, layers = shape.every[:first], shape.every[first:]
        shape.moe = read_moe(c, layers)
        correction = "expert_bias" if c.boolean("use_expert_bias") else None
        experts(parts, at, shape.hidden, shape.moe, names=W_NAMES, correction=correction)
    mlp(parts, at, shape.hidden, width, dense, names=W_NAMES)


@family("recurrent_gemma")
def recurrent_gemma(parts: Parts) -> Shape:
    """RecurrentGemma (Griffin): linear recurrences of `lru_width`, windowed attention in the layers between."""
    c = parts.config
    shape = read_shape(c)
    style = Style(norms=("temporal_pre_norm", "channel_pre_norm"), final_norm="final_norm")
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    period = c.items("block_types", "_block_types") or ["recurrent", "recurrent", "attention"]
    attention = tuple(i for i in shape.every if period[i % len(period)] == "attention")
    states = others(shape.layers, attention)
    at, hidden = f"{parts.model}layers.{{layer}}.temporal_block.", shape.hidden
    shape.heads = heads = read_heads(c, hidden)
    projections(parts, at, hidden, heads, attention, qkv_bias=c.boolean("attention_bias"), o_bias=True)
    attention_cache(parts, "sliding", heads, attention, window=c.integer("attention_window_size", default=2048))
    width, kernel = c.integer("lru_width", default=hidden), c.integer("conv1d_width", default=4)
    for name in ("linear_x", "linear_y"):
        parts.linear("attention", at + name, width, hidden, layers=states, axis="rows", bias=True)
    parts.linear("attention", f"{at}linear_out", hidden, width, layers=states, axis="columns", bias=True)
    causal_conv(parts, f"{at}conv_1d", width, kernel, states, bias=True)
    block = width // heads.query
    parts.add("attention", f"{at}rg_lru.recurrent_param", width, layers=states)
    for gate in ("input_gate", "recurrent_gate"):
        parts.add("attention", f"{at}rg_lru.{gate}_weight", heads.query * block, block, layers=states)
        parts.add("attention", f"{at}rg_lru.{gate}_bias", heads.query * block, layers=states)
    linear_state(parts, states, heads=1, key_dim=width, value_dim=1)
    conv_state(parts, states, channels=width, kernel=kernel)
    shape.width = c.integer("intermediate_size") // 2
    mlp(parts, f"{parts.model}layers.{{layer}}.mlp_block.", hidden, shape.width, shape.every, bias=True)
    return shape
