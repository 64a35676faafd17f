"""Which of many offers stands, and what n of a GPU cost an hour: pure frames.

An offer is USD an hour for `gpu_count` GPUs. Its scope says what n of them cost: an `instance` is sold whole; `per_gpu`
serves any n of its range at n × price, host included; `gpu_only` comes without a host: never a price to run at.
"""

from datetime import datetime, timedelta

import polars as pl

from fitmart.estimator.frames import conform, schema

MOMENT = pl.Datetime("us", "UTC")

OFFER_SCHEMA = schema(
    offer_id=pl.String,
    provider_id=pl.String,
    instance_type=pl.String,
    gpu_name_raw=pl.String,
    gpu_memory_gib=pl.Float64,
    gpu_id=pl.String,
    is_gpu_assumed=pl.Boolean,
    gpu_count=pl.Int64,
    min_gpu_count=pl.Int64,
    max_gpu_count=pl.Int64,
    price_scope=pl.String,  # instance, per_gpu, gpu_only
    product_kind=pl.String,  # vm, bare_metal, managed, serverless
    seller=pl.String,
    vcpus=pl.Float64,
    host_memory_bytes=pl.Int64,
    region=pl.String,
    country=pl.String,
    is_eu=pl.Boolean,
    commitment=pl.String,  # on_demand, spot, reserved
    commit_term=pl.String,
    tier=pl.String,
    usd_per_hour=pl.Float64,  # the whole offer
    usd_per_gpu_hour=pl.Float64,
    amount=pl.Float64,
    currency=pl.String,
    fx_rate=pl.Float64,  # USD for one unit of currency
    fx_on=pl.Date,
    billing_granularity=pl.String,
    quality_flags=pl.String,  # joined by |
    url=pl.String,
    source_id=pl.String,
    origin=pl.String,  # direct, aggregator, seed
    observed_at=MOMENT,
    date_kind=pl.String,
)
# `origin` only serves the choice; the catalog names the source.
_KEPT = {name: dtype for name, dtype in OFFER_SCHEMA.items() if name != "origin"}
CURRENT_SCHEMA = schema(**_KEPT, is_stale=pl.Boolean)
SOURCE_AGE_SCHEMA = schema(source_id=pl.String, max_age_hours=pl.Int64)
BEST_SCHEMA = schema(
    gpu_id=pl.String,
    gpu_count=pl.Int64,
    commitment=pl.String,
    offer_id=pl.String,
    usd_per_hour=pl.Float64,  # of exactly gpu_count GPUs
    price_basis=pl.String,  # offered, scaled
    provider_id=pl.String,
    observed_at=MOMENT,
)

ORIGINS = ["direct", "aggregator", "seed"]  # the first there is stands for an offer
WINDOW_DAYS = 90
RENTABLE = ("vm", "bare_metal")  # a managed twin of a machine is another product
NOT_BELOW = "spot_not_below_on_demand"
MISLABELLED = "tier_mislabelled"
# Doubts that keep a row out of "cheapest"; it stays in the table.
DOUBTS = (
    NOT_BELOW,
    "price_outlier",
    "spot_suspiciously_low",
    MISLABELLED,
    "average",
    "estimated",
    "fixture_invented",
    "fractional_gpu",
    "zero_price",
)
# A spot price is compared with the on-demand price of the very same thing only.
SAME_THING = ("provider_id", "instance_type", "gpu_id", "gpu_count", "region", "tier", "source_id")


def current_offers(offers: pl.DataFrame, sources: pl.DataFrame, built_at: datetime) -> pl.DataFrame:
    """OFFER_SCHEMA (several sources and moments of one offer) → CURRENT_SCHEMA, one row an offer_id, sorted by it.

    Of an offer stands the direct source before an aggregator before a seed, then the newest, then the cheapest; nothing
    observed after `built_at` counts. `sources`: SOURCE_AGE_SCHEMA; `is_stale` = older than max_age_hours at `built_at`,
    null where the source has none. A spot price not below the on-demand price of the same thing is flagged, and a
    reservation dearer than a shorter one.
    """
    offers = conform(offers, OFFER_SCHEMA, stage="offers")
    sources = conform(sources, SOURCE_AGE_SCHEMA, stage="sources")
    known = offers.filter(pl.col("observed_at") <= built_at, pl.col("gpu_id").is_not_null())
    precedence = (
        "offer_id",
        pl.col("origin").replace_strict({o: i for i, o in enumerate(ORIGINS)}, return_dtype=pl.Int64),
        -pl.col("observed_at").to_physical(),
        "usd_per_hour",
        "source_id",
    )
    # The other columns after them, so that the order of the rows never decides; a row without flags comes first.
    standing = known.sort(*precedence, *OFFER_SCHEMA).unique("offer_id", keep="first", maintain_order=True)
    age = pl.lit(built_at).cast(MOMENT) - pl.col("observed_at")
    aged = standing.join(sources, on="source_id", how="left", validate="m:1").with_columns(
        is_stale=age > pl.duration(hours=pl.col("max_age_hours"))
    )
    flagged = _flag_dear_terms(_flag_dear_spot(aged))
    return conform(flagged.sort("offer_id"), CURRENT_SCHEMA, stage="current offers")


