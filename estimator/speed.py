"""How fast: a decode step, a prefill and a whole request, each with its 80 % band.

Times are sums of the terms of `speed_terms`, each times a factor measured per engine, era and device class
(warehouse/seeds/speed_coefficient.csv, made by tests/accuracy/fit_speed.py). Bands are the 10 % and 90 % quantiles of
the residuals with the row's model, or its source, left out; they multiply the time.
"""

import polars as pl

from fitmart.estimator.speed_era import CURRENT, OLD
from fitmart.estimator.speed_terms import (
    TERMS,
    Terms,
    combine,
    decode_terms,
    expert_terms,
    experts_touched,
    pass_terms,
    prefill_terms,
    seconds,
)

KINDS = ("decode", "prefill", "e2e")
BANDS = tuple(f"band_{side}_{kind}" for kind in KINDS for side in ("low", "high"))
ANY = "any"  # the pool over device classes, or over engines
GROUP = ("engine_id", "era", "device_class")


def widen(coefficients: pl.DataFrame) -> pl.DataFrame:
    """Rows (engine_id, era, device_class, term, value) → one row a group: a column for each factor and band end."""
    wide = coefficients.pivot("term", index=list(GROUP), values="value", aggregate_function="first")
    columns = (*TERMS, *BANDS)
    return wide.select(
        *GROUP, *((pl.col(c) if c in wide.columns else pl.lit(None, pl.Float64)).alias(c) for c in columns)
    )


def with_speed(
    workloads: pl.DataFrame, coefficients: pl.DataFrame, *, min_user_tokens_per_s: float | None = None
) -> pl.DataFrame:
    """Add the speeds and their bands to rows that hold WORKLOAD_SCHEMA.

    coefficients: `widen`ed. A group that was not measured takes the engine's pooled row (`device_class` = any), then
    the pool of all engines (`engine_id` = any), whose bands are wider. `min_user_tokens_per_s`: of the
    `throughput_batch` users only as many are served as still get that many tokens each, one at least.

    Adds decode_tokens_per_s (one user at `batch`), prefill_tokens_per_s, ttft_ms (one unloaded request),
    throughput_tokens_per_s (output tokens of all `throughput_batch` users over the whole request), each with _low and
    _high, and the terms they come from. A step of n users whose caches hold c tokens: decode_fixed_s +
    decode_experts_s × (1 - (1 - k / e)^n) + n × (decode_s_per_user + c × decode_s_per_kv_token), with k of e experts a
    token. A prompt: prefill_s_per_token; a shorter one takes at most prefill_fixed_s beyond its share. Null where
    bandwidth or peak rate is not known; no prompt has no rate.
    """
    rows = _with_step_terms(with_coefficients(workloads, coefficients))
    if min_user_tokens_per_s is not None:
        rows = _with_served(rows, 1 / min_user_tokens_per_s)
    own, served = (_of_one_replica(c) for c in ("batch", "throughput_batch"))
    output = pl.col("output_tokens").cast(pl.Float64)
    served_step, prompt = decode_terms(served), prefill_terms(pl.lit(1.0))
    rows = rows.with_columns(
        step=seconds(decode_terms(own)),
        served_step=seconds(served_step),
        prompt=seconds(prompt),
        request=seconds(combine(prefill_terms(served), served_step, output)),
    )
    cached = (pl.col("cached_tokens") + pl.col("input_tokens") + output / 2).clip(1)
    figures = {
        "decode_tokens_per_s": (1 / pl.col("step"), "decode", False),
        "prefill_tokens_per_s": (
            pl.when(pl.col("prompt") > 0).then(pl.col("input_tokens") / pl.col("prompt")),
            "prefill",
            False,
        ),
        "ttft_ms": (pl.col("prompt") * 1e3, "prefill", True),
        "throughput_tokens_per_s": (pl.col("throughput_batch") * output / pl.col("request"), "e2e", False),
    }
    columns = [
        (pl.col("kv_sequence") / cached).alias("decode_s_per_kv_token"),
        (pl.col("prompt") / pl.col("input_tokens").clip(1)).alias("prefill_s_per_token"),
    ]
    for name, (value, kind, is_time) in figures.items():
        low, high = pl.col(f"band_low_{kind}"), pl.col(f"band_high_{kind}")
        columns += [
            value.alias(name),
            (value * low if is_time else value / high).alias(f"{name}_low"),
            (value * high if is_time else value / low).alias(f"{name}_high"),
        ]
    return rows.with_columns(columns).drop(*TERMS, *BANDS, "step", "served_step", "prompt", "request", "kv_sequence")


