"""Shadeform: `GET api.shadeform.ai/v1/instances/types`, with SHADEFORM_API_KEY. Machines of other clouds, resold.

https://docs.shadeform.ai/api-reference/instances/instances-types. `hourly_price` is cents for the whole instance, and
Shadeform's price, not the cloud's: such an offer is never taken for the cloud's own, whose name leads its type. Memory
is GB, that of the GPU for one. No spot.
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

NAME = "Shadeform instance types"
SOURCE_ID = "shadeform"
MAX_AGE_HOURS = 24
NEEDS = "SHADEFORM_API_KEY"

URL = "https://api.shadeform.ai/v1/instances/types"
PRODUCT_KINDS = {"vm": "vm", "container": "vm", "baremetal": "bare_metal"}


def fetch(http: "Http", since: Since) -> list[Payload]:
    answer = http.get(URL, headers={"X-API-KEY": asking.key(NEEDS)}, expect="json")
    return [asking.with_offers(Payload(name="types", content=answer, url=URL), parse)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The types → offers in every region, room or not; types without a GPU are none."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL) | {"seller": SOURCE_ID}

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        machine = row["configuration"]
        gpu_count = reading.count(machine["num_gpus"])
        if not gpu_count:
            return
        offer = common | {
            "instance_type": f"{row['cloud']}/{row['cloud_instance_type']}",
            "gpu_name_raw": machine["gpu_type"],
            "gpu_memory_gb": cells.number(machine.get("vram_per_gpu_in_gb"), what="vram_per_gpu_in_gb") or None,
            "gpu_count": gpu_count,
            "product_kind": PRODUCT_KINDS[row.get("deployment_type") or "vm"],
            "vcpus": cells.number(machine.get("vcpus"), what="vcpus"),
            "host_memory_bytes": reading.host_bytes(machine.get("memory_in_gb")),
            "amount": reading.price(row["hourly_price"], unit=reading.CENT, what="hourly_price"),
        }
        for region in reading.in_regions(place["region"] for place in row["availability"]):
            yield offer | {"region": region}

    return reading.parse_rows(content, reading.rows_at("instance_types"), make, source_id=SOURCE_ID)
