"""vLLM's KV cache for a context: what a request needs, what fits, what the log prints, and the way back.

Column arithmetic on a layout of `vllm_pages` and the settings, so a grid of contexts costs no joins.
"""

import polars as pl


def with_pool(rows: pl.DataFrame) -> pl.DataFrame:
    """Add blocks, request_blocks, kv_block_bytes, sequence_kv_bytes, kv_tokens, users, fit_context_tokens [Int64].

    Reads kv_available_bytes, the columns of `page_layout` and of `with_settings`. All are of one GPU but users, which
    counts over the replicas. users is not capped by max_num_seqs; a model without caches takes max_num_seqs at once.
    Where no context was asked for, context_tokens becomes the longest that fits, up to the model's own (vLLM's
    `--max-model-len auto`).
    """
    has_kv, no_kv = pl.col("has_kv"), ~pl.col("has_kv")
    is_left = pl.col("kv_available_bytes") > 0
    # Without a cache there is nothing to count in blocks.
    rows = rows.with_columns(
        kv_block_bytes=pl.when(has_kv).then("block_bytes").when(no_kv).then(0),
        blocks=pl.when(has_kv)
        .then(pl.col("kv_available_bytes").clip(lower_bound=0) // pl.col("block_bytes"))
        .when(no_kv & pl.col("kv_available_bytes").is_not_null())
        .then(0),
    )
    rows = rows.with_columns(
        usable_blocks=(pl.col("blocks") - pl.col("null_blocks").cast(pl.Int64)).clip(lower_bound=0)
    )
    limit = pl.coalesce("extended_context_tokens", "max_context_tokens")
    longest = pl.when(has_kv).then(pl.min_horizontal(_longest_context(), limit)).when(no_kv & is_left).then(limit)
    longest = longest.when(~is_left).then(0)
    rows = rows.with_columns(fit_context_tokens=pl.when(is_left.is_not_null()).then(longest))
    fitted = pl.min_horizontal("context_tokens", pl.col("fit_context_tokens").replace(0, None))
    rows = rows.with_columns(context_tokens=pl.when("has_context").then("context_tokens").otherwise(fitted))
    rows = rows.with_columns(request_blocks=pl.when(has_kv).then(_blocks_per_request()).when(no_kv).then(0))
    users = (
        pl.when(has_kv)
        .then(pl.col("usable_blocks") // pl.col("request_blocks"))
        .when(no_kv & is_left)
        .then("sequences")
    )
    return rows.with_columns(
        sequence_kv_bytes=pl.col("request_blocks") * pl.col("kv_block_bytes"),
        kv_tokens=_printed_tokens(),
        users=users.when(~is_left).then(0) * pl.col("data_parallel"),
    )


def _window_span() -> pl.Expr:
    """Tokens a windowed layer may hold: its window and the tokens in flight (chunked: without the -1)."""
    return pl.col("window_tokens") - pl.col("window_extra_blocks") + pl.col("flight_tokens")


def _window_blocks(held: pl.Expr) -> pl.Expr:
    return -(-held // pl.col("window_block_tokens")) + pl.col("window_extra_blocks")


def _blocks_per_request() -> pl.Expr:
    """Blocks of one request of `context_tokens`, over all groups [Int64]. Reads the layout and `flight_tokens`."""
    context = pl.col("context_tokens")
    return (
        pl.col("full_groups") * -(-context // pl.col("full_block_tokens"))
        + pl.when(pl.col("window_groups") > 0)
        .then(pl.col("window_groups") * _window_blocks(pl.min_horizontal(_window_span(), context)))
        .otherwise(0)
        + pl.col("fixed_blocks")
    )


def _longest_context() -> pl.Expr:
    """The longest context one request can have in `usable_blocks` [Int64]; null: the cache sets no limit.

    Two straight pieces: beyond the window span only full layers grow; below it all do. The answer is right to one block
    of the wider kind.
    """
    free = pl.col("usable_blocks") - pl.col("fixed_blocks")
    full, window = pl.col("full_groups"), pl.col("window_groups")
    held = pl.when(window > 0).then(window * _window_blocks(_window_span())).otherwise(0)
    beyond = (free - held) // full * pl.col("full_block_tokens")
    step = pl.max_horizontal(
        pl.when(full > 0).then("full_block_tokens").otherwise(1),
        pl.when(window > 0).then("window_block_tokens").otherwise(1),
    )
    per_step = full * (step / pl.col("full_block_tokens")) + window * (step / pl.col("window_block_tokens"))
    steps = pl.when(per_step > 0).then((free - window * pl.col("window_extra_blocks")) / per_step).otherwise(0.0)
    below = steps.floor().cast(pl.Int64) * step
    is_unbounded = (full == 0) & (free >= held)
    return (
        pl.when(is_unbounded)
        .then(None)
        .when(full == 0)
        .then(below)
        .when((window > 0) & (beyond < _window_span()))
        .then(below.clip(upper_bound=_window_span()))
        .otherwise(beyond)
        .clip(lower_bound=0)
    )


def _printed_tokens() -> pl.Expr:
    """The log's "GPU KV cache size" as that version prints it [Int64]; reads blocks, request_blocks, context_tokens.

    V0 and 0.8-0.9.1: blocks × block size. 0.9.2-0.20: blocks // groups × smallest block. 0.21 on: concurrency × length.
    """
    concurrency = pl.col("blocks") / pl.col("request_blocks")
    by_blocks = (
        pl.col("blocks")
        // pl.when(pl.col("is_token_by_group") > 0).then("groups").otherwise(1)
        * pl.col("smallest_block_tokens")
    )
    return (
        pl.when(~pl.col("has_kv"))
        .then(0)
        .when((pl.col("engine_core") == "v1") & (pl.col("is_token_by_concurrency") > 0))
        .then((concurrency * pl.col("context_tokens")).floor().cast(pl.Int64))
        .otherwise(by_blocks)
    )
