"""What engine modules share: sums for distinct keys, the memory a device offers, and the longest context that fits."""

from collections.abc import Callable, Sequence

import polars as pl

LONGEST = 2**24  # tokens searched; for models that state no context
UNSTATED_CONTEXT = 4096  # tokens served where neither the question nor the model says


def distinct(frame: pl.DataFrame, columns: Sequence[str], *, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(distinct rows of `columns` with their number in `name`, `frame` with `name` added).

    The grid repeats a few thousand settings for every GPU: what depends on them alone is reckoned once. Nulls are
    values like any other. Columns with one value throughout are left out of the join: they are most of them.
    """
    varying = [column for column in columns if frame[column].n_unique() > 1]
    if not varying:
        zero = pl.lit(0, pl.Int64).alias(name)
        return frame.select(columns).head(1).with_columns(zero), frame.with_columns(zero)
    keys = frame.select(columns).unique(subset=varying).with_columns(pl.int_range(pl.len()).alias(name))
    numbered = frame.join(
        keys.select(*varying, name), on=varying, how="left", nulls_equal=True, validate="m:1", maintain_order="left"
    )
    return keys, numbered


def usable_memory(deployments: pl.DataFrame) -> pl.Expr:
    """Bytes that one device offers to a process [Int64]: a stated size, else what the runtime gives, else the driver's.

    Of unified memory the share that the GPU may address.
    """
    runtime = [pl.col("torch_memory_bytes")] if "torch_memory_bytes" in deployments.columns else []
    discrete = pl.coalesce("device_memory_bytes", *runtime, "memory_bytes")
    unified = pl.coalesce("device_memory_bytes", "memory_bytes") * pl.col("addressable_share").fill_null(1.0)
    return pl.when("is_unified_memory").then(unified.floor().cast(pl.Int64)).otherwise(discrete)


def longest_context(
    frame: pl.DataFrame, needed: Callable[[pl.Expr], pl.Expr], *, step: pl.Expr, limit: pl.Expr
) -> pl.DataFrame:
    """`frame` with fit_context_tokens: the most tokens, up to `limit`, whose `needed` bytes are within budget_bytes.

    `needed` must not fall as the tokens grow; a bisection over whole steps then finds the last that fits, with the very
    sums of the fit. Null where the budget or the need is unknown, or neither it nor the model sets an end.
    """
    stated, limit = limit, limit.fill_null(LONGEST)
    search = frame.with_columns(low=pl.lit(0, pl.Int64), high=(limit + step - 1) // step)
    highest = search["high"].max()
    total = needed(pl.col("middle") * step)
    for _ in range(highest.bit_length() if isinstance(highest, int) else 0):
        search = search.with_columns(middle=(pl.col("low") + pl.col("high") + 1) // 2).with_columns(
            fits=total <= pl.col("budget_bytes")
        )
        search = search.with_columns(
            low=pl.when("fits").then("middle").otherwise("low"),
            high=pl.when("fits").then("high").otherwise(pl.col("middle") - 1),
        )
    is_known = pl.col("budget_bytes").is_not_null() & needed(pl.lit(1, pl.Int64) * step).is_not_null()
    return search.with_columns(
        fit_context_tokens=pl.when(is_known & (stated.is_not_null() | (pl.col("low") * step < LONGEST))).then(
            pl.min_horizontal(pl.col("low") * step, limit)
        )
    ).drop("low", "high", "middle", "fits", strict=False)
