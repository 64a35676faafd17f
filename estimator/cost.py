"""What it costs: the offer for exactly that GPU and count, joined to the speed of that very configuration.

One million tokens cost what an hour costs, over the tokens of an hour in which the GPUs serve for a share of the time.
A request is the 3:1 mix of prompt and answer that prices are blended by: a million output tokens carry the cost of
their prompts, a million tokens of both (blended) cost a quarter of that.
"""

import polars as pl

from fitmart.estimator.units import HOURS_PER_MONTH, SECONDS_PER_HOUR
from fitmart.estimator.workload import INPUT_SHARE

DEFAULT_UTILISATION_SHARE = 0.4  # of the hours paid for, the share in which the GPUs serve at that throughput
DEFAULT_USD_PER_KWH = 0.15
MIN_USER_TOKENS_PER_S = 10.0  # below this a user is not served: throughput counts no more users than keep it
DAYS_PER_MONTH = HOURS_PER_MONTH / 24

KEY = ("model_id", "precision_id", "engine_id", "gpu_id", "gpu_count", "context_tokens")


def usd_per_mtok(usd_per_hour: pl.Expr, tokens_per_s: pl.Expr, *, utilisation: float | pl.Expr) -> pl.Expr:
    """Dollars per million output tokens at `tokens_per_s` for `utilisation` of the time."""
    return usd_per_hour / (tokens_per_s * utilisation * SECONDS_PER_HOUR) * 1e6


def blended_usd_per_mtok(output_usd_per_mtok: pl.Expr) -> pl.Expr:
    """Dollars per million tokens of prompt and answer, where `output_usd_per_mtok` carries the prompts' cost too."""
    return output_usd_per_mtok * (1 - INPUT_SHARE)


def api_usd_per_mtok(input_usd_per_mtok: pl.Expr, output_usd_per_mtok: pl.Expr) -> pl.Expr:
    """What an API takes for a million tokens, three of the prompt to one of the answer."""
    return input_usd_per_mtok * INPUT_SHARE + output_usd_per_mtok * (1 - INPUT_SHARE)


def break_even_tokens_per_day(usd_per_month: pl.Expr, api_usd: pl.Expr) -> pl.Expr:
    """Tokens (prompt and answer) a day above which a month's rent is less than the API's price for them."""
    return pl.when(api_usd > 0).then(usd_per_month / DAYS_PER_MONTH / api_usd * 1e6)


def scale_to_zero_usd_per_month(usd_per_hour: pl.Expr, active_hours_per_day: float | pl.Expr) -> pl.Expr:
    """A month's rent where only the active hours of each day are paid for."""
    return usd_per_hour * active_hours_per_day * DAYS_PER_MONTH


def power_usd_per_month(
    tdp_w: pl.Expr, gpu_count: pl.Expr, *, usd_per_kwh: float = DEFAULT_USD_PER_KWH, hours: float = HOURS_PER_MONTH
) -> pl.Expr:
    """Electricity of `gpu_count` owned GPUs at the data sheet's power for `hours` of a month."""
    return tdp_w * gpu_count / 1000 * hours * usd_per_kwh


def payback_months(purchase_usd: pl.Expr, rent_usd_per_month: pl.Expr, power_usd: pl.Expr) -> pl.Expr:
    """Months of rent, less electricity, that pay the purchase; null where rent costs no more than the electricity."""
    saved = rent_usd_per_month - power_usd
    return pl.when(saved > 0).then(purchase_usd / saved)


def with_cost(
    speed: pl.DataFrame,
    best_offer: pl.DataFrame,
    gpus: pl.DataFrame,
    *,
    utilisation: float = DEFAULT_UTILISATION_SHARE,
    usd_per_kwh: float = DEFAULT_USD_PER_KWH,
    hours: float = HOURS_PER_MONTH,
) -> pl.DataFrame:
    """Rows of `cost`, one for each row of `speed`.

    speed: KEY and throughput_tokens_per_s (+ _low, _high). best_offer: gpu_id, gpu_count, commitment, offer_id,
    usd_per_hour; a GPU and count without an offer leaves prices null, never another card's. gpus: gpu_id, tdp_w,
    purchase_usd. `hours` of a month are paid for; power is the data sheet's TDP for as long.
    """
    rows = speed.select(*KEY, pl.col("^throughput_tokens_per_s.*$"))
    rows = with_offers(rows, best_offer)
    rows = rows.join(gpus.select("gpu_id", "tdp_w", "purchase_usd"), on="gpu_id", how="left", maintain_order="left")
    hour = pl.col("usd_per_hour")
    power = power_usd_per_month(pl.col("tdp_w"), pl.col("gpu_count"), usd_per_kwh=usd_per_kwh, hours=hours)
    purchase = pl.col("purchase_usd") * pl.col("gpu_count")
    # The dear end of a price is the slow end of the speed.
    per_mtok = {
        name: usd_per_mtok(hour, pl.col(f"throughput_tokens_per_s{end}"), utilisation=utilisation)
        for name, end in (("", ""), ("_low", "_high"), ("_high", "_low"))
    }
    return rows.select(
        *KEY,
        "on_demand_offer_id",
        "spot_offer_id",
        "usd_per_hour",
        "spot_usd_per_hour",
        usd_per_month=hour * hours,
        **{f"usd_per_mtok{end}": price for end, price in per_mtok.items()},
        **{f"usd_per_mtok_blended{end}": blended_usd_per_mtok(price) for end, price in per_mtok.items()},
        utilisation_share=pl.lit(utilisation),
        power_usd_per_month=power,
        purchase_usd=purchase,
        payback_months=payback_months(purchase, hour * hours, power),
    )


def with_offers(rows: pl.DataFrame, best_offer: pl.DataFrame) -> pl.DataFrame:
    """Add on_demand_offer_id, usd_per_hour, spot_offer_id, spot_usd_per_hour of exactly each row's GPU and count."""
    for kind, price in (("on_demand", "usd_per_hour"), ("spot", "spot_usd_per_hour")):
        offers = best_offer.filter(pl.col("commitment") == kind).select(
            "gpu_id",
            "gpu_count",
            pl.col("offer_id").alias(f"{kind}_offer_id"),
            pl.col("usd_per_hour").cast(pl.Float64).alias(price),
        )
        rows = rows.join(offers, on=["gpu_id", "gpu_count"], how="left", maintain_order="left", validate="m:1")
    return rows
