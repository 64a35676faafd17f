"""Google's SKUs of Compute Engine: pages by token, a key in a header. Figures are made up unless a test says so."""

from servers.loopback import Answer, Request
from servers.price_api import CANARY, said, with_key

DOCS = "https://cloud.google.com/billing/docs/how-to/get-pricing-information-api"
HOSTS = ("https://cloudbilling.googleapis.com",)
FIRST = "/v1/services/6F81-5844-456A/skus"
CONSTANTS: dict[str, object] = {}
NEEDED = "serviceRegions"
KEYS = {"GCP_API_KEY": CANARY}


def sku(description, price, *, usage="OnDemand", group="GPU", unit="h", regions=("us-central1",), currency="USD"):
    units, nanos = divmod(round(price * 10**9), 10**9)
    money = {"currencyCode": currency, "units": str(units), "nanos": nanos}
    expression = {"usageUnit": unit, "tieredRates": [{"startUsageAmount": 0, "unitPrice": money}]}
    return {
        "skuId": "AAAA-BBBB-CCCC",
        "description": description,
        "category": {"resourceFamily": "Compute", "resourceGroup": group, "usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [{"effectiveTime": "2026-11-01T00:00:00Z", "pricingExpression": expression}],
    }


CORE = sku("A2 Instance Core running in Americas", 0.03, group="CPU")
RAM = sku("A2 Instance Ram running in Americas", 0.004, group="RAM", unit="GiBy.h")
SKUS = [
    sku("N1 Predefined Instance Core running in Americas", 0.03, group="N1Standard"),
    CORE,
    sku("Nvidia Tesla A100 GPU running in Americas", 2.93, regions=("us-central1", "europe-west4")),
    RAM,
    sku("Nvidia Tesla T4 GPU attached to Spot Preemptible VMs running in Belgium", 0.14, usage="Preemptible"),
]


def _answer(request: Request) -> Answer:
    if request.query.get("pageToken") == ["next/1="]:
        return said({"skus": SKUS[3:], "nextPageToken": ""})
    return said({"skus": SKUS[:3], "nextPageToken": "next/1="})


ROUTES = {FIRST: with_key("X-Goog-Api-Key", CANARY, _answer)}
EMPTY = {FIRST: said({"skus": [SKUS[0]], "nextPageToken": ""})}
OFFERS = 2 + 1 + 5  # A100 alone in two regions, T4, the five A2 machines that have A100 of 40 GB in one region
