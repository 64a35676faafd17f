"""MiniMax-M3: ordinary attention that reads only the blocks an indexer picks; DBRX and Grok-1, older MoE layouts."""

from dataclasses import replace

from fitmart.estimator.architectures.attention import attention_cache, indexer_cache, projections, read_heads
from fitmart.estimator.architectures.decoder import Shape, Style, frame, layer_norms, read_shape
from fitmart.estimator.architectures.feedforward import experts, mlp, moe_layers, read_moe
from fitmart.estimator.architectures.mamba import others
from fitmart.estimator.architectures.moe import W_NAMES
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family


@family("minimax_m3", "minimax_m3_vl_text")
def minimax_m3(parts: Parts) -> Shape:
    """MiniMax-M3: the sparse layers also keep one index key a token (their value path is off in all checkpoints)."""
    c = parts.config
    style = Style()
    shape = read_shape(c)
    shape.heads = heads = read_heads(c, shape.hidden)
    at, hidden = f"{parts.model}layers.{{layer}}.", shape.hidden
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    projections(parts, f"{at}self_attn.", hidden, heads, shape.every)
    for name in ("q_norm", "k_norm"):
        parts.norm(f"{at}self_attn.{name}", heads.key_dim, layers=shape.every)
    attention_cache(parts, "full", heads, shape.every)
    where = moe_layers(c, shape.layers)
    moe = read_moe(c, where, width="intermediate_size")
    shared = c.integer("shared_intermediate_size", default=moe.width, low=0)
    shape.moe = moe = replace(moe, shared_width=shared * c.integer("n_shared_experts", default=1, low=0))
    experts(
        parts,
        f"{at}block_sparse_moe.",
        hidden,
        moe,
        names=W_NAMES,
        correction="e_score_correction_bias",
    )
    shape.width = c.integer("dense_intermediate_size", default=moe.width)
    mlp(parts, f"{at}mlp.", hidden, shape.width, others(shape.layers, where))
    _indexer(parts, f"{at}self_attn.", shape)
    return shape


def _indexer(parts: Parts, prefix: str, shape: Shape) -> None:
    nested = parts.config.section("sparse_attention_config")
    if nested is None or not nested.boolean("use_sparse_attention", default=True):
        return
    flags = nested.integers("sparse_attention_freq", at_least=shape.layers, high=1)
    layers: Layers = shape.every if flags is None else tuple(i for i, flag in enumerate(flags) if flag)
    dim = nested.integer("sparse_index_dim", default=128)
    queries = nested.integer("sparse_num_index_heads", default=4) * dim
    parts.linear("attention", f"{prefix}index_q_proj", queries, shape.hidden, layers=layers)
    parts.linear("attention", f"{prefix}index_k_proj", dim, shape.hidden, layers=layers)
    for name in ("index_q_norm", "index_k_norm"):
        parts.norm(prefix + name, dim, layers=layers)
    indexer_cache(parts, dim, layers)


@family("dbrx")
def dbrx(parts: Parts) -> Shape:
    """DBRX: sizes in attn_config and ffn_config, all experts of a layer in one matrix, LayerNorm without biases."""
    c = parts.config
    parts.model = "transformer."
    style = Style(
        layer="blocks.{layer}.",
        norms=("norm_attn_norm.norm_1", "norm_attn_norm.norm_2"),
        embedding="wte",
        final_norm="norm_f",
    )
    shape = read_shape(c)
    attention, feed = c.section("attn_config"), c.section("ffn_config")
    if attention is None or feed is None:
        raise c.fail(f"config.json lacks {'ffn_config' if attention else 'attn_config'}")
    base = read_heads(c, shape.hidden)
    shape.heads = heads = replace(base, kv=attention.integer("kv_n_heads", default=1))
    at, hidden, every = "transformer.blocks.{layer}.", shape.hidden, shape.every
    frame(parts, shape, style)
    layer_norms(parts, shape, style, every)
    projections(parts, f"{at}norm_attn_norm.attn.", hidden, heads, every, fused="Wqkv", names=("", "", "", "out_proj"))
    attention_cache(parts, "full", heads, every)
    shape.moe = moe = read_moe(feed, every, width="ffn_hidden_size")
    parts.linear("router", f"{at}ffn.router.layer", moe.experts, hidden, layers=every)
    for name in ("w1", "v1", "w2"):  # each experts × width rows; w2 is stored transposed
        full = f"{at}ffn.experts.mlp.{name}"
        parts.add("experts", full, moe.width, hidden, layers=every, copies=moe.experts, axis="rows")
    return shape


@family("grok-1", "grok")
def grok(parts: Parts) -> Shape:
    """Grok-1: four norms a layer, eight experts named as Mixtral's."""
    c = parts.config
    style = Style(norms=("pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"))
    shape = read_shape(c)
    shape.heads = heads = read_heads(c, shape.hidden)
    at, hidden, every = f"{parts.model}layers.{{layer}}.", shape.hidden, shape.every
    frame(parts, shape, style)
    layer_norms(parts, shape, style, every)
    projections(parts, f"{at}attn.", hidden, heads, every)
    attention_cache(parts, "full", heads, every)
    shape.moe = read_moe(c, every)
    experts(
        parts,
        f"{at}moe_block.",
        hidden,
        shape.moe,
        names=("linear", "linear_v", "linear_1"),
    )
    return shape
