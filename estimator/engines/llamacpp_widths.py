"""How many elements each layer of a model keeps in llama.cpp's caches.

llama.cpp keeps K and V rows of every attention layer; a latent (MLA) layer in one of three layouts, chosen by the file
and the build: expanded for every head, the latent as K and V, or the latent once (#12801, #19067). Sliding layers have
the window's cells only where the build cuts them (#13194). Recurrent states are F32, one a sequence.
"""

import polars as pl

WIDTHS = ("full_key", "full_value", "window_key", "window_value", "state")
_ROWS_OF_HEADS = ("full", "sliding", "chunked")
_STATES = ("linear_state", "conv_state")
_EXPANDED, _TWICE = 0, 1


def widths_by_layer(
    shapes: pl.DataFrame, models: pl.DataFrame, caches: pl.DataFrame, gguf_tensors: pl.DataFrame
) -> pl.DataFrame:
    """For each of `shapes` (model_id, mla, is_cut, pads_value) and layer: the columns WIDTHS [elements, Float64].

    Float, because a cache that keeps one entry for several tokens has a fraction of a row for each cell.
    Cross-attention keeps nothing here: llama.cpp recomputes it.
    """
    lora = models.select("model_id", "kv_lora_rank")
    rows = (
        shapes.join(caches.filter(pl.col("kind") != "cross"), on="model_id", how="inner")
        .join(lora, on="model_id", how="left", validate="m:1")
        .join(latent_widths(caches, gguf_tensors), on="model_id", how="left", validate="m:1")
    )
    has_heads = pl.col("kind").is_in(_ROWS_OF_HEADS) & (pl.col("kv_heads") > 0)
    is_latent = pl.col("kind") == "mla"
    is_expanded = is_latent & (pl.col("mla") == _EXPANDED) & pl.col("expanded_key").is_not_null()
    key = (
        pl.when(has_heads)
        .then(pl.col("kv_heads") * pl.col("key_dim"))
        .when(is_expanded)
        .then("expanded_key")
        .when(pl.col("kind").is_in(_STATES))
        .then(0)
        .otherwise("elements_per_token")
    )
    value = (
        pl.when(has_heads)
        .then(pl.col("kv_heads") * pl.col("value_dim"))
        .when(is_expanded)
        .then("expanded_value")
        .when(is_latent & (pl.col("mla") == _TWICE))
        .then("kv_lora_rank")
        .otherwise(0)
    )
    widest = pl.col("value").filter(has_heads).max().over("model_id", "mla", "is_cut", "pads_value")
    is_window = pl.col("window_tokens").is_not_null() & pl.col("is_cut")
    entries = pl.col("tokens_per_entry")
    sized = rows.with_columns(key=key, value=value).with_columns(
        value=pl.when(pl.col("pads_value") & has_heads).then(widest).otherwise("value")
    )
    return (
        sized.select(
            *shapes.columns,
            layer="layer_ids",
            full_key=pl.when(is_window).then(0).otherwise(pl.col("key") / entries),
            full_value=pl.when(is_window).then(0).otherwise(pl.col("value") / entries),
            window_key=pl.when(is_window).then(pl.col("key") / entries).otherwise(0),
            window_value=pl.when(is_window).then(pl.col("value") / entries).otherwise(0),
            state=pl.when(pl.col("kind").is_in(_STATES)).then("fixed_elements").otherwise(0),
        )
        .explode("layer")
        .group_by(*shapes.columns, pl.col("layer").cast(pl.Int64))
        .agg(pl.col(WIDTHS).cast(pl.Float64).sum())
    )


def latent_widths(caches: pl.DataFrame, gguf_tensors: pl.DataFrame) -> pl.DataFrame:
    """model_id, latent_dim (latent and rotary part), expanded_key, expanded_value of the latent models in `caches`.

    Expanded, K is as wide as the queries of all heads and V as what the output projection reads; null without tensors.
    """
    latent = caches.filter(pl.col("kind") == "mla").group_by("model_id").agg(latent_dim=pl.col("key_dim").first())
    is_query, is_output = pl.col("role").is_in(["attn_q", "attn_q_b"]), pl.col("role") == "attn_output"
    projections = (
        gguf_tensors.filter(is_query | is_output)
        .join(latent, on="model_id", how="semi")
        .group_by("model_id")
        .agg(
            expanded_key=pl.col("rows").filter(is_query).max(), expanded_value=pl.col("columns").filter(is_output).max()
        )
    )
    return latent.join(projections, on="model_id", how="left", validate="1:1")
