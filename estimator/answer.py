"""Scenarios answered: every figure of the contract for typed rows whose model, precision and GPU are known."""

import re

import polars as pl

from fitmart.estimator.engines.grid_sums import UNSTATED_CONTEXT
from fitmart.estimator.estimate import ENGINES, judge, with_facts
from fitmart.estimator.finetune import finetune
from fitmart.estimator.kv_cache import kv_minimum_bytes
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.request import with_request_speed
from fitmart.estimator.scenarios import OUTPUT, to_deployments, with_defaults
from fitmart.estimator.workload import INPUT_SHARE

_SPEEDS = [c for c in OUTPUT if re.search(r"tokens_per_s|ttft_ms", c)]
_TRAINING = (
    "model_id",
    "method",
    "lora_rank",
    "optimizer",
    "sequence_tokens",
    "batch",
    "is_checkpointed",
    "gpu_count",
)
_REQUEST = ("concurrency", "input_tokens", "output_tokens", "cached_tokens")


def problems(scenarios: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """Typed scenarios with `error` filled where the model, precision, engine or GPU is not known to the estimator."""

    def unknown(column: str, known: pl.Series, words: str) -> pl.Expr:
        is_known = pl.col(column).is_null() | pl.col(column).is_in(known.implode())
        return pl.when(~is_known).then(pl.format("unknown {} '{}'", pl.lit(words), pl.col(column).str.slice(0, 80)))

    return scenarios.with_columns(
        error=pl.coalesce(
            "error",
            unknown("model_id", models.models["model_id"], "model"),
            unknown("precision", reference.precisions["precision_id"], "precision"),
            pl.when(~pl.col("engine").is_in(ENGINES)).then(
                pl.format("precision {} is for {}, whose memory is not estimated", "precision", "engine")
            ),
            unknown("gpu_id", reference.gpus["gpu_id"], "GPU"),
        )
    )


def answer(scenarios: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """Typed scenarios (`read_scenarios`) → `row`, the columns of OUTPUT that could be given, and `error`.

    A row that has an error already, or whose ids are unknown, gets that reason and no figures; the others are answered.
    """
    filled = problems(with_defaults(scenarios, reference.precisions), models, reference)
    good = filled.filter(pl.col("error").is_null())
    refused = filled.filter(pl.col("error").is_not_null()).select("row", "error")
    if good.is_empty():
        return refused
    rows = all_figures(good, models, reference)
    # Weights that the engine does not load run nowhere.
    rows = rows.with_columns(pl.when(pl.col("weights_bytes").is_not_null()).then(pl.col(_SPEEDS)))
    rows = _with_training(rows, good, models)
    figures = [c for c in OUTPUT if c in rows.columns and c != "error"]
    return pl.concat([rows.select("row", *figures, "error"), refused], how="diagonal").sort("row")


def _with_training(rows: pl.DataFrame, scenarios: pl.DataFrame, models: Models) -> pl.DataFrame:
    """finetune_bytes and its parts (one GPU) where a method is given; why not goes into `error`."""
    asked = scenarios.filter(pl.col("method").is_not_null()).select("row", *_TRAINING)
    trained = finetune(models.models, models.tensors, asked.with_columns(sharding=pl.lit(None, pl.String)))
    parts = trained.select("row", pl.col(r"^finetune_.*$"), training_error="error")
    joined = rows.join(parts, on="row", how="left", validate="1:1", maintain_order="left")
    return joined.with_columns(error=pl.coalesce("error", "training_error"))


def all_figures(scenarios: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """Typed scenarios with their defaults, all known → the columns of OUTPUT and everything that they come from.

    Beside OUTPUT: the deployment, the engine's memory of one GPU, `support`, `headroom_bytes`, the facts of model and
    GPU, the parts of the weights, the request and the terms of its speed.
    """
    rows = with_facts(judge(to_deployments(scenarios), models, reference), models, reference)
    rows = rows.join(scenarios.select("row", *_REQUEST), on="row", how="left", validate="1:1", maintain_order="left")
    rows = _with_minimum(rows.with_columns(context_tokens=_context()), models)
    return with_request_speed(_with_request_defaults(rows), models, reference)


def _context() -> pl.Expr:
    """What the engine serves where nothing is asked: the model's own context."""
    return pl.coalesce("context_tokens", "max_context_tokens", pl.lit(UNSTATED_CONTEXT, pl.Int64))


def _with_minimum(rows: pl.DataFrame, models: Models) -> pl.DataFrame:
    """kv_minimum_bytes: one sequence at that context, 16 bit unless the scenario says otherwise."""
    rows = rows.with_columns(kv_precision=pl.col("kv_cache_dtype").fill_null("bf16"))
    key = ["model_id", "context_tokens", "kv_precision"]
    least = kv_minimum_bytes(models.caches, rows.select(key).unique()).rename({"minimum_bytes": "kv_minimum_bytes"})
    return rows.join(least, on=key, how="left", validate="m:1", maintain_order="left")


def _with_request_defaults(rows: pl.DataFrame) -> pl.DataFrame:
    """A request that says nothing fills the context, three quarters prompt and one answer."""
    prompt = (pl.col("context_tokens") * INPUT_SHARE).cast(pl.Int64)
    batch = pl.col("concurrency").fill_null(1)
    return rows.with_columns(
        input_tokens=pl.coalesce("input_tokens", prompt),
        output_tokens=pl.coalesce("output_tokens", pl.col("context_tokens") - prompt),
        cached_tokens=pl.col("cached_tokens").fill_null(0),
        batch=batch,
        throughput_batch=batch,
    )
