"""OpenRouter's list of models: `GET /api/v1/models`, no key.

Prices are strings, USD for one token; −1 stands for a router that chooses at run time; variants `:free` cost nothing
within limits. The figure is that of one host among several. `hugging_face_id`, where given, is the open model.
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

NAME = "OpenRouter models"
SOURCE_ID = "openrouter"
MAX_AGE_HOURS = 24
NEEDS = None

URL = "https://openrouter.ai/api/v1/models"


def fetch(http: "Http", since: Since) -> list[Payload]:
    return [Payload(name="models", content=http.get(URL, expect="json"), url=URL)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[TokenPrice]:
    """The list → one price a model; routers and free variants are rejected with that reason."""
    try:
        rows = json.loads(content)["data"]
        if not isinstance(rows, list):
            raise TypeError("data is no list")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return unreadable(SOURCE_ID, content, f"{name}: not a list of models ({error})")

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        model, pricing = row["id"], row["pricing"]
        if str(model).endswith(":free"):
            raise RowError(f"{model}: a free variant has no price")
        prompt = per_mtok(pricing["prompt"], what="prompt")
        completion = per_mtok(pricing["completion"], what="completion")
        if prompt is None or completion is None:
            raise RowError(f"{model}: no price, or one that its router sets at run time")
        yield {
            "provider_id": "openrouter",
            "model_name_raw": model,
            "model_id": cells.text(row.get("hugging_face_id")),
            "input_usd_per_mtok": prompt,
            "output_usd_per_mtok": completion,
            "cached_input_usd_per_mtok": per_mtok(pricing.get("input_cache_read"), what="input_cache_read"),
            "context_tokens": cells.whole(row.get("context_length"), what="context_length") or None,
            "source_id": SOURCE_ID,
            "origin": "aggregator",
            "observed_at": seen_at,
        }

    return sift(rows, make, TokenPrice, source_id=SOURCE_ID)
