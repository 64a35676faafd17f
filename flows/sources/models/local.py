"""Private models of a folder: `<org>__<name>.json` or `.gguf`, or `<org>__<name>/` with config.json, its side files
and, if they are there, the weights (safetensors or GGUF), of which only the headers are read.

They are never landed: each build reads them as they are.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fitmart.estimator.architectures.headers_gguf_config import gguf_config
from fitmart.estimator.architectures.headers_records import Header, HeaderError
from fitmart.flows.headers import headers_of_folder, read_header
from fitmart.flows.settings import Settings
from fitmart.flows.sources.contract import ModelRecord, Rejected
from fitmart.flows.sources.models.reading import cut, read_object

NAME = "Private models"
SOURCE_ID = "local-models"
MAX_AGE_HOURS = 24 * 366
SEPARATOR = "__"
SIDE_FILES = {"quant_config": "hf_quant_config.json", "generation_config": "generation_config.json"}


def read(models_dir: Path | None) -> tuple[list[ModelRecord], list[Rejected]]:
    """Every model of the folder as a record, or one clear line why not."""
    records: list[ModelRecord] = []
    rejected: list[Rejected] = []
    for path in _entries(models_dir, rejected):
        try:
            records.append(_read_model(path, rejected))
        except (OSError, ValueError, HeaderError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            rejected.append(_reject(path, f"private model {path}: {why}"))
    seen: dict[str, ModelRecord] = {}
    for record in records:
        if seen.setdefault(record.model_id, record) is not record:
            rejected.append(_reject(Path(record.model_id), f"private model {record.model_id}: there twice"))
    return list(seen.values()), rejected


def survey(settings: Settings) -> tuple[int, list[Rejected]]:
    """How many private models there are, and those that cannot be read."""
    records, rejected = read(settings.models_dir)
    return len(records), rejected


def _entries(models_dir: Path | None, rejected: list[Rejected]) -> list[Path]:
    if models_dir is None:
        return []
    try:
        entries = sorted(path for path in models_dir.iterdir() if not path.name.startswith("."))
    except OSError as error:
        rejected.append(_reject(models_dir, f"models folder {models_dir}: {error.strerror}"))
        return []
    return [path for path in entries if path.is_dir() or path.suffix in (".json", ".gguf")]


def _reject(path: Path, reason: str) -> Rejected:
    return Rejected(source_id=SOURCE_ID, raw_text=str(path), reason=cut(reason))


def _read_model(path: Path, rejected: list[Rejected]) -> ModelRecord:
    name = path.name if path.is_dir() else path.stem
    org, separator, rest = name.partition(SEPARATOR)
    if not (org and separator and rest):
        raise ValueError(f"the name must be <org>{SEPARATOR}<name>")
    model_id, headers = f"{org}/{rest}", _read_headers(path, rejected)
    main = path / "config.json" if path.is_dir() else path
    if headers and headers[0].container == "gguf" and not (main.suffix == ".json" and main.exists()):
        return ModelRecord(
            model_id=model_id,
            source_id=SOURCE_ID,
            observed_at=_modified_at(path),
            revision=None,
            config=gguf_config(model_id, headers),
            headers=headers,
        )
    side: dict[str, Any] = {}
    for field, file in SIDE_FILES.items() if path.is_dir() else ():
        if (path / file).exists():
            side[field] = _read_json(path / file)
    return ModelRecord(
        model_id=model_id,
        source_id=SOURCE_ID,
        observed_at=_modified_at(main),
        revision=None,
        config=_read_json(main),
        headers=headers,
        **side,
    )


def _read_headers(path: Path, rejected: list[Rejected]) -> tuple[Header, ...]:
    """The headers beside a config. Broken ones are named, and the config serves alone; a lone GGUF must be whole."""
    if path.suffix == ".json":
        return ()
    try:
        return headers_of_folder(path) if path.is_dir() else (read_header(path),)
    except HeaderError as error:
        if not (path / "config.json").exists():
            raise
        rejected.append(_reject(path, f"private model {error}"))
        return ()


def _modified_at(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except FileNotFoundError:
        raise ValueError(f"has no {path.name}") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return read_object(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not UTF-8 text") from None
    except ValueError as error:
        raise ValueError(f"{path.name} {error}") from None
