"""How vLLM puts layers of different kinds into one block pool: pages of equal size, groups of equal length.

Source: vllm/v1/core/kv_cache_utils.py; alignment of hybrids in vllm/platforms/interface.py. The columns are those of
`vllm_pages`, one row a layout; `full`, `window`, `cross` and `state` are the kinds.
"""

import polars as pl

_KINDS = ("full", "window", "cross", "state")
_ATTENTION = ("full", "window", "cross")


def with_groups(layouts: pl.DataFrame) -> pl.DataFrame:
    """Add block_bytes, groups, the groups and block sizes of each kind, fixed_blocks, smallest_block_tokens, has_kv."""
    rows = _with_page(_with_layers(layouts))
    rows = _with_group_counts(rows).with_columns(_block_tokens(k).alias(f"{k}_block_tokens") for k in _ATTENTION)
    rows = rows.with_columns(block_bytes=_block_bytes().ceil().cast(pl.Int64))
    states = (
        pl.when(pl.col("draft_tokens") > 0)
        .then(pl.col("state_blocks_drafting") + pl.col("draft_tokens"))
        .otherwise("state_blocks")
        .cast(pl.Int64)
    )
    cross = -(-pl.col("cross_tokens") // pl.col("cross_block_tokens"))
    blocks = [pl.when(pl.col(f"{k}_layers") > 0).then(f"{k}_block_tokens") for k in _ATTENTION]
    return rows.with_columns(
        groups=pl.sum_horizontal(f"{k}_groups" for k in _KINDS),
        fixed_blocks=pl.col("state_groups") * states + pl.col("cross_groups") * cross,
        smallest_block_tokens=pl.min_horizontal(blocks),
        # Null: the KV dtype is not one of vLLM's.
        has_kv=pl.when(pl.col("kv_element_bytes").is_not_null()).then(pl.col("block_bytes") > 0),
    )


def _with_layers(layouts: pl.DataFrame) -> pl.DataFrame:
    """Layers by kind, with drafting layers among the full ones and V0's states outside the pool."""
    numbers = [f"{k}_layers" for k in _KINDS] + [f"{k}_token_bytes" for k in _ATTENTION]
    numbers += ["full_sum_bytes", "window_sum_bytes", "state_page_bytes"]
    numbers += ["window_tokens", "window_extra_blocks", "cross_tokens"]
    drafts = pl.col("draft_layers")
    return layouts.with_columns(
        pl.col(numbers).fill_null(0),
        pl.col("is_latent", "is_compressed").fill_null(value=False),
        base_block=pl.coalesce("base_block", pl.col("block_tokens").cast(pl.Int64)),
    ).with_columns(
        full_layers=pl.when(pl.col("full_layers") > 0).then(pl.col("full_layers") + drafts).otherwise(0),
        full_sum_bytes=pl.col("full_sum_bytes") + drafts * pl.col("full_token_bytes"),
        state_bytes_per_sequence=(pl.col("state_page_bytes") * pl.col("state_layers")).cast(pl.Int64),
        state_layers=pl.when(pl.col("engine_core") == "v1").then("state_layers").otherwise(0),
    )


def _with_page(rows: pl.DataFrame) -> pl.DataFrame:
    """attention_block and page_bytes: the widest token's block, stretched until a recurrent state fits."""
    widest = pl.max_horizontal(f"{k}_token_bytes" for k in _ATTENTION)
    least = pl.max_horizontal("base_block", "mla_hybrid_block_tokens")
    grain = pl.when("is_latent").then(least).otherwise("base_block")
    stretched = grain * (pl.col("state_page_bytes") / (grain * widest)).ceil()
    has_state, has_attention = pl.col("state_layers") > 0, widest > 0
    block = pl.when(has_state & has_attention).then(stretched).otherwise("base_block").cast(pl.Int64)
    return rows.with_columns(attention_block=block).with_columns(
        page_bytes=pl.when(has_attention).then(pl.col("attention_block") * widest).otherwise("state_page_bytes")
    )


def _with_group_counts(rows: pl.DataFrame) -> pl.DataFrame:
    """group_layers and `<kind>_groups`: as long as the rarest kind, or as the commonest where that is hardly more.

    One kind alone is one group, whatever its layers. Compressed latents and their windows (DeepSeek-V4) are one group
    each, of different widths.
    """
    present = [pl.when(pl.col(f"{k}_layers") > 0).then(f"{k}_layers") for k in _KINDS]
    least, most = pl.min_horizontal(present), pl.max_horizontal(present)
    size = pl.when(most < least * pl.col("group_slack")).then(most).otherwise(least)
    kinds = pl.sum_horizontal((pl.col(f"{k}_layers") > 0).cast(pl.Int64) for k in _KINDS)
    rows = rows.with_columns(group_layers=size, is_single=kinds <= 1)
    is_whole = pl.col("is_single") | pl.col("is_compressed")
    return rows.with_columns(
        pl.when(is_whole)
        .then((pl.col(f"{k}_layers") > 0).cast(pl.Int64))
        .otherwise(-(-pl.col(f"{k}_layers") // pl.col("group_layers")))
        .alias(f"{k}_groups")
        for k in _KINDS
    )


def _block_tokens(kind: str) -> pl.Expr:
    """Tokens in a page of the common size: more where tokens are smaller by a whole factor, else padded."""
    token = pl.col(f"{kind}_token_bytes")
    tokens = pl.col("page_bytes") / token
    is_whole = ~pl.col("is_single") & (token > 0) & (tokens == tokens.floor())
    common = pl.when(is_whole).then(tokens).otherwise("attention_block")
    compressed = "compressed_block_tokens" if kind == "full" else "mla_block_tokens"
    return pl.when("is_compressed").then(compressed).otherwise(common).cast(pl.Int64)


def _block_bytes() -> pl.Expr:
    """One block: a page for every layer of a group; of one kind alone, the layers' own pages; else the widest group."""
    attention = pl.col("full_sum_bytes") + pl.col("window_sum_bytes")
    attention += pl.col("cross_token_bytes") * pl.col("cross_layers")
    alone = pl.col("attention_block") * attention + pl.col("state_page_bytes") * pl.col("state_layers")
    full = pl.col("full_block_tokens") * pl.col("full_sum_bytes")
    window = pl.col("window_block_tokens") * pl.col("window_sum_bytes")
    return (
        pl.when("is_compressed")
        .then(pl.max_horizontal(full, window))
        .when("is_single")
        .then(alone)
        .otherwise(pl.col("page_bytes") * pl.col("group_layers"))
    )
