"""Oracle Cloud: the shapes of its Cost Estimator, priced by the parts of its public price list; no key.

Price list: https://docs.oracle.com/en-us/iaas/Content/Billing/Tasks/signingup_topic-Estimating_Costs.htm#accessing_list_pricing
(`apexapps.oracle.com/pls/apex/cetools/api/v1/products/`). The estimator's shapes.json is undocumented: a shape is a
list of parts with a quantity, and a part is billed by what its `metricName` counts: GPU, OCPU or gigabyte an hour. One
price for all regions, none are named. An OCPU is two vCPUs, of Arm one. Preemptible capacity is half price
(https://docs.oracle.com/en-us/iaas/Content/Compute/Concepts/preemptible.htm).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fitmart.estimator.units import GIB
from fitmart.flows.records import Offer, RowError, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "Oracle Cloud price list"
SOURCE_ID = "oci"
MAX_AGE_HOURS = 48
NEEDS = None

PRICES_URL = "https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/?currencyCode=USD"
SHAPES_URL = "https://www.oracle.com/a/ocom/docs/cloudestimator2/data/shapes.json"
CURRENCY = "USD"
PREEMPTIBLE_SHARE = Decimal("0.5")
# `gpuMemoryQty` is the total of a shape; of these it is one GPU's, or the superchip's memory counted otherwise.
OF_ONE_GPU = (".MI355X.",)
NOT_TOLD = (".GB200.", ".GB300.")
ARM = (".GB200.", ".GB300.", ".GH200.")
PRODUCT_KINDS = {"vm": "vm", "bm": "bare_metal"}


def fetch(http: "Http", since: Since) -> list[Payload]:
    """Shapes and parts as one payload: neither says a price alone."""
    documents = [http.get(url, expect="json") for url in (SHAPES_URL, PRICES_URL)]
    return [asking.with_offers(Payload(name="shapes", content=asking.join(documents), url=SHAPES_URL), parse)]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """[shapes, parts] → offers of every shape with a GPU that is sold, on demand and preemptible."""
    common = reading.direct(SOURCE_ID, seen_at, url=SHAPES_URL)
    parts: dict[str, Mapping[str, Any]] = {}

    def rows(document: Any) -> list[Any]:
        shapes, products = document
        parts.update((part["partNumber"], part) for part in reading.listed(products, "items"))
        return reading.listed(shapes, "items")

    def make(shape: Any) -> Iterator[Mapping[str, Any]]:
        gpu_count = reading.count(shape["gpuQty"] or 0)
        if not gpu_count or shape["hidden"] or shape["status"] != "ACTIVE":
            return
        amount = sum((_cost(part, gpu_count, parts) for part in shape["products"]), Decimal(0))
        text = shape["name"].partition(" (")[0]  # "BM.GPU.GB200.4 (NVL72)" is called BM.GPU.GB200.4
        offer = common | {
            "instance_type": text,
            "gpu_name_raw": text,
            "gpu_memory_gb": _gpu_memory(shape, text, gpu_count),
            "gpu_count": gpu_count,
            "product_kind": PRODUCT_KINDS[shape["shapeType"]["value"]],
            "vcpus": _vcpus(shape, text),
            "host_memory_bytes": _host_memory(shape),
        }
        yield offer | {"amount": reading.price(amount)}
        if shape["allowPreemptible"]:
            yield offer | {"amount": reading.price(amount, unit=PREEMPTIBLE_SHARE), "commitment": "spot"}

    return reading.parse_rows(content, rows, make, source_id=SOURCE_ID)


def _cost(of_shape: Mapping[str, Any], gpu_count: int, parts: Mapping[str, Mapping[str, Any]]) -> Decimal:
    """What one part of a shape costs an hour."""
    number = of_shape["partNumber"]
    if number not in parts:
        raise RowError(f"part {number} is not in the price list")
    part = parts[number]
    metric = str(part["metricName"]).lower()
    if "per hour" not in metric:
        raise RowError(f"part {number} is billed by {part['metricName']}")
    # The part of type "ocpu" counts cores even where what is billed are GPUs.
    quantity = Decimal(gpu_count) if metric.startswith("gpu") else cells.exact(of_shape["qty"], what="quantity")
    if quantity is None:
        raise RowError(f"no quantity of part {number}")
    return _unit_price(part) * quantity


def _unit_price(part: Mapping[str, Any]) -> Decimal:
    """The pay-as-you-go price of a part. Several would be tiers or another offer: none of them is the price."""
    prices = [
        price["value"]
        for by_currency in part["currencyCodeLocalizations"]
        if by_currency["currencyCode"] == CURRENCY
        for price in by_currency["prices"]
        if price["model"] == "PAY_AS_YOU_GO"
    ]
    if len(prices) != 1:
        raise RowError(f"part {part['partNumber']} has {len(prices)} prices in {CURRENCY}")
    return cells.exact(prices[0], what="price") or Decimal(0)


def _quantity(shape: Mapping[str, Any], kind: str) -> Decimal | None:
    quantities = [p.get("qty") for p in shape["products"] if p["type"]["value"] == kind]
    return cells.exact(quantities[0], what=kind) if quantities else None


def _vcpus(shape: Mapping[str, Any], text: str) -> float | None:
    ocpus = _quantity(shape, "ocpu")
    return float(ocpus * (1 if any(chip in text for chip in ARM) else 2)) if ocpus else None


def _host_memory(shape: Mapping[str, Any]) -> int | None:
    memory = cells.exact(shape.get("bundleMemoryQty"), what="bundleMemoryQty") or _quantity(shape, "memory")
    return int(memory * GIB) if memory else None


def _gpu_memory(shape: Mapping[str, Any], text: str, gpu_count: int) -> float | None:
    if any(chip in text for chip in NOT_TOLD):
        return None
    return reading.of_one(shape.get("gpuMemoryQty"), 1 if any(chip in text for chip in OF_ONE_GPU) else gpu_count)
