"""Verda, formerly DataCrunch: `GET api.verda.com/v1/instance-types`, with VERDA_CLIENT_ID and VERDA_CLIENT_SECRET.

https://api.verda.com/v1/docs. The pair buys a token for some minutes (OAuth 2.0, client credentials). Prices are text,
for the whole instance and hour, in the currency beside them; `gpu_memory` is the total. Places are known only where
there is room now (`instance-availability`, of on demand and spot apart): an instance without one keeps its price.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.flows.errors import TerminalError
from fitmart.flows.records import Offer, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Verda instance types"
SOURCE_ID = "verda"
MAX_AGE_HOURS = 24
NEEDS = "VERDA_CLIENT_SECRET"

BASE_URL = "https://api.verda.com/v1"
URL = f"{BASE_URL}/instance-types"
PLACES_URL = f"{BASE_URL}/instance-availability"


def fetch(http: "Http", since: Since) -> list[Payload]:
    """Types, and where there is room on demand and spot, as one payload."""
    headers = {"Authorization": f"Bearer {_token(http)}"}
    documents = [
        http.get(URL, headers=headers, expect="json"),
        *(http.get(f"{PLACES_URL}?is_spot={spot}", headers=headers, expect="json") for spot in ("false", "true")),
    ]
    return [asking.with_offers(Payload(name="instance-types", content=asking.join(documents), url=URL), parse)]


def _token(http: "Http") -> str:
    body = {
        "grant_type": "client_credentials",
        "client_id": asking.key("VERDA_CLIENT_ID"),
        "client_secret": asking.key(NEEDS),
    }
    try:
        return str(json.loads(http.post(f"{BASE_URL}/oauth2/token", body=body))["access_token"])
    except (KeyError, TypeError) as error:
        raise TerminalError("api.verda.com/v1/oauth2/token: the answer holds no token") from error


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """[types, places on demand, places of spot] → offers wherever there is room, or in no place in particular."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL)
    places: dict[str, list[Any]] = {}

    def rows(document: Any) -> list[Any]:
        types, places["on_demand"], places["spot"] = document
        if not isinstance(types, list):
            raise TypeError("instance-types is no list")
        return types

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        gpu_count = reading.count(row["gpu"]["number_of_gpus"])
        if not gpu_count:
            return
        instance = row["instance_type"]
        offer = common | {
            "instance_type": instance,
            "gpu_name_raw": cells.text(row.get("name")) or row["model"],
            "gpu_memory_gb": reading.of_one((row.get("gpu_memory") or {}).get("size_in_gigabytes"), gpu_count),
            "gpu_count": gpu_count,
            "vcpus": cells.number((row.get("cpu") or {}).get("number_of_cores"), what="cores"),
            "host_memory_bytes": reading.host_bytes((row.get("memory") or {}).get("size_in_gigabytes")),
            "currency": str(row["currency"]).upper(),
        }
        prices = {
            "on_demand": reading.price(row["price_per_hour"], what="price_per_hour"),
            "spot": reading.maybe_price(row.get("spot_price"), what="spot_price"),
        }
        for commitment, amount in prices.items():
            for region in reading.in_regions(_with_room(places[commitment], instance)) if amount else ():
                yield offer | {"commitment": commitment, "amount": amount, "region": region}

    return reading.parse_rows(content, rows, make, source_id=SOURCE_ID)


def _with_room(places: list[Any], instance: str) -> list[str]:
    return [place["location_code"] for place in places if instance in place["availabilities"]]
