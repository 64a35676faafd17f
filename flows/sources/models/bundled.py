"""The bundled snapshot of model configs: what serves until, and wherever, the Hub has not been reached.

`warehouse/seeds/model_config.jsonl`, one model a line: {"model_id", "revision", "source_id", "observed_on", "license",
"released_on", "base_model", "task", "config": {…}, "quant_config": {…}}; the last is optional.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fitmart.flows.settings import Settings
from fitmart.flows.sources.contract import ModelRecord, Rejected
from fitmart.flows.sources.models.reading import cut, read_object

NAME = "Bundled model configs"
SOURCE_ID = "bundled-models"
MAX_AGE_HOURS = 24 * 366
PATH = Path(__file__).resolve().parents[3] / "warehouse" / "seeds" / "model_config.jsonl"


def read(path: Path = PATH) -> tuple[list[ModelRecord], list[Rejected]]:
    """Every line as a record, or the reason why not. No file: nothing."""
    records: list[ModelRecord] = []
    rejected: list[Rejected] = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            records.append(_parse(read_object(line)))
        except (ValueError, TypeError, KeyError) as error:
            why = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            rejected.append(
                Rejected(source_id=SOURCE_ID, raw_text=cut(line), reason=f"{path.name} line {number}: {why}")
            )
    return records, rejected


def survey(settings: Settings) -> tuple[int, list[Rejected]]:
    """How many models are bundled, and the lines that cannot be read."""
    records, rejected = read()
    return len(records), rejected


def list_repositories(path: Path = PATH) -> list[str]:
    """The repositories to follow on the Hub: those that are bundled."""
    return [record.model_id for record in read(path)[0] if "/" in record.model_id]


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    return [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]


def _parse(row: dict[str, Any]) -> ModelRecord:
    config, quant_config = row["config"], row.get("quant_config")
    if not isinstance(config, dict) or not isinstance(quant_config, dict | None):
        raise ValueError("config and quant_config must be objects")
    return ModelRecord(
        model_id=str(row["model_id"]),
        source_id=str(row.get("source_id") or SOURCE_ID),
        observed_at=datetime.fromisoformat(row["observed_on"]).replace(tzinfo=UTC),
        revision=row.get("revision"),
        config=config,
        quant_config=quant_config,
        metadata={name: row.get(name) for name in ("license", "released_on", "base_model", "task")},
    )
