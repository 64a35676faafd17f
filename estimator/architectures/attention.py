"""Attention blocks: projections, latent (MLA) projections, sparse indexers, and the caches they leave."""

from collections.abc import Sequence
from dataclasses import dataclass

from fitmart.estimator.anatomy import Cache, CacheKind
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.parts import Layers, Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """How one kind of attention layer is divided."""

    query: int
    kv: int
    key_dim: int
    value_dim: int


def read_heads(c: Config, hidden: int) -> Heads:
    """Query and KV heads and the head size: `head_dim` where stated, else hidden / heads."""
    query = c.integer("num_attention_heads", "n_head", "n_heads", "num_heads")
    kv = (
        c.optional_integer("num_key_value_heads", "num_kv_heads", "num_query_groups", "multi_query_group_num", low=1)
        or query
    )
    dim = c.optional_integer("head_dim", "attention_head_dim", "kv_channels", low=1)
    if dim is None:
        dim, rest = divmod(hidden, query)
        if rest:
            raise c.fail(
                f"hidden_size {hidden} is not a multiple of {query} attention heads and head_dim is not stated"
            )
    if query % kv:
        raise c.fail(f"{query} attention heads are not a multiple of {kv} key-value heads")
    return Heads(query=query, kv=kv, key_dim=dim, value_dim=dim)


def projections(
    parts: Parts,
    prefix: str,
    hidden: int,
    heads: Heads,
    layers: Layers,
    *,
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj"),
    fused: str | None = None,
    qkv_bias: bool = False,
    o_bias: bool = False,
    is_gated: bool = False,
    has_keys: bool = True,
    has_values: bool = True,
) -> None:
    """q, k, v, o (or one fused matrix and o). `is_gated`: q carries an output gate of its own size."""
    q, k, v, o = (prefix + n for n in names)
    queries = heads.query * heads.key_dim * (2 if is_gated else 1)
    keys, values = heads.kv * heads.key_dim, heads.kv * heads.value_dim
    if fused:
        rows = queries + keys + values
        parts.linear("attention", prefix + fused, rows, hidden, layers=layers, axis="rows", bias=qkv_bias)
    else:
        parts.linear("attention", q, queries, hidden, layers=layers, axis="rows", bias=qkv_bias)
        for name, rows, exists in ((k, keys, has_keys), (v, values, has_keys and has_values)):
            if exists:
                parts.linear(
                    "attention", name, rows, hidden, layers=layers, axis="rows", shards=heads.kv, bias=qkv_bias
                )
    parts.linear("attention", o, hidden, heads.query * heads.value_dim, layers=layers, axis="columns", bias=o_bias)


def attention_cache(parts: Parts, kind: CacheKind, heads: Heads, layers: Layers, *, window: int | None = None) -> None:
    """Keys and values of every KV head, for each token or the last `window` of them."""
    if layers:
        parts.caches.append(
            Cache(
                kind=kind,
                layers=layers,
                elements_per_token=heads.kv * (heads.key_dim + heads.value_dim),
                window_tokens=window,
                kv_heads=heads.kv,
                key_dim=heads.key_dim,
                value_dim=heads.value_dim,
            )
        )


# ---- which layers see how far ------------------------------------------------------------------------------------- #

PATTERNS = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
_KINDS: dict[str, CacheKind] = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "global_attention": "full",
    "sliding_attention": "sliding",
    "sliding_window": "sliding",
    "local": "sliding",
    "chunked_attention": "chunked",
}


def attention_kinds(c: Config, layers: int, rule: str, window: int | None) -> list[str]:
    """The kind of each layer: `layer_types` where the config states it, else the class's `rule`.

    Rules: none (all full), all (every layer slides), qwen (from `max_window_layers` on), every:N (each Nth is full),
    even (even layers slide), odd. Without a window all are full.
    """
    stated = c.items("layer_types")
    if stated is not None:
        if len(stated) < layers:
            raise c.fail(f"layer_types has {len(stated)} entries, fewer than {layers}")
        return [_KINDS.get(str(kind), str(kind)) for kind in stated[:layers]]
    if window is None or rule == "none":
        return ["full"] * layers
    if rule == "all":
        return ["sliding"] * layers
    if rule == "qwen":
        first = c.integer("max_window_layers", default=layers, low=0)
        return ["sliding" if i >= first else "full" for i in range(layers)]
    if rule in ("even", "odd"):
        return ["sliding" if (i % 2 == 0) == (rule == "even") else "full" for i in range(layers)]
    every = sliding_pattern(c, int(rule.removeprefix("every:")))
    return [every[i % len(every)] for i in range(layers)] if every else ["full"] * layers


