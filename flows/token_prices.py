"""Token prices of all sources in one frame, and which of them stands."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from fitmart.estimator.frames import conform, schema
from fitmart.estimator.offers import MOMENT, SOURCE_AGE_SCHEMA
from fitmart.flows.model_names import ModelIndex
from fitmart.flows.offers import References, bundled_references
from fitmart.flows.records import Rejected, TokenPrice

API_PRICE_SCHEMA = schema(
    provider_id=pl.String,
    model_id=pl.String,  # null: a model outside the catalog
    model_name_raw=pl.String,
    input_usd_per_mtok=pl.Float64,
    output_usd_per_mtok=pl.Float64,
    cached_input_usd_per_mtok=pl.Float64,
    context_tokens=pl.Int64,
    note=pl.String,
    source_id=pl.String,
    origin=pl.String,
    observed_at=MOMENT,
)
# `origin` only serves the choice; the catalog names the source.
_KEPT = {name: dtype for name, dtype in API_PRICE_SCHEMA.items() if name != "origin"}
CURRENT_API_PRICE_SCHEMA = schema(**_KEPT, is_stale=pl.Boolean)


@dataclass(frozen=True, slots=True)
class NormalisedPrices:
    """`prices`: API_PRICE_SCHEMA, every source and moment."""

    prices: pl.DataFrame
    rejected: list[Rejected]


def normalise_prices(
    prices: Sequence[TokenPrice], models: ModelIndex, *, references: References | None = None
) -> NormalisedPrices:
    """Records → API_PRICE_SCHEMA: providers by our ids, models by their repository where the name says it.

    A provider that we do not know is rejected, with the number of its prices.
    """
    refs = references or bundled_references()
    unknown: Counter[tuple[str, str]] = Counter()
    rows = []
    for price in prices:
        provider_id = refs.provider(price.provider_id)
        if provider_id is None:
            unknown[price.source_id, price.provider_id] += 1
            continue
        found = models.find(price.model_id or price.model_name_raw)
        rows.append(
            {
                "provider_id": provider_id,
                "model_id": found or price.model_id,
                "model_name_raw": price.model_name_raw,
                "input_usd_per_mtok": float(price.input_usd_per_mtok),
                "output_usd_per_mtok": _float(price.output_usd_per_mtok),
                "cached_input_usd_per_mtok": _float(price.cached_input_usd_per_mtok),
                "context_tokens": price.context_tokens,
                "note": price.note,
                "source_id": price.source_id,
                "origin": price.origin,
                "observed_at": price.observed_at,
            }
        )
    told = [
        Rejected(source_id=source, raw_text=f"{name} (× {n})", reason=f"unknown provider {name}")
        for (source, name), n in unknown.items()
    ]
    return NormalisedPrices(pl.DataFrame(rows, schema=API_PRICE_SCHEMA), told)


def _float(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]


def current_prices(prices: pl.DataFrame, sources: pl.DataFrame, built_at: datetime) -> pl.DataFrame:
    """API_PRICE_SCHEMA → one row a provider and model (or raw name), CURRENT_API_PRICE_SCHEMA, sorted.

    The newest stands, whichever its source, so that a file that went stale does not beat a fresher bundle
    (litellm#39501, genai-prices#703); on one moment the source with the lower id, then the lower price.
    """
    prices = conform(prices, API_PRICE_SCHEMA, stage="token prices")
    sources = conform(sources, SOURCE_AGE_SCHEMA, stage="sources")
    key = pl.coalesce("model_id", pl.col("model_name_raw").str.to_lowercase())
    age = pl.lit(built_at).cast(MOMENT) - pl.col("observed_at")
    standing = (
        prices.filter(pl.col("observed_at") <= built_at)
        .with_columns(key=key)
        .sort(
            "provider_id",
            "key",
            "observed_at",
            "source_id",
            "input_usd_per_mtok",
            "model_name_raw",
            descending=[False, False, True, False, False, False],
        )
        .unique(["provider_id", "key"], keep="first", maintain_order=True)
        .join(sources, on="source_id", how="left", validate="m:1", maintain_order="left")
        .with_columns(is_stale=age > pl.duration(hours=pl.col("max_age_hours")))
    )
    return conform(standing, CURRENT_API_PRICE_SCHEMA, stage="current token prices")
