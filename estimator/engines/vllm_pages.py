"""vLLM's KV cache before any context: pages made equal, layers in groups, the bytes of a block.

Worked out on the distinct context-free keys (a few per model). Rules: vllm/v1/core/kv_cache_utils.py,
vllm/v1/kv_cache_interface.py.
"""

import polars as pl

from fitmart.estimator.engines.vllm_groups import with_groups

# What decides a layout, beside the caches themselves: the columns of `with_settings` that are read here.
LAYOUT_KEY = (
    "model_id",
    "tensor_parallel",
    "pipeline_parallel",
    "kv_element_bytes",
    "draft_layers",
    "draft_tokens",
    "engine_core",
    "version_key",
    "is_cutlass_mla",
)
LAYOUT = (
    "block_bytes",
    "groups",
    "smallest_block_tokens",
    "full_groups",
    "full_block_tokens",
    "window_groups",
    "window_block_tokens",
    "window_tokens",
    "window_extra_blocks",
    "fixed_blocks",
    "state_bytes_per_sequence",
    "has_kv",
)
_LAYOUT_RULES = (
    "block_tokens",
    "mla_block_tokens",
    "mla_cutlass_block_tokens",
    "mla_hybrid_block_tokens",
    "is_grouped",
    "is_chunked_grouped",
    "group_slack",
    "state_blocks",
    "state_blocks_drafting",
    "packed_mla_bytes",
    "compressed_mla_bytes",
    "compressed_block_tokens",
)
_HALF = 2  # bytes of an element of a convolution state
_INDEX_SCALE_BLOCK, _INDEX_SCALE_BYTES = 128, 4  # the indexer keeps FP8 keys and one fp32 scale per 128


def cutlass_mla() -> pl.Expr:
    """Whether the device runs CUTLASS MLA, whose blocks are larger (compute capability 10.x)."""
    return (pl.col("capability").fill_null(0) >= 10) & (pl.col("capability").fill_null(0) < 11)