def _with_step_terms(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what a decode step consists of: decode_fixed_s, decode_experts_s, decode_s_per_user, kv_sequence [s]."""
    one = decode_terms(pl.lit(1.0))
    return rows.with_columns(
        decode_fixed_s=seconds(decode_terms(pl.lit(0.0))),
        decode_experts_s=seconds(expert_terms()),
        prefill_fixed_s=seconds(pass_terms()),
        decode_s_per_user=seconds(_only(one, "fl", "B", "arb")),
        kv_sequence=seconds(_only(one, "kv", "kvq")),
    )


def _with_served(rows: pl.DataFrame, longest_step_s: float) -> pl.DataFrame:
    """Cut `throughput_batch` to the most users whose step takes no longer, one at least.

    A step grows with its users, so their number is found bit by bit from the highest.
    """
    limit = _of_one_replica("throughput_batch")
    each = pl.col("decode_s_per_user") + pl.col("kv_sequence")
    largest = rows.select(limit.max()).item() or 1
    rows = rows.with_columns(served=pl.lit(0.0))
    for bit in reversed(range(int(largest).bit_length())):
        users = pl.col("served") + float(2**bit)
        step = pl.col("decode_fixed_s") + pl.col("decode_experts_s") * experts_touched(users) + users * each
        rows = rows.with_columns(
            served=pl.when((users <= limit) & (step <= longest_step_s)).then(users).otherwise("served")
        )
    of_all = (pl.col("served") * pl.col("replicas")).clip(1).cast(pl.Int64)
    return rows.with_columns(throughput_batch=pl.min_horizontal("throughput_batch", of_all)).drop("served")


def _of_one_replica(batch: str) -> pl.Expr:
    """Sequences that one of the data-parallel replicas has at once."""
    return (pl.col(batch) / pl.col("replicas")).ceil()


def _only(terms: Terms, *names: str) -> Terms:
    return {name: terms[name] for name in names}


def with_coefficients(workloads: pl.DataFrame, coefficients: pl.DataFrame) -> pl.DataFrame:
    """Join the nearest measured group's factors: engine, era and class; another era; the engine's pool; all engines.

    A factor that the nearest group has not comes from the next that does.
    """
    values = [c for c in coefficients.columns if c not in GROUP]
    wanted = workloads.select(GROUP).unique()
    engine, era, device = (pl.col(c) for c in GROUP)
    steps = [
        (engine, era, device),
        (engine, pl.lit(CURRENT), device),
        (engine, pl.lit(OLD), device),
        (engine, pl.lit(CURRENT), pl.lit(ANY)),
        (pl.lit(ANY), pl.lit(CURRENT), pl.lit(ANY)),
    ]
    found = wanted
    for i, key in enumerate(steps):
        names = [f"_{c}" for c in GROUP]
        keyed = wanted.with_columns(e.alias(n) for e, n in zip(key, names, strict=True))
        group = coefficients.rename(dict(zip(GROUP, names, strict=True)))
        match = keyed.join(group, on=names, how="left", validate="m:1").drop(names)
        found = found.join(match.rename({v: f"{v}|{i}" for v in values}), on=GROUP, validate="1:1")
    nearest = [pl.coalesce(f"{v}|{i}" for i in range(len(steps))).alias(v) for v in values]
    found = found.select(*GROUP, *nearest)
    return workloads.join(found, on=GROUP, how="left", maintain_order="left", validate="m:1")
