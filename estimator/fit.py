"""Does it fit: from an engine's memory figures to a verdict and the one reason that limits it."""

import polars as pl

VERDICTS = ("fits", "tight", "no", "unknown")
LIMITS = ("weights", "kv_cache", "context", "tp_divisibility", "unsupported", "unknown")
# What an engine's own rules refuse, whatever the memory.
REFUSALS = ("unsupported", "tp_divisibility")
# Support states under which an engine runs a precision on an architecture at all (engine_support.csv).
RUNS = ("native", "weight_only", "emulated", "plugin")


def limited_by() -> pl.Expr:
    """What stands in the way, in the order in which a user would meet it; null where nothing does.

    Reads `support`, `limited_by` (an engine's own refusal), `context_tokens`, `extended_context_tokens`,
    `kv_available_bytes_high` and `sequence_kv_bytes` (one GPU). Memory is judged by the favourable end of the band:
    what does not fit even there is a no.
    """
    return (
        pl.when(pl.col("support") == "unsupported")
        .then(pl.lit("unsupported"))
        .when(pl.col("limited_by").is_in(REFUSALS))
        .then("limited_by")
        .when(pl.col("kv_available_bytes_high") <= 0)
        .then(pl.lit("weights"))
        .when(pl.col("context_tokens") > pl.col("extended_context_tokens"))
        .then(pl.lit("context"))
        .when(pl.col("sequence_kv_bytes") > pl.col("kv_available_bytes_high"))
        .then(pl.lit("kv_cache"))
        .when(
            pl.any_horizontal(pl.col("kv_available_bytes_high", "sequence_kv_bytes").is_null())
            | (pl.col("support") == "unknown")
        )
        .then(pl.lit("unknown"))
        .otherwise(pl.lit(None, pl.String))
    )


def verdict() -> pl.Expr:
    """fits, tight (the band of the overhead straddles the budget), no, or unknown; after `limited_by()`."""
    return (
        pl.when(pl.col("limited_by") == "unknown")
        .then(pl.lit("unknown"))
        .when(pl.col("limited_by").is_not_null())
        .then(pl.lit("no"))
        .when(pl.col("sequence_kv_bytes") <= pl.col("kv_available_bytes_low"))
        .then(pl.lit("fits"))
        .otherwise(pl.lit("tight"))
    )


def with_verdict(memory: pl.DataFrame) -> pl.DataFrame:
    """Add `limited_by`, `verdict` and `headroom_bytes` (all GPUs: what stays free beside one user) to engine memory."""
    return memory.with_columns(limited_by=limited_by()).with_columns(
        verdict=verdict(),
        headroom_bytes=(pl.col("kv_available_bytes") - pl.col("sequence_kv_bytes")) * pl.col("gpu_count"),
    )


_WORDS = {
    "weights": "the weights alone do not fit beside what the engine needs",
    "kv_cache": "the weights fit, the KV cache of one user of this context does not",
    "context": "the model is not made for this context",
    "tp_divisibility": "the model's heads cannot be divided among so many GPUs",
    "unsupported": "the engine does not run this precision on this GPU",
    "unknown": "not known whether the engine runs it, or how much memory there is",
    "fits": "it fits",
    "tight": "it fits by the estimate, not by the careful end of its band",
}


def words(verdict: str, limited_by: str | None) -> str:
    """A verdict and its reason in words, to begin or go on with."""
    return _WORDS[limited_by or verdict]
