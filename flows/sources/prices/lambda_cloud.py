"""Lambda: `GET cloud.lambda.ai/api/v1/instance-types`, with LAMBDA_API_KEY. On demand only.

https://docs.lambda.ai/api/cloud. Cents an hour for the whole instance, the same in all regions. Regions are those with
room now: an instance without one is still sold, and keeps its price.
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

NAME = "Lambda instance types"
SOURCE_ID = "lambda"
MAX_AGE_HOURS = 24
NEEDS = "LAMBDA_API_KEY"

URL = "https://cloud.lambda.ai/api/v1/instance-types"


def fetch(http: "Http", since: Since) -> list[Payload]:
    answer = http.get(URL, headers={"Authorization": f"Bearer {asking.key(NEEDS)}"}, expect="json")
    return [asking.with_offers(Payload(name="instance-types", content=answer, url=URL), parse)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The map of instance types → offers in every region with room, or in none in particular."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL)

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        instance = row["instance_type"]
        specs = instance["specs"]
        gpu_count = reading.count(specs["gpus"])
        if not gpu_count:
            return
        offer = common | {
            "instance_type": instance["name"],
            "gpu_name_raw": cells.text(instance.get("gpu_description")) or instance["description"],
            "gpu_count": gpu_count,
            "vcpus": cells.number(specs.get("vcpus"), what="vcpus"),
            "host_memory_bytes": reading.host_bytes(specs.get("memory_gib")),
            "amount": reading.price(instance["price_cents_per_hour"], unit=reading.CENT, what="price_cents_per_hour"),
        }
        for region in reading.in_regions(r["name"] for r in row["regions_with_capacity_available"]):
            yield offer | {"region": region}

    return reading.parse_rows(content, lambda d: list(d["data"].values()), make, source_id=SOURCE_ID)
