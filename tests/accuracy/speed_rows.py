"""The published speeds in measurements/speed.csv, as rows of terms: config → anatomy → footprint → workload → terms.

Every stage is the estimator's own. model_config.jsonl beside it holds, for each model measured, the fields of its
public config.json that the parser reads (DeciLM-7B, whose layers differ, as a plain decoder of its size).
"""

import json
from pathlib import Path

import polars as pl

from fitmart.estimator.anatomy import to_frames
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.attention_work import KEY, attention_work
from fitmart.estimator.footprint import footprint
from fitmart.estimator.reference import Reference
from fitmart.estimator.speed_era import era
from fitmart.estimator.speed_terms import TERMS, Terms, combine, decode_terms, prefill_terms
from fitmart.estimator.units import GB
from fitmart.estimator.workload import with_workload

MEASUREMENTS = Path(__file__).resolve().parent / "measurements"
FOOTPRINT_KEY = ["model_id", "precision_id", "engine_version", "imatrix"]

# A measurement faster than this share of the data-sheet roofline is a broken publication.
FASTEST_SHARE = 0.5
# Weights, and weights with caches, may take this share of the marketed memory; beyond, the host helps or requests wait.
MOST_WEIGHTS, MOST_MEMORY = 1.02, 0.95


def read_models() -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Models, tensors and caches of every model measured."""
    lines = (MEASUREMENTS / "model_config.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return to_frames([parse_config(r["model_id"], r["config"]) for r in records])


def read_rows(reference: Reference) -> pl.DataFrame:
    """One row a measurement: workload, `seconds`, terms, `roofline_s`, `source`, `group`, `screened` (why, or null)."""
    models, tensors, caches = read_models()
    measured = pl.read_csv(MEASUREMENTS / "speed.csv", infer_schema_length=None).with_columns(
        imatrix=pl.lit(None, pl.Boolean),
        kv_cache_dtype=pl.lit(None, pl.String),
        throughput_batch="batch",
        era=era(pl.col("engine_id"), pl.col("engine_version"), reference.rules["speed_era"]),
        source=pl.col("source_url").str.split("/").list.slice(3, 2).list.join("/"),
    )
    wanted = measured.select(FOOTPRINT_KEY).unique()
    sizes = footprint(models, tensors, reference.precisions, wanted, rules=reference.rules)
    rows = (
        measured.join(models, on="model_id", how="left", validate="m:1")
        .join(sizes, on=FOOTPRINT_KEY, how="left", nulls_equal=True, validate="m:1")
        .join(reference.gpus.rename({"name": "gpu_name"}), on="gpu_id", how="left", validate="m:1")
    )
    rows = with_workload(rows, models, tensors, caches)
    at_end = rows.select(KEY).with_columns(output_tokens=2 * pl.col("output_tokens"))  # work counts half of the output
    full = attention_work(models, caches, at_end).rename({"kv_read_bytes": "full_kv_bytes"})
    rows = rows.with_columns(doubled=2 * pl.col("output_tokens")).join(
        full.select(pl.col(KEY).exclude("output_tokens"), "full_kv_bytes", doubled="output_tokens"),
        on=[*(k for k in KEY if k != "output_tokens"), "doubled"],
        how="left",
        nulls_equal=True,
        validate="m:1",
    )
    rows = rows.with_columns(
        **_terms(), roofline_s=_roofline(), group=pl.format("{} · {}", "engine_id", "device_class")
    )
    return rows.with_columns(screened=_screened())


def _batch() -> pl.Expr:
    return pl.col("batch").cast(pl.Float64)


def _by_kind(decode: pl.Expr, prefill: pl.Expr, e2e: pl.Expr) -> pl.Expr:
    kind = pl.col("kind")
    return pl.when(kind == "decode").then(decode).when(kind == "prefill").then(prefill).otherwise(e2e)


def _terms() -> dict[str, pl.Expr]:
    """The terms of each measurement: of a step, of a prompt, or of a whole batch of requests."""
    step, prompt = decode_terms(_batch()), prefill_terms(_batch())
    whole = combine(prompt, step, pl.col("output_tokens"))
    none = pl.lit(0.0)
    return {name: _by_kind(step.get(name, none), prompt.get(name, none), whole[name]) for name in TERMS}


def _weights_s(terms: Terms) -> pl.Expr:
    return terms["w16"] + terms["w8"] + terms["w4"]


def _roofline() -> pl.Expr:
    """Seconds at the data sheet's rates: the larger of bytes over bandwidth and operations over peak."""
    step, prompt = decode_terms(_batch()), prefill_terms(_batch())
    decode = pl.max_horizontal(_weights_s(step) + step["kv"], step["fl"])
    active = pl.col("expert_params") * (pl.col("experts_per_token") / pl.col("experts")).fill_nan(1.0)
    operations = 2 * (pl.col("dense_params") + active) * pl.col("input_tokens") + pl.col("attention_flop")
    compute = operations * _batch() / (pl.col("peak_flop_per_s") * pl.col("gpus"))
    prefill = pl.max_horizontal(compute, _weights_s(prompt))
    return _by_kind(decode, prefill, prefill + pl.col("output_tokens") * decode)


def _screened() -> pl.Expr:
    """Why a measurement is not compared; decided by data sheets alone, before any fit."""
    memory = pl.col("marketed_memory_gb") * GB
    weights = pl.col("dense_bytes") + pl.col("expert_bytes")
    held = weights + _batch() * pl.col("full_kv_bytes")
    is_one_pool = pl.col("gpu_count") == pl.col("gpus")
    return (
        pl.when(pl.col("seconds") < FASTEST_SHARE * pl.col("roofline_s"))
        .then(pl.lit("faster than half the roofline"))
        .when(weights > MOST_WEIGHTS * memory * pl.col("gpu_count"))
        .then(pl.lit("weights exceed the memory"))
        .when(is_one_pool & (held > MOST_MEMORY * memory * pl.col("gpus")))
        .then(pl.lit("caches exceed the memory"))
        .when((pl.col("kind") == "prefill") & (pl.col("stages") > 1))
        .then(pl.lit("prompt over several GPUs"))
    )
