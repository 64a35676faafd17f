"""Which price stood when: `offer_history`, `api_price_history`, and who contradicts the price that stands.

Within a source the lowest of equal offers stands. Among sources a direct one comes before an aggregator; between equals
the one whose price changed last. A bundled price is one day's observation: it stands until the offer is seen again.
"""

from dataclasses import dataclass

import polars as pl

from fitmart.estimator.frames import conform, schema
from fitmart.estimator.history import MOMENT, SPAN, join_spans, standing_spans
from fitmart.estimator.offers import ORIGINS
from fitmart.flows.gates import believed
from fitmart.flows.landed_prices import PRICES, span_key, to_offers
from fitmart.flows.model_names import ModelIndex
from fitmart.flows.offers import References, bundled_references, describe, identify, in_usd
from fitmart.flows.records import Rejected

_OF_OFFER = schema(
    provider_id=pl.String,
    instance_type=pl.String,
    gpu_id=pl.String,
    gpu_count=pl.Int64,
    region=pl.String,
    commitment=pl.String,
    commit_term=pl.String,
    tier=pl.String,
    price_scope=pl.String,
    product_kind=pl.String,
    quality_flags=pl.String,
)
OFFER_HISTORY_SCHEMA = schema(
    offer_id=pl.String,
    valid_from=MOMENT,
    valid_to=MOMENT,
    last_seen_at=MOMENT,
    **_OF_OFFER,
    usd_per_hour=pl.Float64,
    usd_per_gpu_hour=pl.Float64,
    amount=pl.Float64,
    currency=pl.String,
    source_id=pl.String,
)
OFFER_RIVAL_SCHEMA = schema(
    offer_id=pl.String,
    source_id=pl.String,
    usd_per_hour=pl.Float64,
    observed_at=MOMENT,
    standing_usd_per_hour=pl.Float64,
    standing_source_id=pl.String,
)
API_PRICE_HISTORY_SCHEMA = schema(
    provider_id=pl.String,
    model_id=pl.String,
    model_name_raw=pl.String,
    valid_from=MOMENT,
    valid_to=MOMENT,
    last_seen_at=MOMENT,
    input_usd_per_mtok=pl.Float64,
    output_usd_per_mtok=pl.Float64,
    cached_input_usd_per_mtok=pl.Float64,
    source_id=pl.String,
)
LIVE_PRICE_DAYS = 1  # a price that stood so long was seen by more than one look
SAME_SHARE = 0.005  # two sources that differ by less round differently


@dataclass(frozen=True, slots=True)
class OfferHistory:
    """history: OFFER_HISTORY_SCHEMA. rivals: OFFER_RIVAL_SCHEMA. disbelieved: offer_id, source_id, usd_per_hour."""

    history: pl.DataFrame
    rivals: pl.DataFrame
    disbelieved: pl.DataFrame
    rejected: list[Rejected]

    def standing(self) -> pl.DataFrame:
        """offer_id and the source whose price stands now."""
        return self.history.filter(pl.col("valid_to").is_null()).select("offer_id", standing="source_id")


