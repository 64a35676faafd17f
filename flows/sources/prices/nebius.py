"""Nebius: its own prices, by way of the one file about it that dstack publishes every hour; no key.

Nebius quotes through gRPC to signed-in service accounts only (https://docs.nebius.com/api), and its price page has no
data behind it. dstack asks that API and publishes the answer as `nebius.csv` in gpuhunt's bucket, which is read here as
a source of its own, with its own age and failures. The offers are an aggregator's word, and say so.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from fitmart.flows.records import Offer, Sifted
from fitmart.flows.sources.contract import Payload, Rejected, Since
from fitmart.flows.sources.prices import asking, gpuhunt

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Nebius by way of gpuhunt"
SOURCE_ID = "nebius"
MAX_AGE_HOURS = 48
NEEDS = None


def fetch(http: "Http", since: Since) -> Iterator[Payload]:
    """The version file and, where it is a new one, the zip."""
    for payload in gpuhunt.fetch_provider(http, since, SOURCE_ID):
        yield payload if payload.name.endswith("/version") else asking.with_offers(payload, parse)


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The zip → offers, as gpuhunt's own parser reads them."""
    good, rejected = gpuhunt.parse(content, seen_at, name)
    return Sifted(
        [offer.model_copy(update={"source_id": SOURCE_ID}) for offer in good],
        [Rejected(source_id=SOURCE_ID, raw_text=r.raw_text, reason=r.reason) for r in rejected],
    )
