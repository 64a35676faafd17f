"""The bundled snapshot, rebuilt from what has landed: for maintainers, before a release."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from fitmart.estimator.anatomy import AnatomyError
from fitmart.estimator.architectures import fields_read, parse_config
from fitmart.estimator.reference import Reference
from fitmart.flows.catalog import read_catalog
from fitmart.flows.models import read_models
from fitmart.flows.sources.contract import ModelRecord
from fitmart.warehouse.files import replacing
from fitmart.warehouse.snapshot import SEED_SCHEMAS, read_seed

_METADATA = ("license", "released_on", "base_model", "task")
_LATER_EXPERT = re.compile(r"experts\.[1-9]\d*\.")


def write_seeds(landing_dir: Path, folder: Path, reference: Reference) -> dict[str, int]:
    """Write model_config.jsonl, offer.csv and api_price.csv to `folder`; rows by file.

    Models: the config fields that the parser reads, never a count or a size. Prices: what stands now, of sources whose
    rows may be handed on. Each file is replaced whole.
    """
    built_at = datetime.now(UTC)
    models = [line for record in read_models(landing_dir).records if (line := _model_line(record))]
    catalog = read_catalog(landing_dir, None, reference, built_at)
    shippable = read_seed("source").filter("may_ship")["source_id"].to_list()
    counts = {"model_config.jsonl": len(models)}
    with replacing(folder / "model_config.jsonl") as temporary:
        temporary.write_text("".join(f"{line}\n" for line in models), encoding="utf-8")
    for name in ("offer", "api_price"):
        rows = _seed_rows(catalog.frames[name], SEED_SCHEMAS[name]).filter(pl.col("source_id").is_in(shippable))
        with replacing(folder / f"{name}.csv") as temporary:
            rows.write_csv(temporary)
        counts[f"{name}.csv"] = rows.height
    return counts


def _model_line(record: ModelRecord) -> str | None:
    """One line of model_config.jsonl; None for a model that cannot be read."""
    try:
        anatomy = parse_config(record.model_id, record.config, quant_config=record.quant_config)
    except AnatomyError:
        return None
    config = _one_expert(fields_read(record.config))
    quant_config = _one_expert(record.quant_config)
    if parse_config(record.model_id, config, quant_config=quant_config) != anatomy:
        config, quant_config = fields_read(record.config), record.quant_config
    known = {name: str(value) for name in _METADATA if (value := record.metadata.get(name))}
    line = {
        "model_id": record.model_id,
        "revision": record.revision,
        "source_id": record.source_id,
        "observed_on": record.observed_at.date().isoformat(),
        **known,
        "config": config,
        "quant_config": quant_config,
    }
    return json.dumps({k: v for k, v in line.items() if v is not None}, separators=(",", ":"), ensure_ascii=False)


def _one_expert(value: Any) -> Any:
    """Quantization lists name every expert of every layer; the first of a layer says it for all."""
    if isinstance(value, Mapping):
        return {k: _one_expert(v) for k, v in value.items() if not _LATER_EXPERT.search(k)}
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return [v for v in value if not _LATER_EXPERT.search(v)]
    return value


def _seed_rows(frame: pl.DataFrame, want: pl.Schema) -> pl.DataFrame:
    """Catalog rows as seed rows: days for moments, the columns of the seed."""
    rows = frame.with_columns(observed_on=pl.col("observed_at").dt.date())
    return rows.select(
        (pl.col(name).cast(dtype) if name in rows.columns else pl.lit(None, dtype).alias(name))
        for name, dtype in want.items()
    )
