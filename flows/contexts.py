"""Contexts that a model's card documents beyond its config: scaling that is asked for when serving."""

import re
from dataclasses import replace
from functools import cache

from fitmart.estimator.anatomy import Anatomy
from fitmart.warehouse.snapshot import read_seed


@cache
def _extensions() -> tuple[tuple[re.Pattern[str], int], ...]:
    table = read_seed("context_extension")
    return tuple(
        (re.compile(pattern), int(tokens))
        for pattern, tokens in table.select("model_pattern", "extended_context_tokens").iter_rows()
    )


def with_extension(anatomy: Anatomy) -> Anatomy:
    """The anatomy with `extended_context_tokens` raised to what the card documents, where it does."""
    facts = anatomy.facts
    documented = [tokens for pattern, tokens in _extensions() if pattern.search(facts.model_id)]
    known = max([facts.extended_context_tokens or facts.max_context_tokens or 0, *documented])
    return replace(anatomy, facts=replace(facts, extended_context_tokens=known or None)) if documented else anatomy