def offer_history(spans: pl.DataFrame, seeds: pl.DataFrame, *, references: References | None = None) -> OfferHistory:
    """Spans of landed rows (landed_prices.Said) and bundled offers (OFFER_SCHEMA) → what stood when.

    Equal offer_id and amount in touching spans are one; a span's dollars are by the exchange rate of its first day.
    """
    refs = references or bundled_references()
    priced = _in_usd(_identified(spans, refs), refs)
    kept, refused = believed(
        priced.with_columns(
            is_confirmed=(pl.col("last_seen_at") > pl.col("valid_from"))
            | (pl.col("valid_to") - pl.col("valid_from") >= pl.duration(days=LIVE_PRICE_DAYS)).fill_null(False)
        )
    )
    live = _of_source(kept, values=["amount", "currency"], cheapest="usd_per_hour")
    rows = pl.concat([live, _from_seeds(_seed_spans(seeds, cheapest="usd_per_hour"), live)], how="diagonal")
    rank = pl.col("origin").replace_strict({o: i for i, o in enumerate(ORIGINS)}, return_dtype=pl.Int64)
    stood = standing_spans(
        rows.with_columns(rank=rank),
        "offer_id",
        "stream",
        ["rank", "valid_from", "usd_per_hour", "source_id"],
        descending=[False, True, False, False],
    )
    joined = join_spans(stood.select("offer_id", *_OF_OFFER, "amount", "currency", "source_id", *SPAN), _STOOD)
    history = conform(_in_usd(joined, refs).sort("offer_id", "valid_from"), OFFER_HISTORY_SCHEMA, stage="offer history")
    told = refused.filter(pl.col("valid_to").is_null())
    return OfferHistory(
        history,
        _rivals(history, live, seeds),
        told.select("offer_id", "source_id", "usd_per_hour"),
        [
            Rejected(source_id=row["source_id"], raw_text=describe(row), reason=row["why"])
            for row in told.iter_rows(named=True)
        ],
    )


_STOOD = ["offer_id", "amount", "currency"]


def _identified(spans: pl.DataFrame, refs: References) -> pl.DataFrame:
    """The spans that are offers of ours, with offer_id and `stream` (one row of one document)."""
    same = [name for name in span_key("prices") if name not in PRICES["prices"]]
    rows = spans.select(*same).unique(maintain_order=True).with_row_index("number")
    known = identify(to_offers(rows.drop("number")), references=refs).select("number", "offer_id", *_OF_OFFER)
    numbered = spans.join(rows, on=same, how="left", nulls_equal=True, validate="m:1")
    return (
        numbered.select("number", "name", "amount", "currency", "source_id", "origin", *SPAN)
        .join(known.with_columns(pl.col("number").cast(pl.UInt32)), on="number", how="inner", validate="m:1")
        .with_columns(stream=pl.concat_str(["source_id", "name", "number"], separator="\x1f"))
    )


def _in_usd(spans: pl.DataFrame, refs: References) -> pl.DataFrame:
    rated = spans.with_columns(observed_at=pl.col("valid_from"), fx_rate=None, fx_on=None)
    return in_usd(rated, refs.rates)[0].drop("observed_at")


def _of_source(spans: pl.DataFrame, *, values: list[str], cheapest: str) -> pl.DataFrame:
    """What stood in each source alone: of equal offers the cheapest, in one stream a source."""
    alone = spans.with_columns(place=pl.concat_str(["offer_id", "source_id"], separator="\x1f"))
    stood = standing_spans(alone, "place", "stream", [cheapest, "stream"], descending=[False, False])
    return join_spans(stood, ["place", *values]).drop("place").with_columns(stream=pl.col("source_id"))


def _seed_spans(seeds: pl.DataFrame, *, cheapest: str) -> pl.DataFrame:
    """Bundled rows as spans in one stream: each from its day to the next one's of the same offer."""
    return (
        seeds.with_columns(valid_from=pl.col("observed_at").dt.convert_time_zone("UTC").dt.replace_time_zone(None))
        .sort("offer_id", "valid_from", cheapest, "source_id", nulls_last=True)
        .unique(["offer_id", "valid_from"], keep="first", maintain_order=True)
        .with_columns(
            valid_to=pl.col("valid_from").shift(-1).over("offer_id"),
            last_seen_at=pl.col("valid_from"),
            seen_count=pl.lit(1, pl.Int64),
            stream=pl.lit("seed"),
        )
    )


def _from_seeds(seeds: pl.DataFrame, live: pl.DataFrame) -> pl.DataFrame:
    """Seed spans, ended for good where a live source has seen the offer since: what it no longer has is gone."""
    after = (
        seeds.select("offer_id", "valid_from")
        .join(live.select("offer_id", seen_from="valid_from", seen_to="valid_to"), on="offer_id")
        .filter(pl.col("seen_to").is_null() | (pl.col("seen_to") > pl.col("valid_from")))
        .group_by("offer_id", "valid_from")
        .agg(seen_again=pl.max_horizontal("seen_from", "valid_from").min())
    )
    return (
        seeds.join(after, on=["offer_id", "valid_from"], how="left", validate="1:1")
        .with_columns(valid_to=pl.min_horizontal("valid_to", "seen_again"))
        .filter(pl.col("valid_to").is_null() | (pl.col("valid_to") > pl.col("valid_from")))
        .drop("seen_again")
    )


