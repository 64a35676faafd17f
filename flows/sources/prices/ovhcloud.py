"""OVHcloud: `GET api.ovh.com/1.0/order/catalog/public/cloud`, no key. Euro of the Irish subsidiary, without tax.

https://api.ovh.com/console/?section=%2Forder&branch=v1#get-/order/catalog/public/cloud. A price is a whole number of
1e-8 of the catalogue's currency. Each machine stands there several times: hourly Linux is the plan that ends in
`.consumption`; a month's twin is another price, Windows another product. One price for all regions, none are named.
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

NAME = "OVHcloud catalogue"
SOURCE_ID = "ovhcloud"
MAX_AGE_HOURS = 48
NEEDS = None

URL = "https://api.ovh.com/1.0/order/catalog/public/cloud?ovhSubsidiary=IE&productName=cloud"
UNIT = Decimal("1e-8")
HOURLY = ".consumption"


def fetch(http: "Http", since: Since) -> list[Payload]:
    return [asking.with_offers(Payload(name="cloud", content=http.get(URL, expect="json"), url=URL), parse)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The catalogue → offers of hourly Linux machines with a GPU."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL)

    def rows(document: Any) -> list[Any]:
        common["currency"] = document["locale"]["currencyCode"]
        return reading.listed(document, "addons")

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        blobs = row.get("blobs") or {}
        technical = blobs.get("technical") or {}
        gpu = technical.get("gpu")
        if not gpu or not row["planCode"].endswith(HOURLY) or row["product"] != "publiccloud-instance":
            return
        if (technical.get("os") or {}).get("family", "linux") != "linux" or row["planCode"].startswith("win-"):
            return
        if blobs.get("tags") and "active" not in blobs["tags"]:
            raise RowError(f"{row['planCode']}: not sold any more ({', '.join(blobs['tags'])})")
        yield common | {
            "instance_type": row["invoiceName"],
            "gpu_name_raw": gpu["model"],
            "gpu_memory_gb": cells.number((gpu.get("memory") or {}).get("size"), what="GPU memory") or None,
            "gpu_count": reading.count(gpu["number"]),
            "vcpus": cells.number((technical.get("cpu") or {}).get("cores"), what="cores"),
            "host_memory_bytes": reading.host_bytes((technical.get("memory") or {}).get("size")),
            "amount": _hourly(row),
        }

    return reading.parse_rows(content, rows, make, source_id=SOURCE_ID)


def _hourly(row: Mapping[str, Any]) -> Decimal:
    prices = [
        pricing["price"]
        for pricing in row["pricings"]
        if "consumption" in pricing["capacities"] and pricing["intervalUnit"] == "hour"
    ]
    if len(prices) != 1:
        raise RowError(f"{row['planCode']}: {len(prices)} prices of an hour")
    return reading.price(prices[0], unit=UNIT)