def sliding_pattern(c: Config, default: int) -> list[str]:
    """One period of `sliding_window_pattern`: a number (each Nth layer is full) or letters such as LLLG."""
    value = c.get(*PATTERNS, default=default)
    if isinstance(value, str):
        return ["full" if letter == "G" else "sliding" for letter in value]
    if value is None:
        return []
    every = c.integer(*PATTERNS, default=default)
    return ["sliding"] * (every - 1) + ["full"]


def window_caches(parts: Parts, kinds: Sequence[str], heads: Heads, window: int | None) -> None:
    """One cache a kind of attention layer; layers of other kinds leave nothing here."""
    for kind in ("full", "sliding", "chunked"):
        layers = tuple(i for i, k in enumerate(kinds) if k == kind)
        attention_cache(parts, kind, heads, layers, window=None if kind == "full" else window)


# ---- latent attention --------------------------------------------------------------------------------------------- #


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2): one compressed KV for all heads."""

    query: int
    q_lora: int | None
    kv_lora: int
    nope: int
    rope: int
    value_dim: int

    @property
    def heads(self) -> Heads:
        """The heads that the latent expands to."""
        return Heads(query=self.query, kv=self.query, key_dim=self.nope + self.rope, value_dim=self.value_dim)


def read_latent(c: Config) -> Latent:
    """The MLA sizes. `head_dim` says nothing here; a null `q_lora_rank` means one plain query projection."""
    return Latent(
        query=c.integer("num_attention_heads"),
        q_lora=c.optional_integer("q_lora_rank", low=0) or None,
        kv_lora=c.integer("kv_lora_rank"),
        nope=c.integer("qk_nope_head_dim"),
        rope=c.integer("qk_rope_head_dim", low=0),
        value_dim=c.integer("v_head_dim"),
    )


def latent_projections(
    parts: Parts, prefix: str, hidden: int, latent: Latent, layers: Layers, *, bias: bool = False
) -> None:
    """Down-projections are whole on every GPU, up-projections are cut by heads."""
    queries = latent.query * (latent.nope + latent.rope)
    if latent.q_lora:
        parts.linear("attention", f"{prefix}q_a_proj", latent.q_lora, hidden, layers=layers, bias=bias)
        parts.norm(f"{prefix}q_a_layernorm", latent.q_lora, layers=layers)
        parts.linear("attention", f"{prefix}q_b_proj", queries, latent.q_lora, layers=layers, axis="rows")
    else:
        parts.linear("attention", f"{prefix}q_proj", queries, hidden, layers=layers, axis="rows")
    kv_a = latent.kv_lora + latent.rope
    parts.linear("attention", f"{prefix}kv_a_proj_with_mqa", kv_a, hidden, layers=layers, bias=bias)
    parts.norm(f"{prefix}kv_a_layernorm", latent.kv_lora, layers=layers)
    kv_b = latent.query * (latent.nope + latent.value_dim)
    parts.linear("attention", f"{prefix}kv_b_proj", kv_b, latent.kv_lora, layers=layers, axis="rows")
    out = latent.query * latent.value_dim
    parts.linear("attention", f"{prefix}o_proj", hidden, out, layers=layers, axis="columns", bias=bias)


def latent_cache(parts: Parts, latent: Latent, layers: Layers) -> None:
    """kv_lora_rank + qk_rope_head_dim elements a token, one copy whatever the heads."""
    if layers:
        width = latent.kv_lora + latent.rope
        parts.caches.append(Cache(kind="mla", layers=layers, elements_per_token=width, key_dim=width))


def indexer(parts: Parts, prefix: str, hidden: int, q_rank: int, layers: Layers) -> None:
    """The weights of the sparse-attention indexer of DeepSeek-V3.2 and GLM-5."""
    c = parts.config
    dim, heads = c.integer("index_head_dim"), c.integer("index_n_heads")
    parts.linear("attention", f"{prefix}wq_b", heads * dim, q_rank, layers=layers)
    parts.linear("attention", f"{prefix}wk", dim, hidden, layers=layers)
    parts.norm(f"{prefix}k_norm", dim, layers=layers, bias=True)
    parts.linear("attention", f"{prefix}weights_proj", heads, hidden, layers=layers)


def indexer_cache(parts: Parts, dim: int, layers: Layers, *, tokens_per_entry: int = 1) -> None:
    """The keys an indexer keeps."""
    if layers:
        parts.caches.append(
            Cache(kind="indexer", layers=layers, elements_per_token=dim, key_dim=dim, tokens_per_entry=tokens_per_entry)
        )
