"""Estimates for a user's own rows: their models found, their GPU names resolved, then the estimator."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from fitmart.estimator.anatomy import Anatomy, AnatomyError
from fitmart.estimator.answer import answer
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.architectures.headers import anatomy_from_headers
from fitmart.estimator.architectures.headers_records import HeaderError
from fitmart.estimator.reference import Models
from fitmart.estimator.scenarios import read_scenarios, to_answers
from fitmart.flows.contexts import with_extension
from fitmart.flows.gpu_names import resolve
from fitmart.flows.models import read_models
from fitmart.flows.sources.contract import ModelRecord
from fitmart.warehouse.reference import load_reference


@dataclass(frozen=True, slots=True)
class Found:
    """Anatomies by model_id, and a line for each model that has none."""

    models: Models
    reasons: dict[str, str]


def find_models(wanted: Iterable[str], landing_dir: Path, models_dir: Path | None) -> Found:
    """The anatomies of `wanted` (model ids); a private model wins over the Hub's of the same name."""
    known = read_models(landing_dir, models_dir)
    by_id = {record.model_id: record for record in known.records}
    anatomies: list[Anatomy] = []
    reasons: dict[str, str] = {}
    for model_id in sorted(set(wanted)):
        if model_id not in by_id:
            reasons[model_id] = f"unknown model '{model_id[:80]}'"
            continue
        try:
            anatomies.append(anatomy_of(by_id[model_id]))
        except AnatomyError as error:
            reasons[model_id] = str(error)
    return Found(Models.of(anatomies), reasons)


def anatomy_of(record: ModelRecord) -> Anatomy:
    """The record's headers and config, read; the config alone where its headers cannot be. Raises AnatomyError."""
    return with_extension(_read_anatomy(record))


def _read_anatomy(record: ModelRecord) -> Anatomy:
    if record.headers:
        with suppress(HeaderError):  # `model_check` says why
            return anatomy_from_headers(
                record.model_id, record.headers, record.config, quant_config=record.quant_config
            )
    anatomy = parse_config(record.model_id, record.config, quant_config=record.quant_config)
    if stored := record.metadata.get("stored_bytes"):  # an index's total, where there were too many headers to read
        return replace(anatomy, facts=replace(anatomy.facts, stored_bytes=int(stored)))
    return anatomy


def answer_scenarios(rows: pl.DataFrame, landing_dir: Path, models_dir: Path | None) -> pl.DataFrame:
    """Rows of the scenarios contract (text) → the same rows with the answers beside, in the same order."""
    typed = _with_gpu_ids(read_scenarios(rows))
    found = find_models(typed["model_id"].drop_nulls(), landing_dir, models_dir)
    reason = pl.col("model_id").replace_strict(found.reasons, default=None, return_dtype=pl.String)
    typed = typed.with_columns(error=pl.coalesce("error", reason))
    return to_answers(rows, typed, answer(typed, found.models, load_reference()))


def _with_gpu_ids(typed: pl.DataFrame) -> pl.DataFrame:
    """gpu_id from gpu_name where only that is given; a name of no known card is an error without a stated memory."""
    named = typed.filter(pl.col("gpu_id").is_null() & pl.col("gpu_name").is_not_null())
    names = named["gpu_name"].unique(maintain_order=True).to_list()
    resolved = resolve([(name, None) for name in names]).select(gpu_name="raw_name", resolved_id="gpu_id", why="reason")
    joined = typed.join(resolved.unique("gpu_name"), on="gpu_name", how="left", validate="m:1", maintain_order="left")
    is_lost = pl.col("gpu_id").is_null() & pl.col("resolved_id").is_null() & pl.col("gpu_memory_bytes").is_null()
    lost = pl.when(is_lost & pl.col("gpu_name").is_not_null()).then(pl.format("gpu_name: {}", "why"))
    return joined.with_columns(error=pl.coalesce("error", lost), gpu_id=pl.coalesce("gpu_id", "resolved_id")).drop(
        "resolved_id", "why"
    )
