"""The compute buffer that llama.cpp reserves on each device, for the worst micro-batch.

The graph allocator reuses memory, so the buffer is the widest moment of the graph: the logits, or one layer's attention
or feed-forward with the masks that stay alive beside it. Activations are F32. Found against the buffers that llama.cpp
logs (tests/estimator/engines/test_llamacpp_compute.py): without flash attention the score matrix heads × cells decides,
with it the mask (F32, and F16 for the kernel). Pipelined GPUs keep four copies of the inputs. What stays on the host is
copied, one matrix at a time, to the first GPU for large batches (op_offload).
"""

import polars as pl

from fitmart.estimator.engines.llamacpp_widths import latent_widths

_F32 = 4
_COPIES = 4  # GGML_SCHED_MAX_COPIES
_LAYER_ROWS = 4  # hidden-wide rows alive in attention
_FEED_ROWS = 3  # and in the feed-forward


def graph_widths(models: pl.DataFrame, caches: pl.DataFrame, gguf_tensors: pl.DataFrame) -> pl.DataFrame:
    """One row a model: hidden, vocab, heads, feed (floats a token in the feed-forward), and those of latent attention.

    expanded_floats, latent_floats: what queries, keys and values of all heads take a token in each layout; null for
    models without a latent. row_floats: attention's own rows otherwise. has_logits is false for encoders.
    """
    kinds = caches.group_by("model_id").agg(
        has_full=(pl.col("window_tokens").is_null() & pl.col("kind").is_in(["full", "mla", "indexer"])).any(),
        has_window=pl.col("window_tokens").is_not_null().any(),
        window=pl.col("window_tokens").max(),
    )
    hidden, heads = pl.col("hidden_size"), pl.col("attention_heads").fill_null(0)
    dense = 2 * pl.col("intermediate_size").fill_null(0)
    expert = pl.coalesce("expert_intermediate_size", pl.lit(0))
    routed = pl.col("experts_per_token").fill_null(0) * pl.max_horizontal(2 * expert, expert + hidden)
    q_lora, kv_lora = pl.col("q_lora_rank").fill_null(0), pl.col("kv_lora_rank")
    key, value, latent = pl.col("expanded_key"), pl.col("expanded_value"), pl.col("latent_dim")
    return (
        models.join(kinds, on="model_id", how="left", validate="1:1")
        .join(latent_widths(caches, gguf_tensors), on="model_id", how="left", validate="1:1")
        .join(_fused(caches, gguf_tensors), on="model_id", how="left", validate="1:1")
        .select(
            "model_id",
            hidden=hidden,
            vocab="vocab_size",
            heads=heads,
            feed=pl.max_horizontal(dense, routed) + _FEED_ROWS * hidden,
            expanded_floats=2 * key + value + hidden + q_lora + kv_lora,
            latent_floats=heads * (latent + kv_lora) + key + hidden + 4 * q_lora,
            row_floats=_LAYER_ROWS * hidden + (pl.col("fused_rows") - heads * pl.col("head_dim")).clip(0).fill_null(0),
            has_logits=~pl.col("is_encoder"),
            has_full=pl.col("has_full").fill_null(False),
            has_window=pl.col("has_window").fill_null(False),
            window="window",
        )
    )


def _fused(caches: pl.DataFrame, gguf_tensors: pl.DataFrame) -> pl.DataFrame:
    """model_id, fused_rows: the width of a joint query-key-value product, alive as a whole while its parts are used.

    Linear attention has a product of that name too; it is no attention row.
    """
    linear = caches.filter(pl.col("kind") == "linear_state")
    fused = gguf_tensors.filter(pl.col("role") == "attn_qkv").join(linear, on="model_id", how="anti")
    return fused.group_by("model_id").agg(fused_rows=pl.col("rows").max())


def compute_bytes(cells: pl.Expr, window_cells: pl.Expr, slots: pl.Expr) -> pl.Expr:
    """Bytes of the largest device's buffer [Int64] at so many cells a stream.

    Reads the columns of `graph_widths`, `with_settings` (ubatch, streams, is_flash, is_pipelined, mla, is_cut,
    has_few_logits) and host_output_bytes, host_largest_bytes: the matrices that stay on the host.
    """
    hidden, heads = pl.col("hidden"), pl.col("heads")
    ubatch = pl.min_horizontal("ubatch", cells * pl.col("streams"))  # no larger than the context
    full = pl.when(pl.col("has_full") | (pl.col("has_window") & ~pl.col("is_cut"))).then(cells).otherwise(0)
    window = pl.when(pl.col("has_window") & pl.col("is_cut")).then(window_cells).otherwise(0)
    is_pipelined = pl.col("is_pipelined").cast(pl.Int64)
    mask_floats = pl.when("is_flash").then(1.5).otherwise(1.0) + (_COPIES - 1) * is_pipelined
    masks = mask_floats * (full + window)
    scores = pl.when("is_flash").then(0).otherwise(heads * pl.max_horizontal(full, window))
    is_expanded = pl.col("expanded_floats").is_not_null() & (pl.col("mla") == 0)
    rows = pl.when(is_expanded).then("expanded_floats").otherwise(pl.coalesce("latent_floats", "row_floats"))
    layer = pl.max_horizontal(scores + rows, pl.col("feed")) + is_pipelined * _COPIES * hidden
    body = _F32 * ubatch * (masks + layer) + pl.col("host_largest_bytes")
    logit_rows = pl.when(pl.col("has_few_logits") == 1).then(pl.min_horizontal(slots, ubatch)).otherwise(ubatch)
    kept_mask = pl.when(is_expanded).then(full).otherwise(0)
    logits = _F32 * (logit_rows * pl.col("vocab") + ubatch * (hidden + kept_mask)) + pl.col("host_output_bytes")
    return pl.max_horizontal(body, pl.when("has_logits").then(logits).otherwise(0)).ceil().cast(pl.Int64)
