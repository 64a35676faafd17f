"""The cheapest configurations that hold a workload, and what each near miss lacks.

Every configuration is estimated for the workload itself, by the functions that answer scenarios. One that does not hold
it says why; of those that do, the cheapest come first, one for each GPU and count.
"""

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from fitmart.estimator.answer import all_figures
from fitmart.estimator.cost import (
    DEFAULT_USD_PER_KWH,
    DEFAULT_UTILISATION_SHARE,
    MIN_USER_TOKENS_PER_S,
    blended_usd_per_mtok,
    power_usd_per_month,
    scale_to_zero_usd_per_month,
    usd_per_mtok,
)
from fitmart.estimator.fit import words
from fitmart.estimator.grid import grid_precisions, on_devices
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.scenarios import read_scenarios, with_defaults
from fitmart.estimator.units import GIB, HOURS_PER_MONTH

SECONDS_PER_DAY = 86_400
PAYMENTS = ("on_demand", "spot", "owned")
PLACES = 10
# A near miss has at least half of what it would need.
NEAR_SHARE = 0.5

# What an engine refuses whatever the memory: nothing near to a miss.
_REFUSALS = {limit: words("no", limit) for limit in ("context", "tp_divisibility", "unsupported", "unknown")}
_OFFER = (
    "provider_id", "instance_type", "region", "country", "price_basis", "billing_granularity", "observed_at",
    "is_stale", "url",
)  # fmt: skip
COLUMNS = (
    "gpu_id", "gpu_name", "gpu_count", "precision_id", "engine_id", "engine_version_used",
    "context_tokens", "kv_cache_dtype", "verdict",
    "users", "headroom_bytes", "decode_tokens_per_s", "decode_tokens_per_s_low", "decode_tokens_per_s_high", "ttft_ms",
    "ttft_ms_low", "ttft_ms_high", "throughput_tokens_per_s", "throughput_tokens_per_s_low",
    "throughput_tokens_per_s_high", "requests_per_day", "utilisation_share", "usd_per_hour", "usd_per_month",
    "usd_per_mtok", "usd_per_mtok_blended", "break_even_tokens_per_day", "power_usd_per_month", "purchase_usd",
    "offer_id", *_OFFER, "reason",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """So many users at once, each within `context_tokens`, with requests of so many tokens in and out."""

    users: int
    context_tokens: int
    input_tokens: int
    output_tokens: int
    requests_per_day: float | None = None
    min_user_tokens_per_s: float = MIN_USER_TOKENS_PER_S
    kv_cache_dtype: str = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """How it is paid for: rent on demand or spot, or the electricity of owned GPUs, so many hours of each day."""

    kind: str = "on_demand"
    hours_per_day: float = 24.0
    usd_per_kwh: float = DEFAULT_USD_PER_KWH


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows of COLUMNS: those that hold the workload, cheapest first, and those that nearly do."""

    configurations: pl.DataFrame
    near_misses: pl.DataFrame


def candidates(models: Models, reference: Reference, precisions: tuple[str, ...] = ()) -> pl.DataFrame:
    """model_id, precision_id, engine_id, gpu_id, gpu_count: the grid's configurations, or those of some precisions."""
    pairs = grid_precisions(models.models, reference.precisions)
    if precisions:
        named = reference.precisions.filter(pl.col("precision_id").is_in(precisions))
        pairs = models.models.select("model_id").join(named.select("precision_id", "engine_id"), how="cross")
    return on_devices(pairs, reference.gpus)


def estimate_workload(wanted: pl.DataFrame, workload: Workload, models: Models, reference: Reference) -> pl.DataFrame:
    """`all_figures` of each configuration of `wanted` (as `candidates` gives them), serving that workload.

    decode_tokens_per_s and throughput_tokens_per_s are those of all users at once, ttft_ms that of one request;
    `headroom_bytes` is what stays free beside them all, on all GPUs.
    """
    request = {
        "max_model_len": workload.context_tokens,
        "kv_cache_dtype": workload.kv_cache_dtype,
        "concurrency": workload.users,
        "input_tokens": workload.input_tokens,
        "output_tokens": workload.output_tokens,
    }
    asked = wanted.select(
        "model_id",
        precision="precision_id",
        engine="engine_id",
        gpu_id="gpu_id",
        gpu_count=pl.col("gpu_count").cast(pl.String),
        **{name: pl.lit(str(value)) for name, value in request.items()},
    )
    rows = all_figures(with_defaults(read_scenarios(asked), reference.precisions), models, reference)
    taken = pl.col("sequence_kv_bytes") * workload.users
    devices = pl.col("gpu_count") * pl.col("device_count").fill_null(1)
    return rows.with_columns(devices=devices, headroom_bytes=(pl.col("kv_available_bytes") - taken) * devices)


def with_prices(rows: pl.DataFrame, offers: pl.DataFrame, payment: Payment) -> pl.DataFrame:
    """Add the offer of exactly that GPU and count, usd_per_hour, usd_per_month and power_usd_per_month.

    offers: gpu_id, gpu_count, offer_id, usd_per_hour and the columns that describe an offer; for owned GPUs none is
    looked at, and the price is that of their electricity.
    """
    rows = rows.join(offers, on=["gpu_id", "gpu_count"], how="left", validate="m:1", maintain_order="left")
    hours = payment.hours_per_day * HOURS_PER_MONTH / 24
    power = power_usd_per_month(pl.col("tdp_w"), pl.col("gpu_count"), usd_per_kwh=payment.usd_per_kwh, hours=hours)
    if payment.kind == "owned":
        rows = rows.with_columns(usd_per_hour=power / hours)
    return rows.with_columns(
        usd_per_month=scale_to_zero_usd_per_month(pl.col("usd_per_hour"), payment.hours_per_day),
        power_usd_per_month=power,
        purchase_usd=pl.col("purchase_usd") * pl.col("gpu_count"),
    )


def judge_workload(rows: pl.DataFrame, workload: Workload, payment: Payment) -> pl.DataFrame:
    """Add requests_per_day (most it can serve), prices a token, `reason` (null: it holds the workload) and `share`.

    `share`: how much of what it would need a configuration has; 1 where only the price or the certainty is missing.
    """
    asked = workload.requests_per_day
    most = pl.col("throughput_tokens_per_s") / max(workload.output_tokens, 1) * SECONDS_PER_DAY
    rows = rows.with_columns(requests_per_day=most * payment.hours_per_day / 24)
    use = pl.lit(DEFAULT_UTILISATION_SHARE)
    if asked is not None:
        use = (asked / pl.col("requests_per_day")).clip(0, 1)
    rows = rows.with_columns(utilisation_share=use)
    mtok = usd_per_mtok(
        pl.col("usd_per_hour"), pl.col("throughput_tokens_per_s"), utilisation=pl.col("utilisation_share")
    )
    reason, share = pl.lit(None, pl.String), pl.lit(1.0)
    for fault in reversed(_faults(workload, payment)):
        is_fault = fault.holds.fill_null(value=False)
        reason = pl.when(is_fault).then(fault.reason).otherwise(reason)
        share = pl.when(is_fault).then(fault.share).otherwise(share)
    return rows.with_columns(
        usd_per_mtok=mtok, usd_per_mtok_blended=blended_usd_per_mtok(mtok), reason=reason, share=share
    )


class _Fault(NamedTuple):
    """What keeps a configuration from a workload: when, in words, and how much of what it needs it has."""

    holds: pl.Expr
    reason: pl.Expr
    share: pl.Expr


def _faults(workload: Workload, payment: Payment) -> tuple[_Fault, ...]:
    """In the order in which a user would meet them."""
    limit, pace, floor = pl.col("limited_by"), pl.col("decode_tokens_per_s"), workload.min_user_tokens_per_s
    none, all_of_it = pl.lit(0.0), pl.lit(1.0)
    missing = (-pl.col("headroom_bytes") / GIB).round(1)
    of_memory = pl.col("budget_bytes") / (pl.col("budget_bytes") - pl.col("headroom_bytes") / pl.col("devices"))
    refusal = limit.replace_strict(_REFUSALS, default=None, return_dtype=pl.String)
    requests, asked = pl.col("requests_per_day"), pl.lit(workload.requests_per_day, pl.Float64)
    users = pl.lit(workload.users)
    return (
        _Fault(limit.is_in(list(_REFUSALS)), refusal, none),
        _Fault(limit == "weights", pl.format("{} GiB too little for the weights and these users", missing), of_memory),
        _Fault(limit == "kv_cache", pl.format("{} GiB too little for the KV cache of these users", missing), of_memory),
        _Fault(pl.col("users") < users, pl.format("holds {} of {} users", "users", users), pl.col("users") / users),
        _Fault(pl.col("verdict") == "tight", pl.lit(words("tight", None)), all_of_it),
        _Fault(pace.is_null(), pl.lit("no speed is known for this GPU"), none),
        _Fault(
            pace < floor,
            pl.format("gives each user {} of {} tokens/s", pace.round(1), pl.lit(f"{floor:g}")),
            pace / floor,
        ),
        _Fault(
            requests < asked,
            pl.format(
                "serves {} of {} requests a day",
                requests.floor().cast(pl.Int64),
                pl.lit(f"{workload.requests_per_day or 0:.0f}"),
            ),
            requests / asked,
        ),
        _Fault(pl.col("usd_per_hour").is_null(), pl.lit(_NO_PRICE[payment.kind]), all_of_it),
    )


_NO_PRICE = {
    "on_demand": "it holds the workload, but no offer for that GPU and count is known",
    "spot": "it holds the workload, but no spot offer for that GPU and count is known",
    "owned": "it holds the workload, but the GPU's power is not known",
}


def choose(rows: pl.DataFrame, precisions: pl.DataFrame, *, places: int = PLACES) -> Plan:
    """The `places` cheapest that hold the workload, one for each GPU and count, and as many near misses.

    Of one GPU and count stands the precision nearest to 16 bit, then the fastest: the price is the same.
    """
    bits = precisions.select("precision_id", "bits_per_weight")
    own = 8.0 * pl.col("weights_total_bytes") / pl.col("params_total")
    ranked = rows.join(bits, on="precision_id", how="left", validate="m:1", maintain_order="left").with_columns(
        quality=pl.coalesce("bits_per_weight", own).floor()
    )
    holds = (
        ranked.filter(pl.col("reason").is_null())
        .sort("quality", "throughput_tokens_per_s", "precision_id", descending=[True, True, False])
        .unique(["gpu_id", "gpu_count"], keep="first", maintain_order=True)
        .sort("usd_per_month", "throughput_tokens_per_s", "gpu_id", "gpu_count", descending=[False, True, False, False])
    )
    missed = (
        ranked.filter(pl.col("reason").is_not_null(), pl.col("share") >= NEAR_SHARE)
        .join(holds, on=["gpu_id", "gpu_count"], how="anti")
        .sort("share", "quality", "precision_id", descending=[True, True, False])
        .unique(["gpu_id", "gpu_count"], keep="first", maintain_order=True)
        .sort(pl.col("usd_per_month"), pl.col("share"), "gpu_count", "memory_bytes", "gpu_id",
              descending=[False, True, False, False, False], nulls_last=True)
    )  # fmt: skip
    wanted = [c for c in COLUMNS if c in ranked.columns]
    return Plan(holds.head(places).select(wanted), missed.head(places).select(wanted))
