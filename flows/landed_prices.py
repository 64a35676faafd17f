"""What the price sources have said: the newest word of each, and how long every row stood.

Documents pass the gates (flows/gates.py) first; rows are as parsed, before GPUs, providers and models are resolved.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from types import ModuleType

import polars as pl

from fitmart.estimator.history import SPAN_SCHEMA, chain_spans, observed_spans
from fitmart.flows.gates import pass_versions
from fitmart.flows.landing import list_versions, to_moment
from fitmart.flows.moments import utc_without_zone
from fitmart.flows.observations import Observations, columns
from fitmart.flows.records import Offer, TokenPrice
from fitmart.flows.runs import last_seen, read_runs
from fitmart.flows.sources import registry
from fitmart.flows.sources.contract import Landed, Rejected

# Columns that say nothing about which offer it is; of rows alike in the rest the cheapest stands.
BESIDE = {
    "prices": ("vcpus", "host_memory_bytes", "billing_granularity", "url", "date_kind"),
    "tokens": ("context_tokens", "note"),
}
PRICES = {
    "prices": ("amount",),
    "tokens": ("input_usd_per_mtok", "output_usd_per_mtok", "cached_input_usd_per_mtok"),
}
STRETCHES = ("%Y", "%Y-%m", "%Y-%m-%d")  # spans are kept by year, month and day: a new version recomputes its own ones
RECENT_MONTHS = 3  # of source_run: when a source last answered


@dataclass(frozen=True, slots=True)
class Said:
    """current: columns of the kind and observed_at (UTC). spans: key columns, name (the document) and SPAN."""

    current: pl.DataFrame
    spans: pl.DataFrame
    rejected: list[Rejected]


def span_key(kind: str) -> list[str]:
    """The columns in which a row that stands is the same row."""
    return [name for name in columns(kind).names() if name not in BESIDE[kind]]


def read_prices(
    kind: str, landing_dir: Path, cache_dir: Path, built_at: datetime, *, as_of: date | None, used: set[Path]
) -> Said:
    """All network sources of a kind (prices, tokens), as known at `built_at` or at the end of the day `as_of`.

    A row of a document that is still the newest was last seen when its source last answered, changed or not. Files of
    the cache that were needed are added to `used`.
    """
    moment = min(to_moment(as_of) or built_at, built_at)
    answered = last_seen(read_runs(landing_dir, moment, newest_months=None if as_of else RECENT_MONTHS))
    parts = [
        _read_source(
            module, landing_dir, Observations(cache_dir, kind, module, landing_dir, used), kind, moment, answered
        )
        for module in registry.live(kind)
    ]
    return Said(
        pl.concat([_no_rows(kind), *(part.current for part in parts)]),
        pl.concat([_no_spans(kind), *(part.spans for part in parts)]),
        [refused for part in parts for refused in part.rejected],
    )


def to_offers(rows: pl.DataFrame) -> list[Offer]:
    """Rows of landed offers as records again; a record is checked when it is parsed. What a row lacks is empty."""
    empty = dict.fromkeys(Offer.model_fields)
    return [
        Offer.model_construct(
            **empty | row | {"quality_flags": tuple(filter(None, (row["quality_flags"] or "").split("|")))}
        )
        for row in rows.with_columns(amount=_or_zero(rows, "amount")).iter_rows(named=True)
    ]


def to_token_prices(rows: pl.DataFrame) -> list[TokenPrice]:
    """Rows of landed token prices as records again."""
    return [TokenPrice.model_construct(**row) for row in rows.iter_rows(named=True)]


def _or_zero(rows: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name) if name in rows.columns else pl.lit(0.0)


def _read_source(
    module: ModuleType,
    landing_dir: Path,
    cache: Observations,
    kind: str,
    moment: datetime,
    answered: dict[str, datetime],
) -> Said:
    current, spans, rejected = [_no_rows(kind)], [_no_spans(kind)], []
    found = list_versions(landing_dir, module.SOURCE_ID, moment)
    counts = dict(zip(found, cache.counts(found), strict=True))
    for name, all_versions in groupby(sorted(found, key=lambda v: v.name), key=lambda v: v.name):
        versions = _changes(all_versions)
        passed = pass_versions(versions, [counts[v] for v in versions], moment)
        rejected += passed.rejected
        if not passed.versions:
            continue
        newest = passed.versions[-1]
        is_standing = newest == versions[-1]  # an answer after it that is quarantined does not confirm it
        seen_at = max(newest.observed_at, answered.get(module.SOURCE_ID) or newest.observed_at)
        seen_at = seen_at if is_standing else newest.observed_at
        records = cache.records(newest)
        is_bad = pl.col("reason").is_not_null()
        rejected += [
            Rejected(source_id=module.SOURCE_ID, raw_text=text, reason=why)
            for text, why in records.filter(is_bad).select("raw_text", "reason").iter_rows()
        ]
        seen = pl.lit(seen_at.astimezone(UTC)).cast(pl.Datetime("us", "UTC")).alias("observed_at")
        current.append(records.filter(~is_bad).select(*columns(kind).names(), seen))
        stood = _spans(cache, passed.versions, kind)
        last = pl.lit(utc_without_zone(seen_at)).cast(pl.Datetime("us"))
        last_seen_at = pl.when(pl.col("valid_to").is_null()).then(pl.max_horizontal("last_seen_at", last))
        spans.append(
            stood.with_columns(last_seen_at=last_seen_at.otherwise("last_seen_at"), name=pl.lit(name)).select(
                _no_spans(kind).columns
            )
        )
    rejected += [Rejected(source_id=module.SOURCE_ID, raw_text="", reason=fault) for fault in cache.faults]
    return Said(pl.concat(current), pl.concat(spans), rejected)


def _changes(versions: Iterable[Landed]) -> list[Landed]:
    """In order of time; of one moment the later landing; without those that repeat the one before."""
    by_moment = {v.observed_at: v for v in versions}
    ordered = [by_moment[at] for at in sorted(by_moment)]
    return [
        v
        for v, before in zip(ordered, [None, *ordered], strict=False)
        if before is None or v.payload_sha256 != before.payload_sha256
    ]


def _spans(
    cache: Observations, versions: list[Landed], kind: str, stretches: tuple[str, ...] = STRETCHES
) -> pl.DataFrame:
    """Spans of the rows of these versions, by way of those of shorter stretches of time."""
    parts, shorter = _split(versions, stretches)

    def make() -> pl.DataFrame:
        if len(parts) > 1:
            return chain_spans(
                [_spans(cache, part, kind, shorter) for part in parts],
                [utc_without_zone(p[0].observed_at) for p in parts],
                key,
            )
        cache.parse(versions)
        rows = pl.concat(_rows(cache, version, kind) for version in versions)
        return observed_spans(rows, [utc_without_zone(v.observed_at) for v in versions], key)

    key = span_key(kind)
    _keep(cache, versions, stretches)
    return cache.spans(versions, make)


def _keep(cache: Observations, versions: list[Landed], stretches: tuple[str, ...]) -> None:
    """Keep what the next version will be reckoned from: all stretches beside the newest, and its documents."""
    parts, shorter = _split(versions, stretches)
    if len(parts) == 1:
        cache.keep(versions)
        return
    for part in parts:
        cache.keep_spans(part)
    _keep(cache, parts[-1], shorter)


def _split(versions: list[Landed], stretches: tuple[str, ...]) -> tuple[list[list[Landed]], tuple[str, ...]]:
    """The versions by the longest of `stretches` that divides them, and the shorter ones; as one where none does."""
    for number, form in enumerate(stretches):
        parts = [list(part) for _, part in groupby(versions, key=partial(_stretch, form=form))]
        if len(parts) > 1:
            return parts, stretches[number + 1 :]
    return [versions], ()


def _rows(cache: Observations, version: Landed, kind: str) -> pl.DataFrame:
    """The rows of one version, each once, with the lowest of its prices."""
    prices = PRICES[kind]
    same = [name for name in span_key(kind) if name not in prices]
    rows = cache.records(version).filter(pl.col("reason").is_null()).sort(prices, nulls_last=True)
    return rows.unique(same, keep="first", maintain_order=True).select(
        *span_key(kind), seen_at=pl.lit(utc_without_zone(version.observed_at))
    )


def _stretch(version: Landed, form: str) -> str:
    return version.observed_at.astimezone(UTC).strftime(form)


def _no_rows(kind: str) -> pl.DataFrame:
    return pl.DataFrame(schema=columns(kind) | {"observed_at": pl.Datetime("us", "UTC")})


def _no_spans(kind: str) -> pl.DataFrame:
    key = pl.DataFrame(schema=columns(kind)).select(span_key(kind))
    return key.with_columns(name=pl.lit(None, pl.String)).hstack(pl.DataFrame(schema=SPAN_SCHEMA))
