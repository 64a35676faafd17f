"""Lium: `GET lium.io/api/public/v1/nodes`, no key. Nodes of a marketplace that can be rented now.

https://docs.lium.io/developers/public-nodes-feed: fields are only ever added, and only `id` and `rent_url` are always
there. A price is USD an hour for one GPU, of at least `min_rentable_gpu_count`: most nodes are let whole.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fitmart.flows.records import Offer, RowError, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Lium nodes"
SOURCE_ID = "lium"
MAX_AGE_HOURS = 6
NEEDS = None

URL = "https://lium.io/api/public/v1/nodes"


def fetch(http: "Http", since: Since) -> list[Payload]:
    return [asking.with_offers(Payload(name="nodes", content=http.get(URL, expect="json"), url=URL), parse)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The nodes → offers from the smallest number of GPUs to be had to all that are free."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL) | {"price_scope": "per_gpu"}

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        gpu_count = reading.count(row["gpu_count"])
        free = min(reading.count(row["available_gpu_count"]), gpu_count)
        # Where it is not said, only the whole node is a safe order.
        least = reading.count(row.get("min_rentable_gpu_count") or gpu_count)
        if free < least or not free:
            raise RowError(f"{free} of {gpu_count} GPUs are free, {least} is the smallest order")
        share = least / gpu_count
        cpus = cells.number(row.get("cpu_count"), what="cpu_count")
        memory = reading.host_bytes(row.get("ram_gb"))
        tier = cells.text(row.get("tier")) or "marketplace"
        is_spot = tier == "spot"
        yield common | {
            "instance_type": f"node-{row['id']}",
            "gpu_name_raw": row["gpu_model"],
            "gpu_memory_gb": cells.number(row.get("gpu_memory_gb"), what="gpu_memory_gb") or None,
            "gpu_count": least,
            "min_gpu_count": least,
            "max_gpu_count": free,
            "vcpus": None if cpus is None else cpus * share,
            "host_memory_bytes": None if memory is None else int(memory * share),
            "region": cells.text(row.get("region")),
            "country": cells.text(row.get("country_code")),
            "tier": "marketplace" if is_spot else tier,
            "commitment": "spot" if is_spot else "on_demand",
            "amount": reading.price(row["price_per_gpu_hour"], unit=Decimal(least), what="price_per_gpu_hour"),
            "url": cells.text(row.get("rent_url")) or URL,
        }

    return reading.parse_rows(content, reading.rows_at("nodes"), make, source_id=SOURCE_ID)
