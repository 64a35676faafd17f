"""LiteLLM's price map: one JSON object, model key → prices and limits, kept by hand in BerriAI/litellm.

Prices are USD for one token. The key is the model's name, mostly behind `<provider>/`. Zero means free or unknown.
Prices above 128k or 200k tokens stand in fields of their own; the first tier is taken. `sample_spec` is documentation.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.flows.records import RowError, Sifted, TokenPrice, sift, unreadable
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.tokens.units import per_mtok

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "LiteLLM price map"
SOURCE_ID = "litellm"
MAX_AGE_HOURS = 168
NEEDS = None

URL = "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
TEXT_MODES = frozenset({"chat", "completion", "responses"})
DOCUMENTATION = "sample_spec"


def fetch(http: "Http", since: Since) -> list[Payload]:
    return [Payload(name="model_prices.json", content=http.get(URL, expect="json"), url=URL)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[TokenPrice]:
    """The map → one price a key of a text model; embeddings, images and audio are no rows of ours."""
    try:
        table = json.loads(content)
        if not isinstance(table, dict):
            raise TypeError("no object")
    except (ValueError, TypeError, RecursionError) as error:
        return unreadable(SOURCE_ID, content, f"{name}: not a map of models ({error})")

    def make(item: tuple[str, Any]) -> Iterator[Mapping[str, Any]]:
        key, row = item
        if key == DOCUMENTATION or row.get("mode") not in TEXT_MODES:
            return
        prompt = per_mtok(row.get("input_cost_per_token"), what="input_cost_per_token")
        completion = per_mtok(row.get("output_cost_per_token"), what="output_cost_per_token")
        if not prompt or not completion:
            raise RowError(f"{key}: no price (zero means free or unknown)")
        notes = [f"retires {row['deprecation_date']}"] if cells.text(row.get("deprecation_date")) else []
        notes += ["first tier"] if any("_above_" in field for field in row) else []
        yield {
            "provider_id": row["litellm_provider"],
            "model_name_raw": _model(key, row["litellm_provider"]),
            "input_usd_per_mtok": prompt,
            "output_usd_per_mtok": completion,
            "cached_input_usd_per_mtok": per_mtok(row.get("cache_read_input_token_cost"), what="cache_read"),
            "context_tokens": _context(row.get("max_input_tokens")),
            "note": "; ".join(notes) or None,
            "source_id": SOURCE_ID,
            "origin": "aggregator",
            "observed_at": seen_at,
        }

    return sift(table.items(), make, TokenPrice, source_id=SOURCE_ID)


def _model(key: str, provider: str) -> str:
    """The key without the provider before it."""
    return key.removeprefix(f"{provider}/")


def _context(cell: Any) -> int | None:
    """Tokens; a few rows hold a sentence instead."""
    try:
        return cells.whole(cell, what="max_input_tokens") or None
    except RowError:
        return None
