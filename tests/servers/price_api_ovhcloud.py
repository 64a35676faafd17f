"""OVHcloud's order catalogue: plans, twins by the month, prices in 1e-8. Figures are made up."""

from servers.price_api import said

DOCS = "https://api.ovh.com/console/?section=%2Forder&branch=v1#get-/order/catalog/public/cloud"
HOSTS = ("https://api.ovh.com",)
FIRST = "/1.0/order/catalog/public/cloud"
CONSTANTS: dict[str, object] = {}
NEEDED = "invoiceName"
KEYS: dict[str, str] = {}

GPU = {"model": "H100", "number": 2, "memory": {"interface": "HBM2", "size": 80}}


def addon(plan="h100-760.consumption", price=560000000, gpu=GPU, tags=("active",), family="linux", **more):
    name = plan.partition(".")[0]
    return {
        "planCode": plan,
        "invoiceName": name,
        "product": "publiccloud-instance",
        "pricingType": "consumption",
        "pricings": [
            {"capacities": ["consumption"], "interval": 1, "intervalUnit": "hour", "price": price, "tax": price // 5}
        ],
        "blobs": {
            "commercial": {"brick": "gpu", "name": name},
            "tags": list(tags),
            "technical": {
                "cpu": {"cores": 60},
                "memory": {"size": 760},
                "name": name,
                "os": {"family": family},
            }
            | ({"gpu": gpu} if gpu else {}),
        },
    } | more


def catalogue(*addons, currency="EUR"):
    return {
        "catalogId": 1,
        "locale": {"currencyCode": currency, "subsidiary": "IE", "taxRate": 23},
        "plans": [],
        "addons": list(addons),
    }


ADDONS = (
    addon("b3-8.consumption", 10000000, gpu=None),
    addon(),
    addon("h100-760.monthly.postpaid", 220000000000),
    addon("win-h100-760.consumption", 600000000, family="windows"),
    addon("snapshot.consumption", 1, gpu=None, product="publiccloud-storage", blobs=None),
)

ROUTES = {FIRST: said(catalogue(*ADDONS))}
EMPTY = {FIRST: said(catalogue(ADDONS[0]))}
OFFERS = 1
