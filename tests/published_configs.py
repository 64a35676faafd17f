"""The size-setting fields of public models' config.json (huggingface.co/<id>/blob/main/config.json), one a line."""

import copy
import json
from pathlib import Path
from typing import Any

from fitmart.estimator.anatomy import Anatomy
from fitmart.estimator.architectures import parse_config

_FILE = Path(__file__).with_suffix(".jsonl")
CONFIGS: dict[str, dict[str, Any]] = {
    row["model_id"]: row["config"] for row in map(json.loads, _FILE.read_text(encoding="utf-8").splitlines())
}


def config(model_id: str, **changes: Any) -> dict[str, Any]:
    """A copy of a model's config with some fields changed (at the top level)."""
    return {**copy.deepcopy(CONFIGS[model_id]), **changes}


def anatomy(model_id: str, **changes: Any) -> Anatomy:
    """The parsed anatomy of a model."""
    return parse_config(model_id, config(model_id, **changes))
