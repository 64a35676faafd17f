"""Prices that cannot be meant: bids, deposits and wrong units. Rejected, never clamped."""

from datetime import timedelta

import polars as pl

# USD an hour for one GPU: below are placeholders; the dearest list price, a managed GB300, is near 20.
LEAST_USD, MOST_USD = 0.01, 50.0
# A share of the median of the same GPU: auctions open at 1 USD for any machine (skypilot#9156). Spot falls much deeper.
LEAST_SHARE = {"on_demand": 0.2, "reserved": 0.1, "spot": 0.05}
MEDIAN_DAYS = 30
ENOUGH_PRICES = 5  # fewer distinct list prices make no median


def implausible(priced: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split offers (gpu_id, commitment, usd_per_gpu_hour, observed_at, provider_id) into kept ones and those with why.

    The median is over distinct on-demand prices of each provider for that gpu_id in the 30 days up to the offer's own
    day, so that a provider's fifty regions count once.
    """
    judged = priced.with_columns(day=pl.col("observed_at").dt.date()).join(
        _medians(priced), on=["gpu_id", "day"], how="left", validate="m:1"
    )
    usd = pl.col("usd_per_gpu_hour")
    share = pl.col("commitment").replace_strict(LEAST_SHARE, return_dtype=pl.Float64)
    why = (
        pl.when(~usd.is_between(LEAST_USD, MOST_USD))
        .then(pl.format("implausible: {} USD for one GPU and hour", usd))
        .when((usd < share * pl.col("median_usd")).fill_null(False))
        .then(pl.format("implausible: {} USD for one GPU and hour, where the median is {}", usd, "median_usd"))
    )
    split = judged.with_columns(why=why)
    return split.filter(pl.col("why").is_null()), split.filter(pl.col("why").is_not_null())


def _medians(priced: pl.DataFrame) -> pl.DataFrame:
    listed = (
        priced.filter(pl.col("commitment") == "on_demand")
        .select("gpu_id", "provider_id", "usd_per_gpu_hour", listed_on=pl.col("observed_at").dt.date())
        .unique()
    )
    days = priced.select("gpu_id", day=pl.col("observed_at").dt.date()).unique()
    within = (pl.col("listed_on") <= pl.col("day")) & (
        pl.col("listed_on") > pl.col("day") - timedelta(days=MEDIAN_DAYS)
    )
    return (
        days.join(listed, on="gpu_id", how="inner")
        .filter(within)
        .unique(["gpu_id", "day", "provider_id", "usd_per_gpu_hour"])
        .group_by("gpu_id", "day")
        .agg(median_usd=pl.col("usd_per_gpu_hour").median().round(4), prices=pl.len())
        .filter(pl.col("prices") >= ENOUGH_PRICES)
        .drop("prices")
    )
