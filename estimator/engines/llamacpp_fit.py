"""What fits: users, the longest context of one user, what is needed and what is taken, against each GPU's memory."""

import polars as pl

from fitmart.estimator.engines.grid_sums import longest_context
from fitmart.estimator.engines.llamacpp_buffers import kv_bytes, window_cells
from fitmart.estimator.engines.llamacpp_compute import compute_bytes


def context_that_fits(sized: pl.DataFrame, count: int) -> pl.DataFrame:
    """any_context, fit_context_tokens: the longest context of one user, up to the model's own [tokens]."""

    def needed(cells: pl.Expr) -> pl.Expr:
        windows = window_cells(cells, 1)
        fullest = pl.max_horizontal(pl.col(f"weights_{i}") + kv_bytes(cells, windows, f"_{i}") for i in range(count))
        return fullest + compute_bytes(cells, windows, pl.lit(1)) + pl.col("overhead_bytes")

    found = longest_context(sized, needed, step=pl.col("context_step"), limit=pl.col("context_limit"))
    return found.select("any_context", "fit_context_tokens")


def with_fit(rows: pl.DataFrame, buffers: pl.DataFrame, longest: pl.DataFrame, count: int) -> pl.DataFrame:
    """ENGINE_MEMORY_SCHEMA's figures for each row, from its setting's buffers and its GPU's memory.

    The band is that of the overhead (`llamacpp_overhead`); its upper end also holds the projector of a vision model
    (mmproj, F16), which llama-server loads beside the model when it is given one.
    """
    needed = buffers.select(
        "setting",
        "engine_version_used",
        "weights_bytes",
        "device_weights",
        "kv_cache_bytes",
        "kv_gpus_bytes",
        "compute_buffer_bytes",
        "one_kv_gpus",
        "one_compute_bytes",
        "context",
        "context_limit",
        "projector_bytes",
        "is_refused",
        "gpus",
        *(f"{name}_{i}" for i in range(count) for name in ("weights", "one_kv")),
    )
    joined = rows.join(needed, on="setting", how="left", validate="m:1").join(
        longest, on="any_context", how="left", validate="m:1"
    )
    gpus, overhead = pl.col("gpus"), pl.col("overhead_bytes")
    above = pl.col("overhead_bytes_high") - overhead + pl.col("projector_bytes")
    below = overhead - pl.col("overhead_bytes_low")
    required = pl.col("device_weights") + pl.col("one_kv_gpus") + gpus * (pl.col("one_compute_bytes") + overhead)
    projector_once = (gpus - 1) * pl.col("projector_bytes")
    taken = pl.col("device_weights") + pl.col("kv_gpus_bytes") + gpus * (pl.col("compute_buffer_bytes") + overhead)
    return (
        joined.with_columns(_fullest(count))
        .with_columns(
            non_torch_bytes=overhead,
            kv_available_bytes_low=pl.col("kv_available_bytes") - above,
            kv_available_bytes_high=pl.col("kv_available_bytes") + below,
            kv_block_bytes=pl.lit(1, pl.Int64),
            required_bytes=required,
            required_bytes_low=required - gpus * below,
            required_bytes_high=required + gpus * above - projector_once,
            taken_bytes=taken,
        )
        .with_columns(limited_by=_limited_by())
    )


def _fullest(count: int) -> list[pl.Expr]:
    """kv_available_bytes, sequence_kv_bytes and users of the GPU that holds the fewest sequences."""
    free = pl.col("budget_bytes") - pl.col("one_compute_bytes") - pl.col("overhead_bytes")
    left = [free - pl.col(f"weights_{i}") for i in range(count)]
    one = [pl.col(f"one_kv_{i}") for i in range(count)]
    held = [space / kv.clip(1) for space, kv in zip(left, one, strict=True)]
    fewest = pl.min_horizontal(held)
    available, sequence = pl.lit(None, pl.Int64), pl.max_horizontal(one)
    for space, kv, ratio in zip(reversed(left), reversed(one), reversed(held), strict=True):
        available = pl.when(ratio == fewest).then(space).otherwise(available)
        sequence = pl.when(ratio == fewest).then(kv).otherwise(sequence)
    users = pl.when(sequence > 0).then(fewest.floor().clip(0).cast(pl.Int64))
    return [
        available.alias("kv_available_bytes"),
        sequence.alias("sequence_kv_bytes"),
        users.alias("users"),
    ]


def _limited_by() -> pl.Expr:
    """The first reason a user would meet; memory is judged by the favourable end of the band."""
    return (
        pl.when(pl.col("is_refused"))
        .then(pl.lit("unsupported"))
        .when(pl.col("kv_available_bytes_high") <= 0)
        .then(pl.lit("weights"))
        .when(pl.col("context") > pl.col("context_limit"))
        .then(pl.lit("context"))
        .when(pl.col("sequence_kv_bytes") > pl.col("kv_available_bytes_high"))
        .then(pl.lit("kv_cache"))
        .when(pl.col("kv_available_bytes_high").is_null())
        .then(pl.lit("unknown"))
        .otherwise(pl.lit(None, pl.String))
    )