def page_layout(rows: pl.DataFrame, caches: pl.DataFrame) -> pl.DataFrame:
    """One row per distinct LAYOUT_KEY of `rows` (columns of `with_settings` and `is_cutlass_mla`).

    Adds, per GPU [Int64]: block_bytes (one block of every layer of a group), groups, smallest_block_tokens,
    full_groups and full_block_tokens, window_groups, window_block_tokens, window_tokens and window_extra_blocks,
    fixed_blocks (states and cross attention a request holds whatever its length), state_bytes_per_sequence, has_kv.
    """
    keys = rows.select(*LAYOUT_KEY, *_LAYOUT_RULES).unique(LAYOUT_KEY).with_row_index("layout")
    layers = keys.join(caches, on="model_id", how="inner").with_columns(
        # A stage of a pipeline has its own layers; the fullest decides for all.
        stage_layers=-(-pl.col("layer_count") // pl.col("pipeline_parallel")),
        kind=_stored_kind(),
    )
    layers = layers.with_columns(
        is_latent=(pl.col("elements_per_token") > 0) & (pl.col("kv_heads") == 0) & (pl.col("kind") != "indexer"),
        is_compressed=(pl.col("tokens_per_entry") > 1).any().over("layout"),
        has_indexer=(pl.col("kind") == "indexer").any().over("layout"),
    )
    layers = layers.with_columns(base_block=_base_block(), token_bytes=_token_bytes(), state_bytes=_state_bytes())
    combined = keys.join(_combine(layers), on="layout", how="left", validate="1:1")
    return with_groups(combined).select(*LAYOUT_KEY, *LAYOUT)


def _stored_kind() -> pl.Expr:
    """Windows count only where the version groups layers by kind; else every layer stores the whole context."""
    # Latents with a window stay beside compressed ones (DeepSeek-V4).
    is_local_latent = (pl.col("kind") == "mla") & pl.col("window_tokens").is_not_null()
    is_windowed = pl.col("kind").is_in(["sliding", "chunked"]) | is_local_latent
    # One chunked layer is enough to switch the grouping off before chunked layers were allowed in it.
    is_blocked = (pl.col("kind") == "chunked").any().over("layout") & (pl.col("is_chunked_grouped") == 0)
    return (
        pl.when(is_windowed & ((pl.col("is_grouped") == 0) | is_blocked))
        .then(pl.lit("full"))
        .when(is_local_latent)
        .then(pl.lit("sliding"))
        .otherwise("kind")
    )


def _base_block() -> pl.Expr:
    """Tokens of a block before alignment to recurrent states."""
    latent = pl.when("is_cutlass_mla").then("mla_cutlass_block_tokens").otherwise("mla_block_tokens")
    is_latent = pl.col("kind").is_in(["mla", "indexer"]).any().over("layout")
    return (
        pl.when("is_compressed")
        .then("compressed_block_tokens")
        .when(is_latent)
        .then(latent)
        .otherwise("block_tokens")
        .cast(pl.Int64)
    )


def _token_bytes() -> pl.Expr:
    """Bytes of one token in one layer on one GPU; KV heads are cut by TP and then replicated, latents always are."""
    heads = (pl.col("kv_heads") // pl.col("tensor_parallel")).clip(1)
    plain = heads * (pl.col("key_dim") + pl.col("value_dim")) * pl.col("kv_element_bytes")
    latent = pl.col("elements_per_token") * pl.col("kv_element_bytes")
    is_packed = (pl.col("kv_element_bytes") <= 1) & pl.col("has_indexer")
    index = pl.col("elements_per_token") * (1 + _INDEX_SCALE_BYTES / _INDEX_SCALE_BLOCK)
    size = (
        pl.when("is_latent", "is_compressed")
        .then("compressed_mla_bytes")
        .when(pl.col("is_latent") & is_packed)
        .then("packed_mla_bytes")
        .when("is_latent")
        .then(latent)
        .when(pl.col("kind") == "indexer")
        .then(index)
        .when(pl.col("kind").is_in(["full", "sliding", "chunked", "cross"]))
        .then(plain)
        .otherwise(0.0)
    )
    return size / pl.col("tokens_per_entry").clip(1)


def _state_bytes() -> pl.Expr:
    """Bytes of one sequence's state in one layer on one GPU; drafts lengthen the convolution's memory."""
    tensor = pl.col("tensor_parallel")
    linear = pl.col("state_heads") * pl.col("state_key_dim") * pl.col("state_value_dim") / tensor
    convolution = pl.col("conv_channels") * (pl.col("conv_kernel") - 1 + pl.col("draft_tokens")) / tensor
    return (
        pl.when(pl.col("kind") == "linear_state")
        .then(linear * pl.col("state_element_bytes"))
        .when(pl.col("kind") == "conv_state")
        .then(convolution * _HALF)
        .otherwise(0.0)
    )


def _cross_tokens() -> pl.Expr:
    """Encoder tokens that a cross-attention layer keeps, whatever the context."""
    return pl.col("fixed_elements") // (pl.col("kv_heads") * (pl.col("key_dim") + pl.col("value_dim"))).clip(1)


def _combine(layers: pl.DataFrame) -> pl.DataFrame:
    """The layers of each layout, summed by class: full (latents and indexers too), windowed, cross, recurrent."""
    kind, count, size = pl.col("kind"), pl.col("stage_layers"), pl.col("token_bytes")
    full = kind.is_in(["full", "mla"])
    window = kind.is_in(["sliding", "chunked"])
    cross, state = kind == "cross", kind.is_in(["linear_state", "conv_state"])
    has_full_key = full | (kind == "indexer")

    def total(value: pl.Expr, of: pl.Expr) -> pl.Expr:
        return value.filter(of).sum()

    return layers.group_by("layout").agg(
        full_layers=total(count, full),
        full_token_bytes=size.filter(full).max().fill_null(0.0),
        full_sum_bytes=total(size * count, has_full_key),
        window_layers=total(count, window),
        window_token_bytes=size.filter(window).max().fill_null(0.0),
        window_sum_bytes=total(size * count, window),
        window_tokens=pl.col("window_tokens").filter(window).max().fill_null(0),
        window_extra_blocks=(kind == "sliding").any().cast(pl.Int64),
        cross_layers=total(count, cross),
        cross_token_bytes=size.filter(cross).max().fill_null(0.0),
        cross_tokens=_cross_tokens().filter(cross).max().fill_null(0),
        # Convolution and linear state of a layer share one page.
        state_layers=count.filter(state).max().fill_null(0),
        state_page_bytes=total(pl.col("state_bytes") * count, state) / count.filter(state).max().fill_null(1),
        base_block=pl.col("base_block").max(),
        is_latent=pl.col("is_latent").any(),
        is_compressed=pl.col("is_compressed").any(),
    )
