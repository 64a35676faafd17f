"""Vultr: `GET api.vultr.com/v2/plans` and `/v2/plans-metal`, no key. Machines, bare metal and preemptible.

https://www.vultr.com/api/#tag/plans. A price is USD an hour for the whole plan; a month is another number of hours for
machines than for bare metal, and is not used. `gpu_vram_gb` is the total, below a card's own memory a share of one
card. Bare metal, and the plans of type vdm, may lack all fields of the GPU: their id says what they are.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fitmart.estimator.units import MIB
from fitmart.flows.records import Offer, RowError, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Vultr plans"
SOURCE_ID = "vultr"
MAX_AGE_HOURS = 24
NEEDS = None

BASE_URL = "https://api.vultr.com/v2"
LISTS = {"plans": ("plans", "type=all&"), "plans-metal": ("plans_metal", "")}  # endpoint -> key of its list, question
METAL_ID = re.compile(r"^vbm-\d+c-\d+gb(?:-(?P<count>\d+))?-(?P<gpu>[a-z]+\d+\w*)-gpu$")
MACHINE_ID = re.compile(r"^vcg-(?P<gpu>[a-z0-9]+)-\d+c-\d+g-(?P<total>\d+)vram$")
# Memory of the cards as Vultr counts it, GB: what a plan's total is divided by.
CARD_GB = {
    **{"a16": 16, "a40": 48, "l40s": 48, "a100": 80, "h100": 80, "gh200": 96, "h200": 141},
    **{"b200": 192, "b300": 288, "mi300x": 192, "mi325x": 256, "mi355x": 288},
}

NAMES = {"l40": "L40S"}  # the only card of that chip at Vultr
COUNTS = {"vcg-mi325x-252c-2872g-1536vram": 8}  # its memory is not that of eight cards of 256 GB, which it has


def fetch(http: "Http", since: Since) -> list[Payload]:
    """Both lists, all pages of each."""
    return [asking.with_offers(_ask(http, endpoint), parse) for endpoint in LISTS]


def _ask(http: "Http", endpoint: str) -> Payload:
    url = f"{BASE_URL}/{endpoint}?{LISTS[endpoint][1]}per_page=500"

    def next_url(page: Any, number: int) -> str | None:
        cursor = page["meta"]["links"]["next"]
        return f"{url}&cursor={quote(cursor, safe='')}" if cursor else None

    return Payload(name=endpoint, content=asking.get_pages(http, url, next_url=next_url), url=url)


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The list called "plans" or "plans-metal" → offers in every location; plans without a GPU are none."""
    is_metal = name == "plans-metal"
    common = reading.direct(SOURCE_ID, seen_at, url=f"{BASE_URL}/{name or 'plans'}")

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        plan = str(row["id"])
        if not (plan.startswith("vcg-") or row.get("gpu_type") or plan.endswith("-gpu")):
            return
        gpu, gpu_count, memory_gb = _metal_gpu(row) if is_metal else _machine_gpu(row)
        offer = common | {
            "instance_type": plan,
            "gpu_name_raw": gpu,
            "gpu_memory_gb": memory_gb,
            "gpu_count": gpu_count,
            "product_kind": "bare_metal" if is_metal else "vm",
            "vcpus": cells.number(row.get("cpu_threads" if is_metal else "vcpu_count"), what="vCPUs"),
            "host_memory_bytes": reading.host_bytes(row.get("ram"), MIB),
        }
        commitments: list[dict[str, Any]] = []
        if row.get("deploy_ondemand") is not False:
            commitments.append({"amount": reading.price(row["hourly_cost"], what="hourly_cost")})
        # The field is there for plans that cannot be had so, at zero or at the full price.
        spot = reading.maybe_price(row.get("hourly_cost_preemptible"), what="hourly_cost_preemptible")
        if spot and row.get("deploy_preemptible") is not False:
            commitments.append({"amount": spot, "commitment": "spot"})
        for region in reading.in_regions(row["locations"]):
            for commitment in commitments:
                yield offer | commitment | {"region": region}

    return reading.parse_rows(content, reading.rows_at(LISTS.get(name, LISTS["plans"])[0]), make, source_id=SOURCE_ID)


def _machine_gpu(row: Mapping[str, Any]) -> tuple[str, int, float | None]:
    """Name, number and memory of the GPUs of a machine."""
    found = MACHINE_ID.match(row["id"])
    name = str(row.get("gpu_type") or (found["gpu"] if found else "")).removeprefix("NVIDIA_").removeprefix("AMD_")
    total = cells.number(row.get("gpu_vram_gb") or (found["total"] if found else None), what="gpu_vram_gb")
    card_gb = CARD_GB.get(re.split(r"[_\s-]", name.lower())[0])
    if not name or not total or not card_gb:
        raise RowError(f"{row['id']}: no GPU in it that is known ({name or 'without a name'})")
    if total < card_gb:
        raise RowError(f"{row['id']}: {total:g} of {card_gb} GB, a share of a GPU")
    gpu_count = reading.count(row.get("gpu_count") or COUNTS.get(row["id"]) or round(total / card_gb))
    return name, gpu_count, None if row["id"] in COUNTS else total / gpu_count


def _metal_gpu(row: Mapping[str, Any]) -> tuple[str, int, float | None]:
    found = METAL_ID.match(row["id"])
    if not found:
        raise RowError(f"{row['id']}: no GPU in the name of the plan")
    gpu_count = reading.count(row.get("gpu_count") or found["count"] or 1)
    return NAMES.get(found["gpu"], found["gpu"]), gpu_count, reading.of_one(row.get("gpu_vram_gb"), gpu_count)