def _flag_dear_spot(offers: pl.DataFrame) -> pl.DataFrame:
    on_demand = (
        offers.filter(pl.col("commitment") == "on_demand")
        .group_by(*SAME_THING)
        .agg(on_demand_usd=pl.col("usd_per_hour").min())
    )
    is_dear = (pl.col("commitment") == "spot") & (pl.col("usd_per_hour") >= pl.col("on_demand_usd"))
    joined = offers.join(on_demand, on=SAME_THING, how="left", nulls_equal=True, validate="m:1")
    return joined.with_columns(quality_flags=_with_flag(is_dear, NOT_BELOW))


def _flag_dear_terms(offers: pl.DataFrame) -> pl.DataFrame:
    """Who binds himself for longer pays no more: a dearer longer term is another product under a wrong label."""
    months = pl.col("commit_term").str.extract(r"^(\d+)mo$").cast(pl.Int64)
    terms = offers.filter(pl.col("commitment") == "reserved").select(
        "offer_id", *SAME_THING, "usd_per_hour", months=months
    )
    dear = (
        terms.join(terms, on=SAME_THING, how="inner", nulls_equal=True, suffix="_shorter")
        .filter(pl.col("months_shorter") < pl.col("months"), pl.col("usd_per_hour_shorter") < pl.col("usd_per_hour"))
        .select("offer_id")
        .unique()
    )
    return offers.with_columns(
        quality_flags=_with_flag(pl.col("offer_id").is_in(dear["offer_id"].implode()), MISLABELLED)
    )


def _with_flag(is_so: pl.Expr, flag: str) -> pl.Expr:
    """`quality_flags` with that flag where `is_so`, once."""
    flags = pl.col("quality_flags")
    has_flag = flags.fill_null("").str.split("|").list.contains(flag)
    more = pl.concat_str([flags, pl.lit(flag)], separator="|", ignore_nulls=True)
    return pl.when(is_so.fill_null(False) & ~has_flag).then(more).otherwise(flags)


def best_offer(
    offers: pl.DataFrame, wanted: pl.DataFrame, built_at: datetime, *, window_days: int = WINDOW_DAYS
) -> pl.DataFrame:
    """The cheapest offer of exactly n GPUs: CURRENT_SCHEMA × `wanted` (gpu_id, gpu_count) → BEST_SCHEMA.

    One row for each wanted pair and commitment that something serves, sorted. Left out: what is older than
    `window_days` at `built_at`, GPUs without a host, managed and serverless products, rows in doubt (DOUBTS). Of equal
    prices the certain GPU comes first, then the newest, then the lower offer_id.
    """
    offers = conform(offers, CURRENT_SCHEMA, stage="current offers")
    doubts = pl.col("quality_flags").fill_null("").str.split("|").list.set_intersection(list(DOUBTS)).list.len()
    usable = offers.filter(
        pl.col("observed_at") >= built_at - timedelta(days=window_days),
        pl.col("price_scope") != "gpu_only",
        pl.col("product_kind").fill_null("vm").is_in(RENTABLE),
        doubts == 0,
    ).with_columns(offered_count=pl.col("gpu_count"))
    pairs = wanted.select(pl.col("gpu_id").cast(pl.String), wanted_count=pl.col("gpu_count").cast(pl.Int64)).unique()
    served = usable.join(pairs, on="gpu_id", how="inner").filter(_serves())
    best = (
        served.with_columns(
            usd_per_hour=pl.when(pl.col("offered_count") == pl.col("wanted_count"))
            .then(pl.col("usd_per_hour"))
            .otherwise(pl.col("usd_per_gpu_hour") * pl.col("wanted_count")),
            price_basis=pl.when(pl.col("offered_count") == pl.col("wanted_count"))
            .then(pl.lit("offered"))
            .otherwise(pl.lit("scaled")),
            gpu_count=pl.col("wanted_count"),
        )
        .sort(
            "gpu_id",
            "gpu_count",
            "commitment",
            "usd_per_hour",
            pl.col("is_gpu_assumed").fill_null(False),
            "observed_at",
            "offer_id",
            descending=[False] * 5 + [True, False],
        )
        .unique(["gpu_id", "gpu_count", "commitment"], keep="first", maintain_order=True)
    )
    return conform(best, BEST_SCHEMA, stage="best offer")


def _serves() -> pl.Expr:
    """An instance is sold whole; a per-GPU offer within its range."""
    count, wanted = pl.col("offered_count"), pl.col("wanted_count")
    within = wanted.is_between(pl.col("min_gpu_count").fill_null(count), pl.col("max_gpu_count").fill_null(count))
    return pl.when(pl.col("price_scope") == "per_gpu").then(within).otherwise(wanted == count)
