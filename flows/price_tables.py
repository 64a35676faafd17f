"""The tables that prices fill, from landing and the bundled snapshot: offers, token prices, and their history."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from fitmart.estimator.grid import grid_devices
from fitmart.estimator.offers import best_offer, current_offers
from fitmart.estimator.reference import Reference
from fitmart.flows.history import OfferHistory, api_price_history, offer_history
from fitmart.flows.landed_prices import read_prices, to_offers, to_token_prices
from fitmart.flows.landing import to_moment
from fitmart.flows.model_names import ModelIndex
from fitmart.flows.observations import collect_garbage
from fitmart.flows.offers import normalise
from fitmart.flows.sources import registry
from fitmart.flows.sources.contract import Rejected
from fitmart.flows.token_prices import current_prices, normalise_prices
from fitmart.warehouse.snapshot import read_seed

CACHE = "observations"  # beside landing
TABLES = ("offer", "best_offer", "offer_history", "offer_rival", "api_price", "api_price_history")
CLOCKS = ("observed_at", "last_seen_at")


@dataclass(frozen=True, slots=True)
class PriceTables:
    """Frames by table name (TABLES), and what could not be used."""

    frames: dict[str, pl.DataFrame]
    rejected: list[Rejected]


def read_price_tables(
    landing_dir: Path, model_ids: Iterable[str], reference: Reference, built_at: datetime, *, as_of: date | None = None
) -> PriceTables:
    """Prices as known at `built_at`, or at the end of the day `as_of`: ages are reckoned from there.

    What is parsed now is kept beside landing for the next time, what is no longer needed removed.
    """
    clock = min(to_moment(as_of) or built_at, built_at)
    cache_dir, used = landing_dir.parent / CACHE, set[Path]()
    live = read_prices("prices", landing_dir, cache_dir, clock, as_of=as_of, used=used)
    tokens = read_prices("tokens", landing_dir, cache_dir, clock, as_of=as_of, used=used)
    if as_of is None:
        collect_garbage(cache_dir, used)
    ages = read_seed("source").select("source_id", "max_age_hours")

    bundled, refused = _bundled("prices", clock)
    normal = normalise([*to_offers(live.current), *bundled])
    history = offer_history(live.spans, normal.offers.filter(pl.col("origin") == "seed"))
    current = current_offers(_standing(normal.offers, history), ages, clock)

    bundled_tokens, refused_tokens = _bundled("tokens", clock)
    prices = normalise_prices([*to_token_prices(tokens.current), *bundled_tokens], ModelIndex(model_ids))
    token_history = api_price_history(
        tokens.spans, prices.prices.filter(pl.col("origin") == "seed"), ModelIndex(model_ids)
    )
    frames = {
        "offer": current,
        "best_offer": best_offer(current, grid_devices(reference.gpus), clock),
        "offer_history": history.history,
        "offer_rival": history.rivals,
        "api_price": current_prices(prices.prices, ages, clock),
        "api_price_history": token_history,
    }
    rejected = [*live.rejected, *refused, *normal.rejected, *history.rejected]
    rejected += [*tokens.rejected, *refused_tokens, *prices.rejected]
    return PriceTables({name: _naive(frame) for name, frame in frames.items()}, list(dict.fromkeys(rejected)))


def without_clocks(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """A frame less what moves with every look at a source whose prices stay: that alone is no new catalog."""
    return frame.drop(CLOCKS, strict=False) if table in TABLES else frame


def rejected_frame(rejected: Iterable[Rejected]) -> pl.DataFrame:
    """`rejected`, as a table."""
    rows = [(r.source_id, r.raw_text, r.reason) for r in rejected]
    return pl.DataFrame(rows, schema=dict.fromkeys(("source_id", "raw_text", "reason"), pl.String), orient="row")


def _bundled(kind: str, clock: datetime) -> tuple[list[Any], list[Rejected]]:
    """What ships, of the days up to `clock`."""
    sifted = [module.read() for module in registry.modules(kind) if not hasattr(module, "fetch")]
    good = [record for part in sifted for record in part.good if record.observed_at <= clock]
    return good, [refused for part in sifted for refused in part.rejected]


def _standing(offers: pl.DataFrame, history: OfferHistory) -> pl.DataFrame:
    """The offers as the history has them: not gone, of the source that stands, without prices that nobody believes."""
    believed = offers.join(history.disbelieved, on=["offer_id", "source_id", "usd_per_hour"], how="anti")
    standing = history.standing()
    gone = history.history.select("offer_id").join(standing, on="offer_id", how="anti").unique()
    return (
        believed.join(gone, on="offer_id", how="anti")
        .join(standing, on="offer_id", how="left", validate="m:1")
        .filter(pl.col("standing").is_null() | (pl.col("standing") == pl.col("source_id")))
        .drop("standing")
    )


def _naive(frame: pl.DataFrame) -> pl.DataFrame:
    """Moments without a zone, in UTC, as the catalog keeps them."""
    zoned = [c for c, t in frame.schema.items() if isinstance(t, pl.Datetime) and t.time_zone]
    return frame.with_columns(pl.col(c).dt.convert_time_zone("UTC").dt.replace_time_zone(None) for c in zoned)
