"""Fit the speed factors to the published measurements, test them with parts left out, and write both down.

    python tests/accuracy/fit_speed.py

Rewrites the fitted rows of warehouse/seeds/speed_coefficient.csv (those of other sources stay) and the section "Speed"
of tests/accuracy/RESULTS.md. Takes some seconds; reads nothing but files of this repository.
"""

from pathlib import Path

import numpy as np
import polars as pl
import speed_report
from speed_fit import NAMES, Vector, factors, fit, fit_groups, left_out, log_errors, prior_of
from speed_rows import read_rows

from fitmart.estimator.speed import ANY, KINDS
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import SEEDS

SOURCE, OBSERVED_ON = "fitmart-speed-fit", "2026-12-01"
SEED = SEEDS / "speed_coefficient.csv"
RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
LEFT_OUT = {"model": "model_id", "gpu": "gpu_id", "source": "source"}
# What a band leaves outside on each side.
TAIL = 0.1
FEWEST_FOR_A_BAND = 10
# Where one source alone was measured, a second would differ: publications of one engine disagree by about a fifth.
SECOND_SOURCE = 1.2
COLUMNS = (
    "engine_id", "era", "device_class", "term", "value", "n_rows", "leave_one_out_share", "source_id", "observed_on",
)  # fmt: skip


def band(residuals: pl.Series) -> tuple[float, float]:
    """The factors of the predicted time between which 80 % of the measured times lie."""
    values = residuals.drop_nulls().to_numpy()
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    return float(np.exp(low)), float(np.exp(high))


def median_share(errors: pl.Series) -> float | None:
    """Median |predicted / measured - 1|."""
    kept = errors.drop_nulls()
    return None if kept.is_empty() else float((kept.exp() - 1).abs().median())  # type: ignore[arg-type]


def with_errors(rows: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, Vector]]:
    """`rows` with log errors: `fit` and one column for each kind of leaving out; and the factors of all groups."""
    train = rows["screened"].is_null()
    found = fit_groups(rows.filter(train))
    errors = {f"without_{name}": left_out(rows, column, train) for name, column in LEFT_OUT.items()}
    return rows.with_columns(fit=log_errors(rows, found), **errors), found


def group_bands(rows: pl.DataFrame) -> dict[tuple[str, str], tuple[float, float]]:
    """(group, kind) → the band of residuals with the model and with the source left out, together."""
    found = {}
    for (group, kind), part in rows.partition_by("group", "kind", as_dict=True).items():
        residuals = pl.concat([-part["without_model"], -part["without_source"]]).drop_nulls()
        if residuals.len() < FEWEST_FOR_A_BAND:
            continue
        low, high = band(residuals)
        if part["source"].n_unique() == 1:
            stretch = few_models(part) if part["gpu_id"].n_unique() == 1 else 1.0
            low, high = min(low**stretch, 1 / SECOND_SOURCE), max(high**stretch, SECOND_SOURCE)
        found[str(group), str(kind)] = low, high
    return found


def few_models(rows: pl.DataFrame) -> float:
    """How much wider Student's 80 % interval is than the normal one, for a spread known from so few models."""
    freedom = max(rows["model_id"].n_unique() - 1, 1)
    normal = 1.2816
    return (
        normal + (normal**3 + normal) / (4 * freedom) + (5 * normal**5 + 16 * normal**3) / (96 * freedom**2)
    ) / normal


def pooled(rows: pl.DataFrame, by: str) -> tuple[Vector, pl.DataFrame]:
    """Factors of all `rows` together, and kind and residual of each row when its own `by` is left out of that pool."""
    prior = prior_of(rows["engine_id"].mode()[0])
    parts = []
    for (value,), part in rows.partition_by(by, as_dict=True).items():
        rest = rows.filter(pl.col(by) != value)
        theirs = factors(fit(rest, prior))
        errors = log_errors(part, dict.fromkeys(part["group"].unique().to_list(), theirs))
        parts.append(part.select("kind", residual=-errors))
    return factors(fit(rows, prior)), pl.concat(parts)


