"""Everything a build starts from, parsed now: models, offers, token prices and the bundled tables, as frames.

Parsing runs at build, from landing, so that a mended parser or a new alias mends the past too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl

from fitmart.estimator.anatomy import Anatomy
from fitmart.estimator.architectures.annotate import annotate
from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import schema
from fitmart.estimator.reference import Models, Reference
from fitmart.flows.estimates import anatomy_of
from fitmart.flows.model_checks import check_models
from fitmart.flows.model_history import model_history
from fitmart.flows.models import read_models
from fitmart.flows.moments import utc_without_zone
from fitmart.flows.price_tables import CACHE, read_price_tables, rejected_frame
from fitmart.flows.sources.contract import ModelRecord, Rejected
from fitmart.flows.stored_files import stored_files
from fitmart.warehouse.snapshot import read_seed

# Tables that ship as they are.
SEED_TABLES = ("source", "precision", "engine", "engine_default", "engine_support", "launch_template", "provider")


@dataclass(frozen=True, slots=True)
class Catalog:
    """Dimension frames by table name, the anatomies beneath them, and what was rejected."""

    models: Models
    frames: dict[str, pl.DataFrame]
    stored_files: pl.DataFrame  # STORED_FILE_SCHEMA: files that serve a base model's footprint
    model_count: int


def read_catalog(
    landing_dir: Path,
    models_dir: Path | None,
    reference: Reference,
    built_at: datetime,
    *,
    as_of: date | None = None,
    include: Sequence[str] = (),
) -> Catalog:
    """All that is known at `built_at` (or, with `as_of`, what was known on that day).

    `include`: globs of the model ids wanted; none: all.
    """
    found = read_models(landing_dir, models_dir, as_of=as_of)
    wanted = [r for r in found.records if not include or any(fnmatchcase(r.model_id, glob) for glob in include)]
    records, anatomies, rejected = _read_anatomies(wanted)
    rejected = found.rejected + rejected
    models = Models.of(anatomies)
    prices = read_price_tables(landing_dir, models.models["model_id"], reference, built_at, as_of=as_of)
    rejected += prices.rejected
    table = _with_metadata(models.models, records)
    frames = {name: read_seed(name) for name in SEED_TABLES}
    frames |= {
        "gpu": read_seed("gpu").filter("is_released"),
        "model": table,
        "model_history": model_history(landing_dir, landing_dir.parent / CACHE, table, as_of=as_of),
        "model_tensor": models.tensors,
        "model_cache": models.caches,
        "model_check": check_models(records, anatomies),
        "config_field": _config_fields(records),
        "rejected": rejected_frame(rejected),
    }
    frames |= prices.frames
    return Catalog(models, frames, stored_files(records), len(anatomies))


def _read_anatomies(records: list[ModelRecord]) -> tuple[list[ModelRecord], list[Anatomy], list[Rejected]]:
    good: list[ModelRecord] = []
    anatomies: list[Anatomy] = []
    rejected: list[Rejected] = []
    for record in records:
        try:
            anatomies.append(anatomy_of(record))
            good.append(record)
        except FitmartError as error:
            rejected.append(Rejected(source_id=record.source_id, raw_text=record.model_id, reason=str(error)))
    return good, anatomies, rejected


def _with_metadata(models: pl.DataFrame, records: list[ModelRecord]) -> pl.DataFrame:
    """What the repository says of itself beside what its config says."""
    rows = [_metadata(record) for record in records]
    return models.join(pl.DataFrame(rows, schema=_METADATA), on="model_id", how="left", validate="1:1")


_METADATA = schema(
    model_id=pl.String,
    revision=pl.String,
    license=pl.String,
    is_gated=pl.Boolean,
    downloads=pl.Int64,
    likes=pl.Int64,
    released_on=pl.Date,
    base_model=pl.String,
    source_id=pl.String,
    observed_at=pl.Datetime("us"),
)


def _metadata(record: ModelRecord) -> dict[str, Any]:
    known = record.metadata
    released = known.get("released_on") or str(known.get("created_at") or "")[:10] or None
    return {
        "model_id": record.model_id,
        "revision": record.revision,
        "license": known.get("license"),
        "is_gated": known.get("is_gated"),
        "downloads": known.get("downloads"),
        "likes": known.get("likes"),
        "released_on": date.fromisoformat(str(released)) if released else None,
        "base_model": known.get("base_model"),
        "source_id": record.source_id,
        "observed_at": utc_without_zone(record.observed_at),
    }


def _config_fields(records: list[ModelRecord]) -> pl.DataFrame:
    """`config_field`: the annotated configs."""
    rows = [{"model_id": record.model_id} | row for record in records for row in annotate(record.config)]
    return pl.DataFrame(rows, schema=_FIELD_SCHEMA).rename({"value": "field_value"})


_FIELD_SCHEMA = schema(model_id=pl.String, field=pl.String, value=pl.String, meaning=pl.String, effect=pl.String)
