"""Scaleway: `GET api.scaleway.com/instance/v1/zones/{zone}/products/servers`. Euro, without tax; on demand only.

https://www.scaleway.com/en/developers/api/instance/instance-types. The documentation asks for a token; the list has
answered without one (not confirmed of late), and SCW_SECRET_KEY is sent where it is set. A map by name, paged;
`gpu_memory` is bytes of one GPU, `ram` bytes.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.estimator.units import GIB
from fitmart.flows.records import Offer, RowError, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Scaleway instance types"
SOURCE_ID = "scaleway"
MAX_AGE_HOURS = 48
NEEDS = None

URL = "https://api.scaleway.com/instance/v1/zones"
ZONES = (
    *("fr-par-1", "fr-par-2", "fr-par-3", "nl-ams-1", "nl-ams-2", "nl-ams-3"),
    *("pl-waw-1", "pl-waw-2", "pl-waw-3", "it-mil-1"),
)
PER_PAGE = 100
CURRENCY = "EUR"


def fetch(http: "Http", since: Since) -> Iterator[Payload]:
    """The types of every zone, all pages of one as one payload."""
    headers = asking.optional_key("SCW_SECRET_KEY", "X-Auth-Token")

    def ask(zone: str) -> Payload:
        url = f"{URL}/{zone}/products/servers?per_page={PER_PAGE}"

        def next_url(page: Any, number: int) -> str | None:
            return f"{url}&page={number + 1}" if len(page["servers"]) >= PER_PAGE else None

        return Payload(name=zone, content=asking.get_pages(http, url, next_url=next_url, headers=headers), url=url)

    return asking.walk(ZONES, ask, parse, what="zones")


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The types of the zone called `name` → offers; types without a GPU are none."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL) | {"region": name or None, "currency": CURRENCY}

    def make(row: tuple[str, Any]) -> Iterator[Mapping[str, Any]]:
        instance, server = row
        gpu_count = reading.count(server.get("gpu") or 0)
        if not gpu_count:
            return
        if server.get("end_of_service"):
            raise RowError(f"{instance}: its service ends")
        gpu = server.get("gpu_info") or {}
        memory = cells.exact(gpu.get("gpu_memory"), what="gpu_memory")
        yield common | {
            "instance_type": instance,
            "gpu_name_raw": cells.text(gpu.get("gpu_name")) or instance,
            "gpu_memory_gb": float(memory / GIB) if memory else None,
            "gpu_count": gpu_count,
            "vcpus": cells.number(server.get("ncpus"), what="ncpus"),
            "host_memory_bytes": reading.host_bytes(server.get("ram"), 1),
            "amount": reading.price(server["hourly_price"], what="hourly_price"),
        }

    return reading.parse_rows(content, _servers, make, source_id=SOURCE_ID)


def _servers(document: Any) -> list[Any]:
    return [named for page in reading.pages(document) for named in page["servers"].items()]