def group_records(rows: pl.DataFrame, found: dict[str, Vector]) -> list[dict[str, object]]:
    """Seed rows of the measured groups: a factor a term, two band ends a kind."""
    bands, records = group_bands(rows), []
    for group, values in sorted(found.items()):
        part = rows.filter(pl.col("group") == group)
        newest = part["era"].sort().first()  # `current` where any row is
        key = {"engine_id": part["engine_id"][0], "era": newest, "device_class": part["device_class"][0]}
        error = median_share(part["without_model"])
        counts = part.select((pl.col(n) > 0).sum() for n in NAMES).row(0, named=True)
        records += [
            key | {"term": n, "value": v, "n_rows": counts[n], "leave_one_out_share": error}
            for n, v in zip(NAMES, values, strict=True)
        ]
        own = {kind: bands[group, kind] for kind in KINDS if (group, kind) in bands}
        records += band_records(key, spread_over_kinds(own), part)
    return records


def spread_over_kinds(own: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Bands of kinds that were not measured, from those that were: a request lies between a step and a prompt."""
    filled = dict(own)
    if "e2e" in own:
        filled.setdefault("decode", own["e2e"])
    elif "decode" in own:
        both = [own["decode"], own.get("prefill", own["decode"])]
        filled["e2e"] = (min(low for low, _ in both), max(high for _, high in both))
    return filled


def band_records(
    key: dict[str, object], bands: dict[str, tuple[float, float]], part: pl.DataFrame
) -> list[dict[str, object]]:
    """Two seed rows a kind, with the rows that were measured of it and their median error."""
    records = []
    for kind, (low, high) in sorted(bands.items()):
        of_kind = part.filter(pl.col("kind") == kind)
        error = median_share(of_kind["without_model"]) if "without_model" in of_kind.columns else None
        common = key | {"n_rows": of_kind.height, "leave_one_out_share": error}
        records += [common | {"term": f"band_{side}_{kind}", "value": v} for side, v in (("low", low), ("high", high))]
    return records


def pool_records(rows: pl.DataFrame) -> list[dict[str, object]]:
    """Seed rows for what was not measured: an engine on another class of device, and any other engine."""
    records: list[dict[str, object]] = []
    for engine, part, by in [
        ("llama.cpp", rows.filter(pl.col("engine_id") == "llama.cpp"), "device_class"),
        (ANY, rows, "engine_id"),
    ]:
        values, residuals = pooled(part, by)
        key: dict[str, object] = {"engine_id": engine, "era": "current", "device_class": ANY}
        counts = part.select((pl.col(n) > 0).sum() for n in NAMES).row(0, named=True)
        records += [
            key | {"term": n, "value": v, "n_rows": counts[n], "leave_one_out_share": None}
            for n, v in zip(NAMES, values, strict=True)
        ]
        kinds = residuals.partition_by("kind", as_dict=True)
        bands = {str(kind): band(r["residual"]) for (kind,), r in kinds.items()}
        records += band_records(key, spread_over_kinds(bands), part)
    return records


def write_seed(records: list[dict[str, object]]) -> None:
    """The fitted rows, rounded to six digits, beside those of other sources."""
    fitted = pl.DataFrame(records, infer_schema_length=None).with_columns(
        pl.col("value").round_sig_figs(6),
        pl.col("leave_one_out_share").round(3),
        pl.col("n_rows").cast(pl.Int64),
        source_id=pl.lit(SOURCE),
        observed_on=pl.lit(OBSERVED_ON),
    )
    others = pl.read_csv(SEED, infer_schema_length=None).filter(pl.col("source_id") != SOURCE)
    frame = pl.concat([fitted.select(COLUMNS), others.select(COLUMNS)], how="vertical_relaxed")
    frame.sort("engine_id", "era", "device_class", "term").write_csv(SEED, float_scientific=False)


def main() -> None:
    """Fit, test, write."""
    rows = read_rows(load_reference())
    rows, found = with_errors(rows)
    compared = rows.filter(pl.col("screened").is_null())
    write_seed(group_records(compared, found) + pool_records(compared))
    section = speed_report.section(rows, group_bands(compared))
    speed_report.replace_section(RESULTS, "Speed", section)
    print(section)


if __name__ == "__main__":
    main()
