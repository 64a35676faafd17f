"""Sums are made once for each distinct deployment and joined back: the grid repeats a few thousand for every GPU."""

from collections.abc import Sequence

import polars as pl


def distinct(frame: pl.DataFrame, columns: Sequence[str], *, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(distinct rows of `columns` with their number in `name`, `frame` with `name` added).

    Nulls are values like any other. Columns with one value throughout are left out of the join: they are most of them.
    """
    varying = [column for column in columns if frame[column].n_unique() > 1]
    if not varying:
        return frame.select(columns).head(1).with_columns(pl.lit(0).alias(name)), frame.with_columns(
            pl.lit(0).alias(name)
        )
    keys = frame.select(columns).unique(subset=varying).with_columns(pl.int_range(pl.len()).alias(name))
    numbered = frame.join(
        keys.select(*varying, name), on=varying, how="left", nulls_equal=True, validate="m:1", maintain_order="left"
    )
    return keys, numbered
