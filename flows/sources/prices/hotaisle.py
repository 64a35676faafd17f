"""Hot Aisle: `GET admin.hotaisle.app/api/teams/{team}/…/available/`, with HOTAISLE_API_KEY and HOTAISLE_TEAM_HANDLE.

https://admin.hotaisle.app/api/docs. What is free now: machines and bare metal apart. Cents an hour for the whole of it.
Nothing free is `null`, which says nothing about prices: those that landed last stay in use. A smallest rent is billed
in full.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.flows.records import Offer, RowError, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Hot Aisle machines"
SOURCE_ID = "hotaisle"
MAX_AGE_HOURS = 24
NEEDS = "HOTAISLE_API_KEY"

BASE_URL = "https://admin.hotaisle.app/api"
KINDS = {"virtual_machines": ("vm", "vm"), "bare_metal": ("bare_metal", "bm")}  # product kind, start of our name


def fetch(http: "Http", since: Since) -> Iterator[Payload]:
    """Both kinds; one that fails or has nothing free does not hold back the other."""
    headers = {"Authorization": f"Token {asking.key(NEEDS)}"}
    team = asking.key("HOTAISLE_TEAM_HANDLE")

    def ask(kind: str) -> Payload:
        answer = http.get(f"{BASE_URL}/teams/{team}/{kind}/available/", headers=headers, expect="json")
        return Payload(name=kind, content=answer, url=f"{BASE_URL}/teams/{{team}}/{kind}/available/")

    return asking.walk(list(KINDS), ask, parse, what="kinds of machines")


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The list of one kind → offers. The API names none of its machines: they are called by kind, card and count."""
    product_kind, prefix = KINDS.get(name, KINDS["virtual_machines"])
    common = reading.direct(SOURCE_ID, seen_at, url=BASE_URL) | {"product_kind": product_kind}

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        specs = row["Specs"]
        if len(specs["gpus"]) != 1:
            raise RowError(f"{len(specs['gpus'])} kinds of GPU in one machine")
        gpu = specs["gpus"][0]
        gpu_count = reading.count(gpu["count"])
        least = cells.whole(row.get("MinimumReservationMinutes"), what="MinimumReservationMinutes")
        yield common | {
            "instance_type": f"{prefix}-{str(gpu['model']).lower()}-{gpu_count}",
            "gpu_name_raw": gpu["model"],
            "gpu_count": gpu_count,
            "vcpus": cells.number(specs.get("cpu_cores"), what="cpu_cores"),
            "host_memory_bytes": reading.host_bytes(specs.get("ram_capacity"), 1),
            "amount": reading.price(row["OnDemandPrice"], unit=reading.CENT, what="OnDemandPrice"),
            "quality_flags": (f"min_rental_{least}min",) if least else (),
        }

    return reading.parse_rows(content, _rows, make, source_id=SOURCE_ID)


def _rows(document: Any) -> list[Any]:
    if document is None:
        return []
    if not isinstance(document, list):
        raise TypeError("neither a list nor null")
    return document
