"""What attention reads and computes for one sequence, summed over the layers of a model.

A token at position p compares itself with min(p, window) tokens before it. Sums over a prompt are closed forms; a layer
that keeps a state instead of a cache reads and writes the state, whatever the context.
"""

import polars as pl
from gguf import GGML_QUANT_SIZES

KEY = ["model_id", "engine_id", "kv_cache_dtype", "input_tokens", "cached_tokens", "output_tokens"]
# Engines that multiply queries by the cached latent itself, also in a prompt; servers expand it to heads first.
ABSORBING_ENGINES = ("llama.cpp",)

_FLOAT_BYTES = {"f32": 4.0, "fp32": 4.0, "float32": 4.0, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "int8": 1.0}
_GGML_BYTES = {kind.name.lower(): size / elements for kind, (elements, size) in GGML_QUANT_SIZES.items()}
_ELEMENT_BYTES = {**_GGML_BYTES, **_FLOAT_BYTES}
_DEFAULT_BYTES = 2.0
UNLIMITED = 2.0**53  # a window wider than any context; infinite would make 0 × ∞ of a sum


def element_bytes(kv_cache_dtype: pl.Expr) -> pl.Expr:
    """Bytes a cached element takes: a dtype, or `K/V`, whose mean counts; 2 where blank or an engine's own word."""
    words = kv_cache_dtype.str.to_lowercase().str.split("/")
    keys, values = words.list.first(), words.list.last()
    sizes = [w.replace_strict(_ELEMENT_BYTES, default=_DEFAULT_BYTES, return_dtype=pl.Float64) for w in (keys, values)]
    return ((sizes[0] + sizes[1]) / 2).fill_null(_DEFAULT_BYTES)


def attended_tokens(position: pl.Expr, window: pl.Expr, *, is_chunked: pl.Expr) -> pl.Expr:
    """Tokens that one token at `position` looks at; chunks begin anew, so half of one in the mean."""
    beyond = pl.when(is_chunked).then(window / 2).otherwise(window)
    return pl.when(position <= window).then(position).otherwise(beyond)


def attended_pairs(tokens: pl.Expr, start: pl.Expr, window: pl.Expr, *, is_chunked: pl.Expr) -> pl.Expr:
    """Query-key pairs of `tokens` tokens that follow `start` others."""
    growing = pl.min_horizontal((window - start).clip(0), tokens)
    beyond = pl.when(is_chunked).then(window / 2).otherwise(window)
    return start * growing + growing**2 / 2 + beyond * (tokens - growing)


def attention_work(models: pl.DataFrame, caches: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """One row for each distinct KEY of `wanted`: what one sequence costs.

    kv_read_bytes: read in one decode step in the middle of the output, all GPUs, states read and written. score_pairs:
    scores of the prompt, query heads × pairs of tokens. attention_flop: a multiply and an add for each element of a
    key and of a value, per score. indexer caches count as reads only.
    """
    keys = wanted.select(KEY).unique()
    heads = models.select("model_id", "attention_heads", "kv_lora_rank", "head_dim")
    parts = keys.join(caches.drop("layer_ids"), on="model_id", how="inner").join(
        heads, on="model_id", how="left", validate="m:1"
    )
    unlimited = pl.lit(UNLIMITED)
    window = pl.col("window_tokens").cast(pl.Float64).fill_null(unlimited)
    is_chunked = pl.col("kind") == "chunked"
    prompt, start, output = (pl.col(c).cast(pl.Float64) for c in ("input_tokens", "cached_tokens", "output_tokens"))
    held = attended_tokens(start + prompt + output / 2, window, is_chunked=is_chunked)
    growing = pl.col("elements_per_token") * held / pl.col("tokens_per_entry") * element_bytes(pl.col("kv_cache_dtype"))
    states = 2.0 * pl.col("fixed_elements") * pl.col("state_element_bytes")
    is_latent = pl.col("kind") == "mla"
    absorbs = pl.col("engine_id").is_in(ABSORBING_ENGINES)
    width = (
        pl.when(is_latent & absorbs)
        .then(pl.col("key_dim") + pl.col("kv_lora_rank"))
        .when(is_latent)
        .then(2 * pl.col("head_dim"))
        .otherwise(pl.col("key_dim") + pl.col("value_dim"))
    )
    compares = pl.col("kind").is_in(["full", "sliding", "chunked", "mla"])
    pairs = attended_pairs(prompt, start, window, is_chunked=is_chunked) / pl.col("tokens_per_entry")
    scores = pl.when(compares).then(pairs * pl.col("attention_heads")).otherwise(0.0)
    layers = pl.col("layer_count")
    sums = parts.group_by(KEY).agg(
        kv_read_bytes=(layers * (growing + states)).sum(),
        score_pairs=(layers * scores).sum(),
        attention_flop=(layers * scores * 2.0 * width.fill_null(0)).sum(),
    )
    return keys.join(sums, on=KEY, how="left", nulls_equal=True, validate="1:1").with_columns(
        pl.col("kv_read_bytes", "score_pairs", "attention_flop").fill_null(0.0)
    )
