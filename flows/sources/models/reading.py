"""What the readers of model descriptions share. Not a source."""

import json
from typing import Any


def read_object(text: str) -> dict[str, Any]:
    """A JSON object. ValueError with a reason for people."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"holds a {type(value).__name__}, not an object")
    return value


def cut(text: str, limit: int = 2000) -> str:
    """`text`, shortened for `rejected`."""
    return text if len(text) <= limit else text[:limit] + "…"
