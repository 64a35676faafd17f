"""Observations → spans of time in which something stood. Pure frames.

A document is observed at some moments, its versions. A row that is in consecutive versions has stood from the first of
them until the first version without it: a span, open (`valid_to` null) where no such version has come. Nothing here
depends on the order in which the observations come.

Columns of a span beside its key: valid_from, valid_to, last_seen_at (the last version that shows it), seen_count (how
many versions do).
"""

from collections.abc import Sequence

import polars as pl

from fitmart.estimator.frames import schema

MOMENT = pl.Datetime("us")  # UTC without a zone, as landing and the catalog keep it
SPAN_SCHEMA = schema(valid_from=MOMENT, valid_to=MOMENT, last_seen_at=MOMENT, seen_count=pl.Int64)
SPAN = tuple(SPAN_SCHEMA)


def observed_spans(rows: pl.DataFrame, moments: Sequence[object], key: Sequence[str]) -> pl.DataFrame:
    """`rows` (key, seen_at: the version a row is in) and the moments of all versions → key, SPAN, sorted by time.

    A version without any row counts as well: it closes what stood before. A row twice in one version counts once.
    """
    versions = pl.DataFrame({"seen_at": pl.Series(moments, dtype=MOMENT)}).unique().sort("seen_at").with_row_index("nr")
    keys, numbered = _number(rows.select(*key, pl.col("seen_at").cast(MOMENT)), key)
    seen = numbered.unique().join(versions, on="seen_at", how="inner").sort("key_nr", "nr")
    is_new = (pl.col("nr").cast(pl.Int64).diff() != 1) | (pl.col("key_nr").diff() != 0)
    runs = seen.group_by("key_nr", run=is_new.fill_null(True).cum_sum()).agg(
        valid_from=pl.col("seen_at").min(),
        last_seen_at=pl.col("seen_at").max(),
        seen_count=pl.len().cast(pl.Int64),
        next_nr=pl.col("nr").max() + 1,
    )
    ends = versions.select(next_nr="nr", valid_to="seen_at")
    return _named(runs.join(ends, on="next_nr", how="left", validate="m:1"), keys, key)


def chain_spans(parts: Sequence[pl.DataFrame], starts: Sequence[object], key: Sequence[str]) -> pl.DataFrame:
    """Spans of consecutive stretches of time, each reckoned alone, as one history: key, SPAN.

    starts: the first version of each part, ascending. What is open at the end of a part either goes on in the next
    part's first version or closes there.
    """
    ended = [
        part.with_columns(pl.col("valid_to").fill_null(pl.lit(start, MOMENT)))
        for part, start in zip(parts[:-1], starts[1:], strict=True)
    ]
    return join_spans(pl.concat([*ended, *parts[-1:]]), key) if parts else pl.DataFrame()


def join_spans(spans: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Touching spans of one key as one. Other columns keep the value of the last of them; spans must not overlap."""
    keys, numbered = _number(spans, key)
    ordered = numbered.sort("key_nr", "valid_from")
    is_new = (pl.col("valid_from") != pl.col("valid_to").shift()) | (pl.col("key_nr").diff() != 0)
    others = [c for c in ordered.columns if c not in (*SPAN, "key_nr")]
    joined = ordered.group_by("key_nr", run=is_new.fill_null(True).cum_sum(), maintain_order=True).agg(
        *(pl.col(c).last() for c in others),
        valid_from=pl.col("valid_from").first(),
        valid_to=pl.col("valid_to").last(),
        last_seen_at=pl.col("last_seen_at").max(),
        seen_count=pl.col("seen_count").sum(),
    )
    return _named(joined, keys, key, others)


def standing_spans(
    spans: pl.DataFrame, by: str, stream: str, prefer: Sequence[str], *, descending: Sequence[bool]
) -> pl.DataFrame:
    """At every moment, of all spans of one `by`, the one that comes first in the order of `prefer`: no two overlap.

    Spans of one `stream` (within a `by`) must not overlap. A span that another takes the place of is cut, and goes on
    where it stands again; its pieces keep their columns, with last_seen_at not after the piece.
    """
    ordered = spans.sort(by, "valid_from")
    latest = pl.col("valid_to").fill_null(pl.lit(_NEVER, MOMENT)).cum_max().shift().over(by)
    crossed = ordered.filter(pl.col("valid_from") < latest).select(by).unique()
    if crossed.is_empty():
        return ordered
    alone = ordered.join(crossed, on=by, how="anti")
    return pl.concat([alone, _cut(ordered.join(crossed, on=by, how="semi"), by, stream, prefer, descending)])


_NEVER = pl.select(pl.datetime(9999, 1, 1, time_unit="us")).item()


def _cut(spans: pl.DataFrame, by: str, stream: str, prefer: Sequence[str], descending: Sequence[bool]) -> pl.DataFrame:
    """Time cut wherever a span begins or ends; of each piece the preferred of the spans that hold it."""
    bounds = pl.concat([spans.select(by, at="valid_from"), spans.select(by, at="valid_to").drop_nulls("at")]).unique()
    pieces = bounds.sort(by, "at").with_columns(until=pl.col("at").shift(-1).over(by))
    places = pieces.join(spans.select(by, stream).unique(), on=by).sort("at")
    held = places.join_asof(
        spans.sort("valid_from"),
        left_on="at",
        right_on="valid_from",
        by=[by, stream],
        strategy="backward",
        coalesce=False,
        check_sortedness=False,  # it cannot be checked by groups
    ).filter(pl.col("valid_from").is_not_null(), pl.col("valid_to").is_null() | (pl.col("valid_to") > pl.col("at")))
    first = held.sort(by, "at", *prefer, descending=[False, False, *descending]).unique(
        [by, "at"], keep="first", maintain_order=True
    )
    return first.with_columns(
        valid_from=pl.col("at"),
        valid_to=pl.col("until"),
        last_seen_at=pl.min_horizontal("last_seen_at", "until"),
    ).select(spans.columns)


def _number(rows: pl.DataFrame, key: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The distinct keys with a number each, and the rows with that number instead: narrow rows sort fast."""
    keys = rows.select(key).unique(maintain_order=True).with_columns(key_nr=pl.int_range(pl.len(), dtype=pl.Int64))
    return keys, rows.join(keys, on=key, how="left", nulls_equal=True).drop(key)


def _named(spans: pl.DataFrame, keys: pl.DataFrame, key: Sequence[str], others: Sequence[str] = ()) -> pl.DataFrame:
    return (
        spans.join(keys, on="key_nr", how="left", validate="m:1")
        .select(*key, *others, *SPAN)
        .sort("valid_from", *key, nulls_last=True)
    )
