"""DeepSeek-V4: compressed attention over one shared key-value head, hyper-connections, hash-routed first layers."""

from fitmart.estimator.anatomy import Cache
from fitmart.estimator.architectures.attention import Heads, indexer_cache
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.decoder import (
    MoeStyle,
    Shape,
    Style,
    frame,
    read_shape,
    routed_experts,
)
from fitmart.estimator.architectures.feedforward import read_moe
from fitmart.estimator.architectures.moe import W_NAMES
from fitmart.estimator.architectures.mtp import add_expert_layers
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family

STYLE = Style(
    embedding="embed",
    norms=("attn_norm", "ffn_norm"),
    moe=MoeStyle(block="ffn.", names=W_NAMES, shared_names=W_NAMES),
)
OVERLAPPING = 4  # entries of this ratio overlap: twice the width; their layers also own an indexer


def ratios(c: Config, layers: int) -> list[int]:
    """Tokens per compressed entry by layer (0: none). The list may have an entry more, for the prediction layer."""
    stated = c.integers("compress_ratios", at_least=layers)
    if stated is not None:
        return stated
    kinds = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
    return [kinds.get(str(kind), 0) for kind in c.items("layer_types", at_least=layers) or [""] * layers]


@family("deepseek_v4", "deepseek_ref")
def deepseek_v4(parts: Parts) -> Shape:
    """Every layer keeps a window of a shared latent; layers of ratio r add an entry every r tokens."""
    c = parts.config
    shape = read_shape(c)
    dim, window = c.integer("head_dim"), c.integer("sliding_window")
    query = c.integer("num_attention_heads")
    shape.heads = Heads(query=query, kv=1, key_dim=dim, value_dim=0)
    shape.attention_kind, shape.q_lora, shape.kv_lora = "mla", c.integer("q_lora_rank"), dim
    shape.moe = read_moe(c, shape.every)
    parts.model, parts.head = "", "head"
    frame(parts, shape, STYLE)
    _layers(parts, shape, shape.every)
    hashed = c.integer("num_hash_layers", default=0, low=0, high=shape.layers)
    at = "layers.{layer}."
    parts.buffer("router", f"{at}ffn.gate.tid2eid", shape.vocab, shape.moe.top_k, layers=shape.every[:hashed])
    parts.buffer("router", f"{at}ffn.gate.bias", shape.moe.experts, layers=shape.every[hashed:])
    _hyper_head(parts, shape)
    parts.caches.append(
        Cache(kind="mla", layers=shape.every, elements_per_token=dim, window_tokens=window, key_dim=dim)
    )
    by_layer = ratios(c, shape.layers)
    for ratio in sorted(set(by_layer) - {0}):
        layers = tuple(i for i, r in enumerate(by_layer) if r == ratio)
        _compressor(parts, f"{at}attn.compressor.", dim, shape.hidden, ratio, layers)
        parts.caches.append(
            Cache(kind="mla", layers=layers, elements_per_token=dim, key_dim=dim, tokens_per_entry=ratio)
        )
        if ratio == OVERLAPPING:
            _indexer(parts, f"{at}attn.indexer.", shape, ratio, layers)
    _mtp(parts, shape)
    return shape


def _layers(parts: Parts, shape: Shape, layers: Layers, at: str = "layers.{layer}.") -> None:
    """Attention, experts, norms and hyper-connections of `layers`."""
    c, hidden = parts.config, shape.hidden
    heads = shape.heads
    if heads is None or shape.moe is None or STYLE.moe is None:
        return
    self = f"{at}attn."
    groups, o_lora, q_lora = c.integer("o_groups"), c.integer("o_lora_rank"), c.integer("q_lora_rank")
    width = heads.query * heads.key_dim
    parts.add("attention", f"{self}attn_sink", heads.query, layers=layers, axis="rows")
    parts.linear("attention", f"{self}wq_a", q_lora, hidden, layers=layers)
    parts.norm(f"{self}q_norm", q_lora, layers=layers)
    parts.linear("attention", f"{self}wq_b", width, q_lora, layers=layers, axis="rows")
    parts.linear("attention", f"{self}wkv", heads.key_dim, hidden, layers=layers)
    parts.norm(f"{self}kv_norm", heads.key_dim, layers=layers)
    parts.linear("attention", f"{self}wo_a", groups * o_lora, width // groups, layers=layers, axis="rows")
    parts.linear("attention", f"{self}wo_b", hidden, groups * o_lora, layers=layers, axis="columns")
    routed_experts(parts, at, hidden, STYLE.moe, shape.moe)
    for name in STYLE.norms:
        parts.norm(at + name, hidden, layers=layers)
    streams = c.integer("hc_mult", default=4)
    mixes = 2 * streams + streams * streams
    for name in ("hc_attn", "hc_ffn"):
        parts.add("norm", f"{at}{name}_fn", mixes, streams * hidden, layers=layers)
        parts.add("norm", f"{at}{name}_base", mixes, layers=layers)
        parts.add("norm", f"{at}{name}_scale", 3, layers=layers)


def _hyper_head(parts: Parts, shape: Shape) -> None:
    streams = parts.config.integer("hc_mult", default=4)
    parts.add("norm", "hc_head_fn", streams, streams * shape.hidden)
    parts.add("norm", "hc_head_base", streams)
    parts.add("norm", "hc_head_scale", 1)


def _compressor(parts: Parts, prefix: str, dim: int, hidden: int, ratio: int, layers: Layers) -> None:
    """The pooling of `ratio` tokens into one entry."""
    width = dim * (2 if ratio == OVERLAPPING else 1)
    parts.add("attention", f"{prefix}ape", ratio, width, layers=layers)
    for name in ("wkv", "wgate"):
        parts.linear("attention", prefix + name, width, hidden, layers=layers)
    parts.norm(f"{prefix}norm", dim, layers=layers)


def _indexer(parts: Parts, prefix: str, shape: Shape, ratio: int, layers: Layers) -> None:
    c = parts.config
    dim, heads = c.integer("index_head_dim"), c.integer("index_n_heads")
    _compressor(parts, f"{prefix}compressor.", dim, shape.hidden, ratio, layers)
    parts.linear("attention", f"{prefix}wq_b", heads * dim, c.integer("q_lora_rank"), layers=layers)
    parts.linear("attention", f"{prefix}weights_proj", heads, shape.hidden, layers=layers)
    indexer_cache(parts, dim, layers, tokens_per_entry=ratio)


def _mtp(parts: Parts, shape: Shape) -> None:
    """The stored prediction layer: one more layer without compression, two h × h projections, its own mixing head."""
    c, hidden = parts.config, shape.hidden
    shape.mtp_layers = count = c.integer("num_nextn_predict_layers", default=0, low=0, high=16)
    if not count:
        return
    since, layers = len(parts.tensors), tuple(range(count))
    at = "mtp.{layer}."
    add_expert_layers(shape, layers, lambda where: _layers(parts, shape, where, at))
    if shape.moe:
        parts.buffer("mtp", f"{at}ffn.gate.bias", shape.moe.experts, layers=layers)
    for name in ("e_proj", "h_proj"):
        parts.linear("mtp", at + name, hidden, hidden, layers=layers)
    for name in ("enorm", "hnorm", "norm"):
        parts.norm(at + name, hidden, layers=layers)
    streams = c.integer("hc_mult", default=4)
    parts.add("mtp", f"{at}hc_head_fn", streams, streams * hidden, layers=layers)
    parts.add("mtp", f"{at}hc_head_base", streams, layers=layers)
    parts.add("mtp", f"{at}hc_head_scale", 1, layers=layers)
    parts.as_mtp(since)