def _rivals(history: pl.DataFrame, live: pl.DataFrame, seeds: pl.DataFrame) -> pl.DataFrame:
    """Sources that have named another price since the one that stands began to."""
    stands = history.filter(pl.col("valid_to").is_null()).select(
        "offer_id", "valid_from", standing_usd_per_hour="usd_per_hour", standing_source_id="source_id"
    )
    said = pl.concat(
        [
            live.filter(pl.col("valid_to").is_null()).select(
                "offer_id", "source_id", "usd_per_hour", observed_at="last_seen_at"
            ),
            seeds.sort("observed_at", "usd_per_hour", descending=[True, False])
            .unique(["offer_id", "source_id"], keep="first", maintain_order=True)
            .select("offer_id", "source_id", "usd_per_hour", pl.col("observed_at").dt.replace_time_zone(None)),
        ]
    )
    differs = (pl.col("usd_per_hour") / pl.col("standing_usd_per_hour") - 1).abs() > SAME_SHARE
    rivals = said.join(stands, on="offer_id", how="inner", validate="m:1").filter(
        pl.col("source_id") != pl.col("standing_source_id"), differs, pl.col("observed_at") >= pl.col("valid_from")
    )
    return conform(rivals.sort("offer_id", "source_id"), OFFER_RIVAL_SCHEMA, stage="rivals of offers")


def api_price_history(
    spans: pl.DataFrame, seeds: pl.DataFrame, models: ModelIndex, *, references: References | None = None
) -> pl.DataFrame:
    """The same of token prices: spans of landed rows and bundled prices (API_PRICE_SCHEMA) → API_PRICE_HISTORY_SCHEMA.

    Whichever source's price changed last stands, as for the newest one in `api_price`.
    """
    refs = references or bundled_references()
    names = spans.select("provider_id", "model_name_raw", "model_id").unique(maintain_order=True)
    rows = [
        (refs.provider(provider), provider, raw, model, models.find(model or raw) or model)
        for provider, raw, model in names.iter_rows()
    ]
    known = pl.DataFrame(
        rows,
        schema={"ours": pl.String, **dict.fromkeys(names.columns, pl.String), "found": pl.String},
        orient="row",
    ).filter(pl.col("ours").is_not_null())
    live = spans.join(known, on=names.columns, how="inner", nulls_equal=True, validate="m:1").with_columns(
        stream=pl.concat_str(
            "source_id", "name", "provider_id", "model_name_raw", pl.col("model_id").fill_null(""), separator="\x1f"
        ),
        provider_id=pl.col("ours"),
        model_id=pl.col("found"),
    )
    key = pl.concat_str(
        "provider_id", pl.coalesce("model_id", pl.col("model_name_raw").str.to_lowercase()), separator="\x1f"
    ).alias("offer_id")
    prices = list(PRICES["tokens"])
    live = _of_source(live.with_columns(key), values=prices, cheapest="input_usd_per_mtok")
    seeded = _from_seeds(_seed_spans(seeds.with_columns(key), cheapest="input_usd_per_mtok"), live)
    stood = standing_spans(
        pl.concat([live, seeded], how="diagonal"),
        "offer_id",
        "stream",
        ["valid_from", "source_id", "input_usd_per_mtok"],
        descending=[True, False, False],
    )
    columns = ["provider_id", "model_id", "model_name_raw", "source_id"]
    joined = join_spans(stood.select("offer_id", *prices, *columns, *SPAN), ["offer_id", *prices])
    return conform(
        joined.sort("provider_id", "offer_id", "valid_from"), API_PRICE_HISTORY_SCHEMA, stage="token price history"
    )
