"""Google Cloud: the SKUs of Compute Engine, `GET cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus`.

https://cloud.google.com/billing/docs/how-to/get-pricing-information-api; needs GCP_API_KEY (free), sent in a header. A
machine has no price: GPU, cores and memory are SKUs of their own, told apart by their description alone, and are added
here by the shapes of gcp_machines. A GPU is an offer without its host as well. Money is units and billionths. Of some
40,000 SKUs those of machines with accelerators are kept, each as received. Time-boxed capacity ("DWS") is left out: it
is neither on demand nor a year's commitment.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fitmart.estimator.units import GIB
from fitmart.flows.errors import TerminalError
from fitmart.flows.records import Offer, RowError, Sifted, sift
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading
from fitmart.flows.sources.prices.gcp_machines import ACCELERATORS, MACHINES, SLICES, Machine

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Google Cloud SKUs"
SOURCE_ID = "gcp"
MAX_AGE_HOURS = 48
NEEDS = "GCP_API_KEY"

URL = "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus"
WANTED = re.compile(r"\bgpu\b|^(?:Spot Preemptible )?(?:A2|A3|A3Plus|A4|G2) ", re.IGNORECASE)
OTHERS = re.compile(r"Reserved|Sole Tenancy|Commitment|DWS|Calendar|Custom|Premium|suspended|Workstation|\bvWS\b")
PART = re.compile(
    r"^(?:Spot Preemptible )?(?P<part>.+?)(?: attached to Spot Preemptible VMs)?(?: running in .+)?$", re.IGNORECASE
)
COMMITMENTS = {"OnDemand": "on_demand", "Preemptible": "spot"}

Prices = dict[tuple[str, str, str], Decimal]  # part, commitment, region → USD of one an hour


def fetch(http: "Http", since: Since) -> list[Payload]:
    """The wanted SKUs of all pages."""
    url = f"{URL}?pageSize=5000&currencyCode=USD"
    headers = {"X-Goog-Api-Key": asking.key(NEEDS)}
    skus: list[Any] = []

    def next_url(page: Any, number: int) -> str | None:
        if not isinstance(page["skus"], list):
            raise TerminalError("cloudbilling.googleapis.com: skus is no list")
        skus.extend(sku for sku in page["skus"] if WANTED.search(str(sku.get("description"))))
        token = page.get("nextPageToken")
        return f"{url}&pageToken={quote(token, safe='')}" if token else None

    asking.get_pages(http, url, next_url=next_url, headers=headers)
    content = json.dumps({"skus": skus}, ensure_ascii=False).encode()
    return [asking.with_offers(Payload(name="skus", content=content, url=URL), parse)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """SKUs → offers of GPUs without a host, and of every machine type whose parts are all sold in a region."""
    common = reading.direct(SOURCE_ID, seen_at, url=URL)
    prices: Prices = {}

    def make(sku: Any) -> Iterator[Mapping[str, Any]]:
        if sku["category"]["usageType"] not in COMMITMENTS or OTHERS.search(sku["description"]):
            return
        part, commitment = _part(sku)
        amount = _unit_price(sku)
        for region in sku["serviceRegions"]:
            prices[part, commitment, region] = amount
            if fields := _of_gpu(part, amount):
                yield common | fields | {"commitment": commitment, "region": region}

    parts = reading.parse_rows(content, reading.rows_at("skus"), make, source_id=SOURCE_ID)
    places = sorted({(commitment, region) for _, commitment, region in prices})
    machines = [(machine, *place) for machine in MACHINES for place in places]

    def assemble(row: tuple[Machine, str, str]) -> Iterator[Mapping[str, Any]]:
        machine, commitment, region = row
        if amount := _machine_price(machine, commitment, region, prices):
            yield common | {
                "instance_type": machine.name,
                "gpu_name_raw": machine.gpus[0],
                "gpu_count": machine.gpu_count,
                "vcpus": float(machine.vcpus),
                "host_memory_bytes": machine.memory_gib * GIB,
                "commitment": commitment,
                "region": region,
                "amount": amount,
            }

    whole = sift(machines, assemble, Offer, source_id=SOURCE_ID)
    return Sifted([*parts.good, *whole.good], [*parts.rejected, *whole.rejected])


def _part(sku: Mapping[str, Any]) -> tuple[str, str]:
    """What a SKU is a price of, and how. Some spot SKUs say OnDemand in `usageType` (skypilot-org/skypilot#8125)."""
    text = str(sku["description"])
    found = PART.match(text)
    is_spot = "spot preemptible" in text.lower()
    return found["part"] if found else text, "spot" if is_spot else COMMITMENTS[sku["category"]["usageType"]]


def _unit_price(sku: Mapping[str, Any]) -> Decimal:
    expression = sku["pricingInfo"][0]["pricingExpression"]
    if expression["usageUnit"] not in ("h", "GiBy.h"):
        raise RowError(f"{sku['description']}: billed by {expression['usageUnit']}")
    money = expression["tieredRates"][-1]["unitPrice"]
    if money["currencyCode"] != "USD":
        raise RowError(f"{sku['description']}: in {money['currencyCode']}")
    amount = reading.units_and_nanos(money)
    if amount <= 0:
        raise RowError(f"{sku['description']}: price is {amount}: a placeholder, not an offer")
    return amount


def _of_gpu(part: str, amount: Decimal) -> dict[str, Any] | None:
    """An offer of the GPU alone, or of a machine that is sold by slices; None for cores and memory."""
    if part in SLICES:
        machine, slices = SLICES[part]
        return {
            "instance_type": machine,
            "gpu_name_raw": part.partition(" (")[0],
            "gpu_count": slices,
            "amount": _rounded(amount * slices),
        }
    if part.endswith(" GPU"):
        return {
            "instance_type": ACCELERATORS.get(part),
            "price_scope": "gpu_only",
            "gpu_name_raw": part,
            "gpu_count": 1,
            "amount": _rounded(amount),
        }
    return None


def _machine_price(machine: Machine, commitment: str, region: str, prices: Prices) -> Decimal | None:
    """GPUs, cores and memory together; None where one of them is not sold."""
    gpu = next((prices[k] for g in machine.gpus if (k := (g, commitment, region)) in prices), None)
    core = prices.get((f"{machine.family} Instance Core", commitment, region))
    memory = prices.get((f"{machine.family} Instance Ram", commitment, region))
    if gpu is None or core is None or memory is None:
        return None
    return _rounded(gpu * machine.gpu_count + core * machine.vcpus + memory * machine.memory_gib)


def _rounded(amount: Decimal) -> Decimal:
    return amount.quantize(cells.MICRO, ROUND_HALF_UP)
