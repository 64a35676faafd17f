"""All models that a build knows: private before the Hub's, the Hub's before the bundled ones."""

from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from fitmart.flows.landing import read_newest
from fitmart.flows.sources.contract import ModelRecord, Rejected
from fitmart.flows.sources.models import bundled, hub, local


@dataclass(frozen=True, slots=True)
class Models:
    """One record a model_id, ordered by it, and what could not be used."""

    records: list[ModelRecord]
    rejected: list[Rejected]


def read_models(
    landing_dir: Path,
    models_dir: Path | None = None,
    *,
    as_of: datetime | date | None = None,
    bundled_path: Path = bundled.PATH,
) -> Models:
    """The models as of a day, parsed now. Daily figures (downloads, likes, gate) come from the Hub's last listing."""
    own, own_rejected = local.read(models_dir)
    live, live_rejected, figures = _read_hub(landing_dir, as_of)
    shipped, shipped_rejected = bundled.read(bundled_path)
    chosen = {record.model_id: record for record in (*shipped, *live)}
    chosen = {model_id: _with_figures(record, figures.get(model_id)) for model_id, record in chosen.items()}
    chosen |= {record.model_id: record for record in own}
    return Models([chosen[name] for name in sorted(chosen)], own_rejected + live_rejected + shipped_rejected)


def _read_hub(
    landing_dir: Path, as_of: datetime | date | None
) -> tuple[list[ModelRecord], list[Rejected], dict[str, dict[str, Any]]]:
    reading = read_newest(landing_dir, hub.SOURCE_ID, as_of)
    rejected = [Rejected(source_id=hub.SOURCE_ID, raw_text="", reason=fault) for fault in reading.faults]
    records: list[ModelRecord] = []
    figures: dict[str, dict[str, Any]] = {}
    for payload in reading.payloads:
        if payload.landed.name == hub.LISTING:
            figures = hub.parse_listing(payload.content)
            continue
        parsed = hub.parse(payload.content, payload.landed.observed_at, payload.landed.name)
        records += [parsed] if isinstance(parsed, ModelRecord) else []
        rejected += [parsed] if isinstance(parsed, Rejected) else []
    return records, rejected, figures


def _with_figures(record: ModelRecord, figures: dict[str, Any] | None) -> ModelRecord:
    if not isinstance(figures, dict):
        return record
    daily = {"downloads": figures.get("downloads"), "likes": figures.get("likes")}
    return replace(record, metadata=record.metadata | daily | {"is_gated": bool(figures.get("gated"))})
