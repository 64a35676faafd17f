"""What it costs: the offer for exactly that GPU and count, joined to the speed of that very configuration."""

import polars as pl

from fitmart.estimator.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

DEFAULT_UTILISATION_SHARE = 0.4  # of the hours paid for, the share in which the GPUs serve at that throughput
DEFAULT_USD_PER_KWH = 0.15
MIN_USER_TOKENS_PER_S = 10.0  # below this a user is not served: throughput counts no more users than keep it

KEY = ("model_id", "precision_id", "engine_id", "gpu_id", "gpu_count", "context_tokens")


def usd_per_mtok(usd_per_hour: pl.Expr, tokens_per_s: pl.Expr, *, utilisation: float) -> pl.Expr:
    """Dollars per million output tokens at `tokens_per_s` for `utilisation` of the time."""
    return usd_per_hour / (tokens_per_s * utilisation * SECONDS_PER_HOUR) * 1e6


def with_cost(
    speed: pl.DataFrame,
    best_offer: pl.DataFrame,
    gpus: pl.DataFrame,
    *,
    utilisation: float = DEFAULT_UTILISATION_SHARE,
    usd_per_kwh: float = DEFAULT_USD_PER_KWH,
) -> pl.DataFrame:
    """Rows of `cost`, one for each row of `speed`.

    speed: KEY and throughput_tokens_per_s (+ _low, _high). best_offer: gpu_id, gpu_count, commitment, offer_id,
    usd_per_hour; a GPU and count without an offer leaves prices null, never another card's. gpus: gpu_id, tdp_w,
    purchase_usd. Power is the data sheet's TDP around the clock; payback counts rent saved less power.
    """
    offers = {
        kind: best_offer.filter(pl.col("commitment") == kind).select(
            "gpu_id",
            "gpu_count",
            pl.col("offer_id").alias(f"{kind}_offer_id"),
            pl.col("usd_per_hour").alias(f"{kind}_usd"),
        )
        for kind in ("on_demand", "spot")
    }
    rows = speed.select(*KEY, pl.col("^throughput_tokens_per_s.*$"))
    for offer in offers.values():
        rows = rows.join(offer, on=["gpu_id", "gpu_count"], how="left", maintain_order="left", validate="m:1")
    rows = rows.join(gpus.select("gpu_id", "tdp_w", "purchase_usd"), on="gpu_id", how="left", maintain_order="left")
    hour = pl.col("on_demand_usd").cast(pl.Float64)
    month = hour * HOURS_PER_MONTH
    power = pl.col("tdp_w") * pl.col("gpu_count") / 1000 * HOURS_PER_MONTH * usd_per_kwh
    purchase = pl.col("purchase_usd") * pl.col("gpu_count")
    saved = month - power

    def per_mtok(throughput: str) -> pl.Expr:
        return usd_per_mtok(hour, pl.col(throughput), utilisation=utilisation)

    return rows.select(
        *KEY,
        "on_demand_offer_id",
        "spot_offer_id",
        usd_per_hour=hour,
        spot_usd_per_hour=pl.col("spot_usd").cast(pl.Float64),
        usd_per_month=month,
        usd_per_mtok=per_mtok("throughput_tokens_per_s"),
        usd_per_mtok_low=per_mtok("throughput_tokens_per_s_high"),
        usd_per_mtok_high=per_mtok("throughput_tokens_per_s_low"),
        utilisation_share=pl.lit(utilisation),
        power_usd_per_month=power,
        purchase_usd=purchase,
        payback_months=pl.when(saved > 0).then(purchase / saved),
    )
