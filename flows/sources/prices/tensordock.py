"""TensorDock: `GET dashboard.tensordock.com/api/v2/locations`, with TENSORDOCK_API_KEY. A marketplace.

https://dashboard.tensordock.com/api/docs/fetch-hostnodes. `price_per_hr` is USD for one GPU alone: cores, memory and
disk are billed on top, by the unit, so that these are prices of GPUs and not of machines.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.flows.records import Offer, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "TensorDock locations"
SOURCE_ID = "tensordock"
MAX_AGE_HOURS = 24
NEEDS = "TENSORDOCK_API_KEY"

URL = "https://dashboard.tensordock.com/api/v2/locations"


def fetch(http: "Http", since: Since) -> list[Payload]:
    answer = http.get(URL, headers={"Authorization": f"Bearer {asking.key(NEEDS)}"}, expect="json")
    return [asking.with_offers(Payload(name="locations", content=answer, url=URL), parse)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The locations → one offer for each kind of GPU in each of them, without its host."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL) | {"price_scope": "gpu_only", "tier": "marketplace"}

    def rows(document: Any) -> list[Any]:
        places = reading.listed(document, "data", "locations")
        return [(place, gpu) for place in places for gpu in reading.listed(place, "gpus")]

    def make(row: tuple[Any, Any]) -> Iterator[Mapping[str, Any]]:
        place, gpu = row
        where = (cells.text(place.get(part)) for part in ("city", "stateprovince", "country"))
        yield common | {
            "instance_type": gpu["v0Name"],
            "gpu_name_raw": cells.text(gpu.get("displayName")) or gpu["v0Name"],
            "gpu_count": 1,
            "region": ", ".join(part for part in where if part) or None,
            "amount": reading.price(gpu["price_per_hr"], what="price_per_hr"),
        }

    return reading.parse_rows(content, rows, make, source_id=SOURCE_ID)
