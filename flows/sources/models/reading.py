"""What the readers of model descriptions share. Not a source."""

import json
from typing import Any

_ESCAPED_HALF = r"\ud"  # \ud800 to \udfff: halves of a character, valid in pairs only


def read_object(text: str) -> dict[str, Any]:
    """A JSON object, with or without a byte order mark. ValueError with a reason for people."""
    try:
        value = json.loads(text.removeprefix("\ufeff"))
        if _ESCAPED_HALF in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("holds half a character (a lone surrogate)") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    except ValueError:  # Python's limit on the digits of a number
        raise ValueError("is not JSON: a number has too many digits") from None
    if not isinstance(value, dict):
        raise ValueError(f"holds {'null' if value is None else f'a {type(value).__name__}'}, not an object")
    return value


def cut(text: str, limit: int = 2000) -> str:
    """`text`, shortened for `rejected`."""
    return text if len(text) <= limit else text[:limit] + "…"
