"""Latent attention (MLA): DeepSeek-V2/V3/R1, V3.2 with its sparse indexer, Kimi-K2, GLM-4.7-Flash and GLM-5."""

from fitmart.estimator.architectures.attention import (
    indexer,
    indexer_cache,
    latent_cache,
    latent_projections,
    read_latent,
)
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.decoder import MoeStyle, Shape, Style, feed, frame, layer_norms, read_shape
from fitmart.estimator.architectures.feedforward import moe_layers, read_moe
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


@family("deepseek_v2")
def deepseek_v2(parts: Parts) -> Shape:
    """DeepSeek-V2, V2-Lite, Coder-V2."""
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
