"""The annotated config: each field the parser reads, with its value, meaning and effect on memory."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fitmart.estimator.architectures import fields_read
from fitmart.estimator.architectures.field_meanings import ALIASES, MEANINGS, OTHERWISE, SECTIONS

LONGEST_VALUE = 200


def annotate(config: Mapping[str, Any]) -> list[dict[str, str]]:
    """One row a field: field (dotted path), value (JSON, shortened), meaning, effect. Raises AnatomyError.

    Only fields that decide something are listed; what a tokenizer or a trainer reads is not.
    """
    return [
        {"field": path, "value": _value(value), "meaning": meaning, "effect": effect}
        for path, value in _leaves(fields_read(config), "")
        for meaning, effect in (explain(path),)
    ]


def explain(path: str) -> tuple[str, str]:
    """(meaning, effect on memory) of a field by its dotted path."""
    *parents, name = path.split(".")
    for section in ("vision_config", "audio_config"):
        if section in parents:
            return SECTIONS[section]
    known = MEANINGS.get(ALIASES.get(name, name))
    if known:
        return known
    return next((SECTIONS[parent] for parent in parents if parent in SECTIONS), OTHERWISE)


def _leaves(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        path = f"{prefix}{name}"
        if isinstance(inner, Mapping) and ALIASES.get(name, name) not in MEANINGS:
            yield from _leaves(inner, f"{path}.")
        else:
            yield path, inner


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST_VALUE:
        return text
    count = f" ({len(value)} entries)" if isinstance(value, list | dict) else ""
    return f"{text[: LONGEST_VALUE - 1]}…{count}"
