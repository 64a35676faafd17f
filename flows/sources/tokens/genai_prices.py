"""Pydantic's genai-prices: a list of providers with their models, `prices/new_data/v2/data.json` of the repository.

(`prices/data.json` of older clients went stale when the path moved, pydantic/genai-prices#703.) Prices are USD for a
million tokens: a number, or `{base, tiers}` by context. `prices` may be a list with constraints, a start date or a time
of day; the last one that holds applies. The date it was seen decides; of times of day the base price is taken.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from fitmart.flows.records import RowError, Sifted, TokenPrice, sift, unreadable
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "genai-prices"
SOURCE_ID = "genai-prices"
MAX_AGE_HOURS = 168
NEEDS = None

URL = "https://raw.githubusercontent.com/pydantic/genai-prices/refs/heads/main/prices/new_data/v2/data.json"


def fetch(http: "Http", since: Since) -> list[Payload]:
    return [Payload(name="data.json", content=http.get(URL, expect="json"), url=URL)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[TokenPrice]:
    """The list → one price a provider and model, of the day it was seen."""
    try:
        providers = json.loads(content)
        pairs = [(p["id"], model) for p in providers for model in p.get("models") or ()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return unreadable(SOURCE_ID, content, f"{name}: not a list of providers ({error})")

    def make(pair: tuple[str, Any]) -> Iterator[Mapping[str, Any]]:
        provider, model = pair
        prices, notes = _of_day(model["prices"], seen_at.date())
        if "input_mtok" not in prices:
            return  # billed by the request, image or second
        billed = [field for field in ("input_mtok", "output_mtok") if field in prices]
        values = {field: _first_tier(prices[field], notes) for field in billed}
        if not all(values.values()):
            raise RowError(f"{model['id']}: a price of zero")
        yield {
            "provider_id": provider,
            "model_name_raw": model["id"],
            "input_usd_per_mtok": values["input_mtok"],
            "output_usd_per_mtok": values.get("output_mtok"),
            "cached_input_usd_per_mtok": _first_tier(prices.get("cache_read_mtok"), []),
            "context_tokens": cells.whole(model.get("context_window"), what="context_window") or None,
            "note": "; ".join(dict.fromkeys(notes)) or None,
            "source_id": SOURCE_ID,
            "origin": "aggregator",
            "observed_at": seen_at,
        }

    return sift(pairs, make, TokenPrice, source_id=SOURCE_ID)


def _of_day(prices: Any, day: date) -> tuple[Mapping[str, Any], list[str]]:
    """The prices in force on `day`, with what they leave out."""
    if isinstance(prices, dict):
        return prices, []
    chosen, notes = prices[0]["prices"], []
    for option in prices:
        constraint = option.get("constraint") or {}
        if "start_date" in constraint:
            if date.fromisoformat(constraint["start_date"]) <= day:
                chosen = option["prices"]
        elif constraint:
            notes.append("another price at some times of day")
        else:
            chosen = option["prices"]
    return chosen, notes


def _first_tier(price: Any, notes: list[str]) -> Any:
    if isinstance(price, dict):
        notes.append("first tier")
        price = price["base"]
    return cells.money(price, what="price")
