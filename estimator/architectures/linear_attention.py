"""Hybrids whose linear-attention layers keep a matrix a head: Qwen3-Next/3.5, Kimi-Linear, MiniMax-Text-01."""

from fitmart.estimator.architectures.attention import (
    attention_cache,
    attention_kinds,
    latent_cache,
    latent_projections,
    projections,
    read_heads,
    read_latent,
)
from fitmart.estimator.architectures.config import MAX_LAYERS
from fitmart.estimator.architectures.decoder import (
    MoeStyle,
    Shape,
    Style,
    feed,
    frame,
    layer_norms,
    read_shape,
    routed_experts,
)
from fitmart.estimator.architectures.feedforward import experts, mlp, moe_layers, read_moe
from fitmart.estimator.architectures.mamba import others
from fitmart.estimator.architectures.moe import QWEN_MOE, W_NAMES, every_layer
from fitmart.estimator.architectures.mtp import add_expert_layers
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family
from fitmart.estimator.architectures.state_space import causal_conv, conv_state, linear_state

QWEN = Style(moe=QWEN_MOE)


# ---- Gated DeltaNet (Qwen) ----------------------------------------------------------------------------------------- #


def _delta_net(parts: Parts, prefix: str, hidden: int, layers: Layers, *, is_split: bool) -> None:
    """Weights and states of Gated DeltaNet. Qwen3-Next fuses qkvz and ba; Qwen3.5 keeps qkv, z, b and a apart."""
    c = parts.config
    key_heads, value_heads = c.integer("linear_num_key_heads"), c.integer("linear_num_value_heads")
    key_dim, value_dim = c.integer("linear_key_head_dim"), c.integer("linear_value_head_dim")
    kernel = c.integer("linear_conv_kernel_dim", default=4)
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    for name in ("dt_bias", "A_log"):
        parts.add("attention", prefix + name, value_heads, layers=layers, axis="rows")
    causal_conv(parts, f"{prefix}conv1d", channels, kernel, layers, bias=False)
    split = (("qkv", channels), ("z", values), ("b", value_heads), ("a", value_heads))
    fused = (("qkvz", channels + values), ("ba", 2 * value_heads))
    for name, rows in split if is_split else fused:
        parts.linear("attention", f"{prefix}in_proj_{name}", rows, hidden, layers=layers, axis="rows")
    parts.norm(f"{prefix}norm", value_dim, layers=layers)
    parts.linear("attention", f"{prefix}out_proj", hidden, values, layers=layers, axis="columns")
    linear_state(parts, layers, heads=value_heads, key_dim=key_dim, value_dim=value_dim)
    conv_state(parts, layers, channels=channels, kernel=kernel)


def _gated_attention(parts: Parts, prefix: str, shape: Shape, layers: Layers) -> None:
    """Attention whose q_proj carries an output gate."""
    c = parts.config
    shape.heads = heads = read_heads(c, shape.hidden)
    bias = c.boolean("attention_bias")
    is_gated = c.boolean("attn_output_gate", default=True)
    projections(parts, prefix, shape.hidden, heads, layers, qkv_bias=bias, o_bias=bias, is_gated=is_gated)
    for name in ("q_norm", "k_norm"):
        parts.norm(prefix + name, heads.key_dim, layers=layers)


def _qwen_kinds(parts: Parts, layers: int) -> Layers:
    """The full-attention layers: `layer_types`, else every `full_attention_interval`-th."""
    c = parts.config
    if c.items("layer_types") is not None:
        kinds = attention_kinds(c, layers, "none", None)
        return tuple(i for i, kind in enumerate(kinds) if kind == "full")
    every = c.integer("full_attention_interval", default=4)
    return tuple(i for i in range(layers) if (i + 1) % every == 0)


def _qwen_mtp(parts: Parts, shape: Shape, count: int) -> None:
    """Qwen's prediction layer: a full-attention layer, a 2h × h projection, no copies of embedding and head."""
    shape.mtp_layers = count
    if not count:
        return
    since, model, hidden, layers = len(parts.tensors), parts.model, shape.hidden, tuple(range(count))
    parts.model = "mtp."

    def add_layer(where: Layers) -> None:
        _gated_attention(parts, "mtp.layers.{layer}.self_attn.", shape, where)
        layer_norms(parts, shape, QWEN, where)
        feed(parts, shape, QWEN, where)

    add_expert_layers(shape, layers, add_layer)
    parts.linear("mtp", "mtp.fc", hidden, 2 * hidden)
    for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        parts.norm(f"mtp.{name}", hidden)
    parts.as_mtp(since)
    parts.model = model


