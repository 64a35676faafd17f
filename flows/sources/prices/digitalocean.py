"""DigitalOcean: `GET api.digitalocean.com/v2/sizes`, with DIGITALOCEAN_TOKEN. On demand only.

https://docs.digitalocean.com/reference/api/digitalocean/#tag/Sizes. USD an hour for the whole machine. `gpu_info.vram`
is the total of its GPUs, `memory` MiB. A size without regions is sold out or not sold yet; its price is kept.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.estimator.units import MIB
from fitmart.flows.records import Offer, RowError, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "DigitalOcean sizes"
SOURCE_ID = "digitalocean"
MAX_AGE_HOURS = 48
NEEDS = "DIGITALOCEAN_TOKEN"

URL = "https://api.digitalocean.com/v2/sizes"


def fetch(http: "Http", since: Since) -> list[Payload]:
    """All pages of the list."""
    headers = {"Authorization": f"Bearer {asking.key(NEEDS)}"}
    content = asking.get_pages(http, f"{URL}?per_page=200", next_url=_next_page, headers=headers)
    return [asking.with_offers(Payload(name="sizes", content=content, url=URL), parse)]


def _next_page(page: Any, number: int) -> str | None:
    return (page["links"].get("pages") or {}).get("next")


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The sizes → offers in every region; sizes without a GPU are none."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL)

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        gpu = row.get("gpu_info")
        if not gpu:
            return
        gpu_count = reading.count(gpu["count"])
        if not gpu_count:
            raise RowError(f"{row['slug']}: {gpu['model']} without a count")
        vram = gpu.get("vram") or {}
        if vram and vram["unit"] != "gib":
            raise RowError(f"{row['slug']}: GPU memory in {vram['unit']}")
        offer = common | {
            "instance_type": row["slug"],
            "gpu_name_raw": gpu["model"],
            "gpu_memory_gb": reading.of_one(vram.get("amount"), gpu_count),
            "gpu_count": gpu_count,
            "vcpus": cells.number(row.get("vcpus"), what="vcpus"),
            "host_memory_bytes": reading.host_bytes(row.get("memory"), MIB),
            "amount": reading.price(row["price_hourly"], what="price_hourly"),
        }
        for region in reading.in_regions(row["regions"]):
            yield offer | {"region": region}

    return reading.parse_rows(content, reading.rows_at("sizes"), make, source_id=SOURCE_ID)
