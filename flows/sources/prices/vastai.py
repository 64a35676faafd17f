"""Vast.ai: `POST console.vast.ai/api/v0/bundles/`, what hosts of the marketplace offer now.

https://docs.vast.ai/api-reference. The search answers without a key; VAST_API_KEY is sent where it is set.
`dph_base` is USD an hour for the whole offer without its disk, which is billed by the gigabyte; `min_bid` is where
interruptible rent begins, without disk as well. `gpu_ram` is MiB of one GPU, `cpu_ram` MB of the whole machine, of
which the offer has its share of the cores. Without `limit` 64 offers come, so the market is asked for by the number of
GPUs, and an answer as long as the limit is one that was cut.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.estimator.units import GB
from fitmart.flows.errors import TerminalError
from fitmart.flows.records import Offer, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Vast.ai offers"
SOURCE_ID = "vastai"
MAX_AGE_HOURS = 6
NEEDS = None

URL = "https://console.vast.ai/api/v0/bundles/"
LIMIT = 5000
MB = GB // 1000
SLICES: dict[str, dict[str, int]] = {"1": {"eq": 1}, "2": {"eq": 2}, "3-4": {"gte": 3, "lte": 4}, "5+": {"gte": 5}}


def fetch(http: "Http", since: Since) -> Iterator[Payload]:
    """All that can be rented, one answer for each slice of GPU counts."""

    headers = asking.optional_key("VAST_API_KEY", "Authorization", "Bearer {}")

    def ask(name: str) -> Payload:
        body = {
            "rentable": {"eq": True},
            "rented": {"eq": False},
            "num_gpus": SLICES[name],
            "type": "on-demand",
            "order": [["score", "desc"]],
            "limit": LIMIT,
        }
        payload = Payload(name=name, content=http.post(URL, headers=headers, body=body), url=URL)
        offers = reading.load(payload.content)
        if isinstance(offers, dict) and len(offers.get("offers") or ()) >= LIMIT:
            raise TerminalError(f"{LIMIT} offers, the most that was asked for: the rest is missing")
        return payload

    return asking.walk(list(SLICES), ask, parse, what="slices of the market")


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """One answer → offers, on demand and spot. The machine names the offer: its id lives as long as the host."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL) | {"tier": "marketplace"}

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        if row.get("rented") or row.get("rentable") is False or not row["num_gpus"]:
            return
        offer = common | {
            "instance_type": f"machine-{row.get('machine_id') or row['id']}",
            "gpu_name_raw": row["gpu_name"],
            "gpu_memory_gb": reading.of_one(row["gpu_ram"], unit=reading.GIB_PER_MIB),
            "gpu_count": reading.count(row["num_gpus"]),
            "vcpus": cells.number(row.get("cpu_cores_effective"), what="cpu_cores_effective"),
            "host_memory_bytes": _host_memory(row),
            "region": cells.text(row.get("geolocation")),
        }
        yield offer | {"amount": reading.price(row["dph_base"], what="dph_base")}
        if bid := reading.maybe_price(row.get("min_bid"), what="min_bid"):
            yield offer | {"amount": bid, "commitment": "spot"}

    return reading.parse_rows(content, reading.rows_at("offers"), make, source_id=SOURCE_ID)


def _host_memory(row: Mapping[str, Any]) -> int | None:
    """The offer's share of the machine's memory; None where the cores are not told."""
    memory = cells.exact(row.get("cpu_ram"), what="cpu_ram")
    cores = cells.exact(row.get("cpu_cores"), what="cpu_cores")
    mine = cells.exact(row.get("cpu_cores_effective"), what="cpu_cores_effective")
    return int(memory * mine / cores * MB) if memory and cores and mine else None