def _qwen_hybrid(parts: Parts, *, is_split: bool, mtp: int) -> Shape:
    c = parts.config
    shape = read_shape(c)
    where = moe_layers(c, shape.layers) if c.get("num_experts", default=None) else ()
    shape.moe = read_moe(c, where) if where else None
    if len(where) < shape.layers:
        shape.width = c.integer("intermediate_size")
    full = _qwen_kinds(parts, shape.layers)
    at = f"{parts.model}layers.{{layer}}."
    frame(parts, shape, QWEN)
    _delta_net(parts, f"{at}linear_attn.", shape.hidden, others(shape.layers, full), is_split=is_split)
    _gated_attention(parts, f"{at}self_attn.", shape, full)
    layer_norms(parts, shape, QWEN, shape.every)
    feed(parts, shape, QWEN, shape.every)
    if shape.heads:
        attention_cache(parts, "full", shape.heads, full)
    _qwen_mtp(parts, shape, mtp)
    return shape


@family("qwen3_next")
def qwen3_next(parts: Parts) -> Shape:
    """Qwen3-Next: its checkpoints hold one prediction layer, though the config does not say so."""
    count = parts.config.integer("num_nextn_predict_layers", default=1, low=0, high=MAX_LAYERS)
    return _qwen_hybrid(parts, is_split=False, mtp=count)


@family("qwen3_5_text", "qwen3_5_moe_text")
def qwen3_5(parts: Parts) -> Shape:
    """Qwen3.5 and 3.6. A text model on its own (ForCausalLM) was saved by a class that drops the prediction layer."""
    is_alone = (parts.config.string("model_type") or "").endswith("_text") and parts.model == "model."
    if is_alone:
        return _qwen_hybrid(parts, is_split=True, mtp=0)
    return _qwen_hybrid(
        parts, is_split=True, mtp=parts.config.integer("mtp_num_hidden_layers", default=0, low=0, high=MAX_LAYERS)
    )


# ---- Kimi Delta Attention ------------------------------------------------------------------------------------------ #


@family("kimi_linear")
def kimi_linear(parts: Parts) -> Shape:
    """Kimi-Linear and Kimi-K3: latent attention in `full_attn_layers` (counted from 1), KDA elsewhere.

    K3 adds a full-rank output gate and experts on a narrower vector (`routed_expert_hidden_size`).
    """
    c = parts.config
    shape = read_shape(c)
    nested = c.section("linear_attn_config")
    if nested is None:
        raise c.fail("config.json lacks linear_attn_config")
    full = tuple(i - 1 for i in nested.integers("full_attn_layers", low=1, high=shape.layers) or [])
    latent = read_latent(c)
    shape.heads, shape.q_lora, shape.kv_lora = latent.heads, latent.q_lora, latent.kv_lora
    style = Style(moe=MoeStyle(block="block_sparse_moe.", names=W_NAMES, correction="gate.e_score_correction_bias"))
    at, hidden = f"{parts.model}layers.{{layer}}.", shape.hidden
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    latent_projections(parts, f"{at}self_attn.", hidden, latent, full)
    if c.boolean("mla_use_output_gate"):
        gate = latent.query * latent.value_dim
        parts.linear("attention", f"{at}self_attn.g_proj", gate, hidden, layers=full, axis="rows")
    latent_cache(parts, latent, full)
    _kda(parts, f"{at}self_attn.", hidden, others(shape.layers, full))
    where = moe_layers(c, shape.layers)
    shape.moe = moe = read_moe(c, where)
    shape.width = c.integer("intermediate_size")
    mlp(parts, f"{at}mlp.", hidden, shape.width, others(shape.layers, where))
    inner = c.optional_integer("routed_expert_hidden_size", low=1) or hidden
    experts(
        parts,
        f"{at}block_sparse_moe.",
        hidden,
        moe,
        names=W_NAMES,
        correction="gate.e_score_correction_bias",
        inner=inner,
    )
    if inner != hidden:
        for name, rows, columns in (("down", inner, hidden), ("up", hidden, inner)):
            parts.linear("mlp", f"{at}block_sparse_moe.latent_{name}_proj", rows, columns, layers=where)
    return shape


