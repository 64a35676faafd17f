"""Latent attention (MLA): DeepSeek-V2/V3/R1, V3.2 with its sparse indexer, Kimi-K2, GLM-4.7-Flash and GLM-5."""

from dataclasses import replace

from fitmart.estimator.architectures.attention import (
    indexer,
    indexer_cache,
    latent_cache,
    latent_projections,
    read_latent,
)
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.decoder import MoeStyle, Shape, Style, feed, frame, layer_norms, read_shape
from fitmart.estimator.architectures.feedforward import mlp, moe_layers, read_moe
from fitmart.estimator.architectures.mtp import deepseek_mtp
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family

V2 = Style(moe=MoeStyle())  # DeepSeek-V2 routes without a correction bias
V3 = Style(moe=MoeStyle(correction="gate.e_score_correction_bias"))


def indexer_layers(c: Config, layers: int) -> Layers:
    """Layers that keep index keys: all, but those that `indexer_types` calls shared reuse another's."""
    kinds = c.items("indexer_types", at_least=layers)
    return tuple(i for i in range(layers) if kinds is None or kinds[i] == "full")


def decoder_layers(parts: Parts, shape: Shape, style: Style, layers: Layers, *, indexed: Layers = ()) -> None:
    """Attention, norms and feed-forward of `layers`; those in `indexed` own an indexer."""
    c, at = parts.config, f"{parts.model}{style.layer}self_attn."
    latent = read_latent(c)
    latent_projections(parts, at, shape.hidden, latent, layers, bias=c.boolean("attention_bias"))
    if indexed:
        indexer(parts, f"{at}indexer.", shape.hidden, latent.q_lora or shape.hidden, indexed)
    layer_norms(parts, shape, style, layers)
    feed(parts, shape, style, layers)


def read_deepseek(parts: Parts, style: Style, *, has_indexer: bool = False, has_copies: bool = True) -> Shape:
    """The whole model and its stored multi-token-prediction layers."""
    c = parts.config
    shape = read_shape(c)
    latent = read_latent(c)
    shape.heads, shape.q_lora, shape.kv_lora = latent.heads, latent.q_lora, latent.kv_lora
    where = moe_layers(c, shape.layers) if c.get("n_routed_experts", "num_experts", default=None) else ()
    shape.moe = read_moe(c, where) if where else None
    if len(where) < shape.layers:
        shape.width = c.integer("intermediate_size")
    indexed = indexer_layers(c, shape.layers) if has_indexer else ()
    frame(parts, shape, style)
    decoder_layers(parts, shape, style, shape.every, indexed=indexed)
    latent_cache(parts, latent, shape.every)
    if indexed:
        indexer_cache(parts, c.integer("index_head_dim"), indexed)

    def mtp_layer(layers: Layers) -> None:
        decoder_layers(parts, shape, style, layers, indexed=layers if has_indexer else ())

    deepseek_mtp(parts, shape, mtp_layer, has_copies=has_copies)
    return shape


@family("deepseek_v2", "minicpm3", "youtu", "mistral4")
def deepseek_v2(parts: Parts) -> Shape:
    """DeepSeek-V2, V2-Lite, Coder-V2, and latent attention without correction bias elsewhere (MiniCPM3, Youtu)."""
    return read_deepseek(parts, V2)


@family("deepseek_v3", "kimi_k2", "glm4_moe_lite")
def deepseek_v3(parts: Parts) -> Shape:
    """DeepSeek-V3, R1, V3.1, Kimi-K2, Moonlight, GLM-4.7-Flash."""
    return read_deepseek(parts, V3)


@family("deepseek_v32")
def deepseek_v32(parts: Parts) -> Shape:
    """DeepSeek-V3.2: latent attention over the tokens that an indexer picks."""
    return read_deepseek(parts, V3, has_indexer=True)


@family("glm_moe_dsa")
def glm_moe_dsa(parts: Parts) -> Shape:
    """GLM-5: as V3.2; its prediction layer shares embedding and output matrix."""
    return read_deepseek(parts, V3, has_indexer=True, has_copies=False)


@family("longcat_flash")
def longcat_flash(parts: Parts) -> Shape:
    """LongCat-Flash: two latent attentions and two dense MLPs a layer beside the experts; some experts do nothing."""
    c = parts.config
    shape = read_shape(c)
    latent, at, every = read_latent(c), f"{parts.model}layers.{{layer}}.", shape.every
    shape.q_lora, shape.kv_lora = latent.q_lora, latent.kv_lora
    shape.width = c.integer("ffn_hidden_size")
    frame(parts, shape, V3)
    for half in ("0", "1"):
        latent_projections(parts, f"{at}self_attn.{half}.", shape.hidden, latent, every)
        mlp(parts, f"{at}mlps.{half}.", shape.hidden, shape.width, every)
        for name in ("input_layernorm", "post_attention_layernorm"):
            parts.norm(f"{at}{name}.{half}", shape.hidden, layers=every)
        latent_cache(parts, latent, every)
    moe = read_moe(c, every, width="expert_ffn_hidden_size")
    shape.moe = moe = replace(moe, shared_width=0)
    outputs = moe.experts + c.integer("zero_expert_num", default=0, low=0)
    parts.linear("router", f"{at}mlp.router.classifier", outputs, shape.hidden, layers=every)
    parts.buffer("router", f"{at}mlp.router.e_score_correction_bias", outputs, layers=every)
    mlp(
        parts,
        f"{at}mlp.experts.{{expert}}.",
        shape.hidden,
        moe.width,
        every,
        component="experts",
        copies=moe.experts,
    )
    return shape
