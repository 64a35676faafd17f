"""What fits: users, the longest context of one user, what is needed and what is taken, against each GPU's memory."""

import polars as pl

from fitmart.estimator.engines.grid_sums import longest_context
from fitmart.estimator.engines.llamacpp_buffers import kv_bytes, window_cells
from fitmart.estimator.engines.llamacpp_compute import compute_bytes

_OF_ROW = (
    "row",
    "setting",
    "any_context",
    "budget_bytes",
    "overhead_bytes",
    "overhead_bytes_low",
    "overhead_bytes_high",
)


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
        "slots",
        *(f"{name}_{i}" for i in range(count) for name in ("weights", "one_kv")),
    )
    joined = (
        rows.select(_OF_ROW)
        .join(needed, on="setting", how="left", validate="m:1")
        .join(longest, on="any_context", how="left", validate="m:1")
    )
    gpus, overhead = pl.col("gpus"), pl.col("overhead_bytes")
    above = pl.col("overhead_bytes_high") - overhead + pl.col("projector_bytes")
    below = overhead - pl.col("overhead_bytes_low")
    required = pl.col("device_weights") + pl.col("one_kv_gpus") + gpus * (pl.col("one_compute_bytes") + overhead)
    projector_once = (gpus - 1) * pl.col("projector_bytes")
    taken = pl.col("device_weights") + pl.col("kv_gpus_bytes") + gpus * (pl.col("compute_buffer_bytes") + overhead)
    # Slots that share out the context attend to their part alone, which takes less than one user of it all.
    required = pl.min_horizontal(required, taken)
    return (
        _with_fullest(joined, count)
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
        .with_columns(limited_by=_limited_by(), fit_context_tokens=_longest())
    )


def _longest() -> pl.Expr:
    """The longest context found in whole steps, or the one asked for, which may be less than a step."""
    is_held = (pl.col("sequence_kv_bytes") <= pl.col("kv_available_bytes")) & (
        pl.col("context") <= pl.col("context_limit")
    )
    longest = pl.col("fit_context_tokens")
    return pl.when(is_held & longest.is_not_null()).then(pl.max_horizontal(longest, "context")).otherwise(longest)


def _with_fullest(rows: pl.DataFrame, count: int) -> pl.DataFrame:
    """Add kv_available_bytes and sequence_kv_bytes of the GPU with the least to spare beside one user, and users: as
    many as the GPU that holds the fewest."""
    classes = range(count)
    free = pl.col("budget_bytes") - pl.col("one_compute_bytes") - pl.col("overhead_bytes")

    def sequences(i: int) -> pl.Expr:
        """How many a device holds; one without caches limits nothing, unless its weights alone are too much."""
        left, kv = pl.col(f"left_{i}"), pl.col(f"one_kv_{i}")
        return pl.when(kv > 0).then(left / kv).when(left < 0).then(-1.0)

    held = (
        rows.with_columns((free - pl.col(f"weights_{i}")).alias(f"left_{i}") for i in classes)
        .with_columns(sequences(i).alias(f"held_{i}") for i in classes)
        .with_columns(
            fewest=pl.min_horizontal(f"held_{i}" for i in classes),
            least_left=pl.min_horizontal(f"left_{i}" for i in classes),
            largest_kv=pl.max_horizontal(f"one_kv_{i}" for i in classes),
        )
    )
    spare = [pl.col(f"left_{i}") - pl.col(f"one_kv_{i}") for i in classes]
    is_fullest = [one == pl.min_horizontal(spare) for one in spare]

    def of_fullest(name: str, otherwise: str) -> pl.Expr:
        found = (pl.when(is_it).then(f"{name}_{i}") for i, is_it in zip(classes, is_fullest, strict=True))
        return pl.coalesce(*found, otherwise)

    # Where no GPU keeps a cache (encoders, layers on the host) the slots are what there is.
    users = (
        pl.when(pl.col("least_left") < 0)
        .then(0)
        .when(pl.col("largest_kv") > 0)
        .then(pl.col("fewest").floor().clip(0).cast(pl.Int64))
        .when(pl.col("least_left") >= 0)
        .then("slots")
    )
    return held.with_columns(
        kv_available_bytes=of_fullest("left", "least_left"),
        sequence_kv_bytes=of_fullest("one_kv", "largest_kv"),
        users=users,
    )


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