def _kda(parts: Parts, prefix: str, hidden: int, layers: Layers) -> None:
    """Kimi Delta Attention: q, k, v with a short convolution each, low-rank decay and output gates."""
    nested = parts.config.section("linear_attn_config")
    if nested is None or not layers:
        return
    heads, dim = nested.integer("num_heads"), nested.integer("head_dim")
    kernel, width = nested.integer("short_conv_kernel_size", default=4), heads * dim
    for name in ("q", "k", "v"):
        parts.linear("attention", f"{prefix}{name}_proj", width, hidden, layers=layers, axis="rows")
        causal_conv(parts, f"{prefix}{name}_conv1d", width, kernel, layers, bias=False)
    parts.add("attention", f"{prefix}A_log", heads, layers=layers, axis="rows")
    parts.add("attention", f"{prefix}dt_bias", width, layers=layers, axis="rows")
    low_rank = ("f",) if nested.boolean("use_full_rank_gate") else ("f", "g")
    for name in low_rank:
        parts.linear("attention", f"{prefix}{name}_a_proj", dim, hidden, layers=layers)
        parts.linear("attention", f"{prefix}{name}_b_proj", width, dim, layers=layers, axis="rows")
    if "g" not in low_rank:
        parts.linear("attention", f"{prefix}g_proj", width, hidden, layers=layers, axis="rows")
    parts.linear("attention", f"{prefix}b_proj", heads, hidden, layers=layers, axis="rows")
    parts.norm(f"{prefix}o_norm", dim, layers=layers)
    parts.linear("attention", f"{prefix}o_proj", hidden, width, layers=layers, axis="columns")
    linear_state(parts, layers, heads=heads, key_dim=dim, value_dim=dim, element_bytes=4)
    conv_state(parts, layers, channels=3 * width, kernel=kernel)


# ---- lightning attention (MiniMax) --------------------------------------------------------------------------------- #


@family("minimax", "minimax_m1", "minimax_text_01")
def minimax(parts: Parts) -> Shape:
    """MiniMax-Text-01 and M1: one softmax layer in eight, lightning attention elsewhere, experts in all."""
    c = parts.config
    shape = read_shape(c)
    style = Style(moe=MoeStyle(block="block_sparse_moe.", names=W_NAMES, width="intermediate_size", layers=every_layer))
    flags = c.integers("attn_type_list", at_least=shape.layers, high=1)
    if flags is not None:
        full = tuple(i for i, flag in enumerate(flags) if flag)
    elif c.items("layer_types") is not None:
        kinds = attention_kinds(c, shape.layers, "none", None)
        full = tuple(i for i, kind in enumerate(kinds) if kind == "full")
    else:
        full = tuple(i for i in shape.every if (i + 1) % 2 == 0)
    at, hidden = f"{parts.model}layers.{{layer}}.", shape.hidden
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    shape.heads = heads = read_heads(c, hidden)
    projections(parts, f"{at}self_attn.", hidden, heads, full)
    attention_cache(parts, "full", heads, full)
    linear, width = others(shape.layers, full), heads.query * heads.key_dim
    parts.norm(f"{at}self_attn.norm", width, layers=linear)
    for name, rows in (("qkv_proj", 3 * width), ("output_gate", width)):
        parts.linear("attention", f"{at}self_attn.{name}", rows, hidden, layers=linear, axis="rows")
    parts.linear("attention", f"{at}self_attn.out_proj", hidden, width, layers=linear, axis="columns")
    linear_state(parts, linear, heads=heads.query, key_dim=heads.key_dim, value_dim=heads.key_dim)
    shape.moe = read_moe(c, shape.every, width="intermediate_size")
    if style.moe:
        routed_experts(parts, at, hidden, style.moe, shape.moe)
    return shape
