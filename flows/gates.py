"""The gates at entry: which landed documents count, and which prices are believed.

A document that has shrunk by half is more often a cut answer than a sale of half the shop (dstackai/gpuhunt#255): it is
quarantined whole and the last good one stays. A price far from the median of its GPU has to be seen twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from fitmart.flows.plausible import ENOUGH_PRICES, LEAST_SHARE, LEAST_USD, MOST_USD
from fitmart.flows.sources.contract import Landed, Rejected

SHRUNK_SHARE = 0.5  # so few of the records of the last good document
SMALL = 4  # below so many records half of them may well go in a day
BELIEVED_AFTER = timedelta(days=7)  # a shop that stays small is small; an empty one is never believed
FAR = 8.0  # times the median, or a share of it


@dataclass(frozen=True, slots=True)
class Passed:
    """The versions that count, in order of time, and a line where the newest one does not."""

    versions: list[Landed]
    rejected: list[Rejected]


def is_shrunk(records: int, before: int) -> bool:
    """Whether a document of so many records is not to be believed after one of `before`."""
    return bool(before) and (records == 0 or (before >= SMALL and records <= before * SHRUNK_SHARE))


def pass_versions(versions: Sequence[Landed], counts: Sequence[int | None], moment: datetime) -> Passed:
    """The versions of one document, oldest first, with their numbers of records (None: unreadable) → those that count.

    moment: a shrunk document that has stood for BELIEVED_AFTER until then counts after all, from the day it came.
    """
    good: list[tuple[Landed, int]] = []
    waiting: list[tuple[Landed, int]] = []
    for version, count in zip(versions, counts, strict=True):
        if count is None:
            continue
        if not is_shrunk(count, good[-1][1] if good else 0):
            good, waiting = [*good, (version, count)], []
            continue
        if count:
            waiting.append((version, count))
        if waiting and version.observed_at - waiting[0][0].observed_at >= BELIEVED_AFTER:
            good, waiting = good + waiting, []
    if waiting and moment - waiting[0][0].observed_at >= BELIEVED_AFTER:
        good += waiting
    rejected = []
    if versions and counts[-1] is not None and versions[-1] not in [v for v, _ in good[-1:]]:
        last = f"{good[-1][1]:,} of {good[-1][0].observed_at:%Y-%m-%d %H:%M}" if good else "none"
        reason = f"quarantined: {counts[-1]:,} records after {last}, which stay in use"
        rejected = [Rejected(source_id=versions[-1].source_id, raw_text=versions[-1].name, reason=reason)]
    return Passed([v for v, _ in good], rejected)


def believed(spans: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split priced spans into believed ones and the rest, which has a `why`.

    spans: provider_id, gpu_id, commitment, origin, usd_per_gpu_hour, valid_from, seen_count, is_confirmed (its source
    has answered again while it stood). The median is over the distinct on-demand prices of each provider for that GPU
    that began in the same month or stood into it from the one before. Bundled rows were looked at by a person.
    """
    month = pl.col("valid_from").dt.truncate("1mo")
    judged = spans.with_columns(month=month).join(_medians(spans), on=["gpu_id", "month"], how="left", validate="m:1")
    usd, median = pl.col("usd_per_gpu_hour"), pl.col("median_usd")
    share = pl.col("commitment").replace_strict(LEAST_SHARE, return_dtype=pl.Float64)
    is_far = (usd > FAR * median) | (usd < median / FAR)
    is_once = (pl.col("seen_count") < 2) & ~pl.col("is_confirmed") & (pl.col("origin") != "seed")
    why = (
        pl.when(~usd.is_between(LEAST_USD, MOST_USD))
        .then(pl.format("implausible: {} USD for one GPU and hour", usd))
        .when((usd < share * median).fill_null(False))
        .then(pl.format("implausible: {} USD for one GPU and hour, where the median is {}", usd, median))
        .when((is_far & is_once).fill_null(False))
        .then(pl.format("seen once: {} USD for one GPU and hour, where the median is {}", usd, median))
    )
    split = judged.with_columns(why=why).drop("month", "median_usd")
    return split.filter(pl.col("why").is_null()).drop("why"), split.filter(pl.col("why").is_not_null())


def _medians(spans: pl.DataFrame) -> pl.DataFrame:
    listed = spans.filter(pl.col("commitment") == "on_demand").select(
        "gpu_id", "provider_id", "usd_per_gpu_hour", month=pl.col("valid_from").dt.truncate("1mo")
    )
    next_month = listed.with_columns(pl.col("month").dt.offset_by("1mo"))
    return (
        pl.concat([listed, next_month])
        .unique()
        .group_by("gpu_id", "month")
        .agg(median_usd=pl.col("usd_per_gpu_hour").median().round(4), prices=pl.len())
        .filter(pl.col("prices") >= ENOUGH_PRICES)
        .drop("prices")
    )
