"""Azure Retail Prices: `GET prices.azure.com/api/retail/prices`, no key. Pay-as-you-go, spot and reservations.

https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices (version without preview: its
filters do not mind the case). Asked region by region: a republishing during one long walk shifts the pages and rows are
lost (dstackai/gpuhunt#255). A price is for one machine: an hour, or, in a reservation, its whole term, though
the unit still says "1 Hour". What GPU a size has is not in it: the card follows from the size's name
(warehouse/seeds/gpu_alias.csv), the number of cards from SIZES.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fitmart.flows.errors import TransientError
from fitmart.flows.records import Offer, RowError, Sifted
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Azure retail prices"
SOURCE_ID = "azure"
MAX_AGE_HOURS = 48
NEEDS = None

URL = "https://prices.azure.com/api/retail/prices"
# https://learn.microsoft.com/azure/reliability/regions-list
REGIONS = (
    *("australiacentral", "australiaeast", "australiasoutheast", "austriaeast", "belgiumcentral", "brazilsouth"),
    *("canadacentral", "canadaeast", "centralindia", "centralus", "chilecentral", "denmarkeast", "eastasia", "eastus"),
    *("eastus2", "francecentral", "francesouth", "germanynorth", "germanywestcentral", "indonesiacentral"),
    *("israelcentral", "italynorth", "japaneast", "japanwest", "koreacentral", "koreasouth", "malaysiawest"),
    *("mexicocentral", "newzealandnorth", "northcentralus", "northeurope", "norwayeast", "norwaywest", "polandcentral"),
    *("qatarcentral", "southafricanorth", "southafricawest", "southcentralus", "southeastasia", "southindia"),
    *("spaincentral", "swedencentral", "swedensouth", "switzerlandnorth", "switzerlandwest", "uaecentral", "uaenorth"),
    *("uksouth", "ukwest", "westcentralus", "westeurope", "westindia", "westus", "westus2", "westus3"),
)
GPU_SIZES = "Standard_N"  # how the names of all sizes with a GPU begin
NO_GPUS = ("Standard_NP", "Standard_NM")  # FPGAs and video encoders
FILTER = "serviceName eq 'Virtual Machines' and armRegionName eq '{}' and contains(armSkuName, '" + GPU_SIZES + "')"

# vCPUs in the name of a size -> GPUs (https://learn.microsoft.com/azure/virtual-machines/sizes/overview#gpu-accelerated).
# Azure's own list of sizes has been wrong in it: 12 GPUs in ND96isr_H100_v5 (Azure/azure-cli#31176).
SIZES: tuple[tuple[re.Pattern[str], dict[int, int]], ...] = tuple(
    (re.compile(f"{GPU_SIZES}{pattern}", re.IGNORECASE), gpus)
    for pattern, gpus in (
        (r"C(\d+)r?s_v[23]", {6: 1, 12: 2, 24: 4}),
        (r"C(\d+)as_T4_v3", {4: 1, 8: 1, 16: 1, 64: 4}),
        (r"C(\d+)ads_A100_v4", {24: 1, 48: 2, 96: 4}),
        (r"CC?(\d+)adi?s_H100_v5", {40: 1, 80: 2}),
        (r"D(\d+)rs_v2", {40: 8}),
        (r"D(\d+)asr_(?:A100_)?v4", {96: 8}),
        (r"D(\d+)amsr_A100_v4", {96: 8}),
        (r"D(\d+)isr?f?_(?:H100|H200|MI300X)_v5", {96: 8}),
        (r"D(\d+)isr(?:_NDR)?_GB[23]00_v6", {128: 4}),
        (r"V(\d+)adm?s_A10_v5", {36: 1, 72: 2}),
        (r"V(\d+)s_v3", {12: 1, 24: 2, 48: 4}),
    )
)
SHARES = re.compile(GPU_SIZES + r"(?:V(?:6|12|18)adm?s_A10_v5|V\d+as_v4|V\d+adm?s_V710_v5|G\d+\w+_V620_v1)$")
# Products under the same service that are no Linux machine shared with others.
OTHER_PRODUCTS = ("Windows", "Cloud Services", "CloudServices", "Dedicated")
TERMS = {"1 Year": ("12mo", 8760), "3 Years": ("36mo", 26280), "5 Years": ("60mo", 43800)}


def fetch(http: "Http", since: Since) -> Iterator[Payload]:
    """The sizes with a GPU of every region, all pages of one as one payload."""

    def ask(region: str) -> Payload:
        url = f"{URL}?$filter={quote(FILTER.format(region), safe=chr(39))}"
        return Payload(name=region, content=asking.get_pages(http, url, next_url=_next_page), url=url)

    return asking.walk(REGIONS, ask, parse, what="regions")


def _next_page(page: Any, number: int) -> str | None:
    if page["Count"] != len(page["Items"]):
        raise TransientError(f"prices.azure.com: {len(page['Items'])} rows where {page['Count']} are announced")
    return page["NextPageLink"]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """One region's pages → offers. Other products than Linux machines, and the retired Low Priority, are none."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL)

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        size = row["armSkuName"]
        if _is_other(row):
            return
        yield (
            common
            | {
                "instance_type": size,
                "gpu_name_raw": size,
                "gpu_count": _gpu_count(size),
                "region": row["armRegionName"],
                "currency": row["currencyCode"],
                "vcpus": _vcpus(size),
            }
            | _commitment(row)
        )

    return reading.parse_rows(content, reading.rows_at("Items"), make, source_id=SOURCE_ID)


def _is_other(row: Mapping[str, Any]) -> bool:
    product, meter = row["productName"], f"{row['meterName']} {row['skuName']}"
    return (
        any(word in product for word in OTHER_PRODUCTS)
        # One size in three tiers: the dead one must not stand for the others (opencost/opencost#3531).
        or "Low Priority" in meter
        or row["type"] not in ("Consumption", "Reservation")
        or not row.get("isPrimaryMeterRegion", True)
        or not str(row["armSkuName"]).startswith(GPU_SIZES)
        or str(row["armSkuName"]).startswith(NO_GPUS)
    )


def _commitment(row: Mapping[str, Any]) -> dict[str, Any]:
    if row["unitOfMeasure"] != "1 Hour":
        raise RowError(f"the price is for {row['unitOfMeasure']}")
    if row["type"] == "Reservation":
        term, hours = TERMS[row["reservationTerm"]]
        amount = reading.price(row["retailPrice"], unit=Decimal(1) / hours)
        return {"commitment": "reserved", "commit_term": term, "amount": amount}
    is_spot = "Spot" in row["meterName"] or "Spot" in row["skuName"]
    return {"commitment": "spot" if is_spot else "on_demand", "amount": reading.price(row["retailPrice"])}


def _gpu_count(size: str) -> int:
    if SHARES.match(size):
        raise RowError(f"{size}: a share of a GPU")
    for pattern, gpus in SIZES:
        if (found := pattern.fullmatch(size)) and int(found[1]) in gpus:
            return gpus[int(found[1])]
    raise RowError(f"{size}: how many GPUs it has is not known")


def _vcpus(size: str) -> float | None:
    found = re.match(GPU_SIZES + r"[A-Z]+(\d+)", size)
    return float(found[1]) if found else None
