"""Scaleway's types of instances: a map a zone, paged by number. Figures are made up."""

from servers.loopback import Answer, Request
from servers.price_api import CANARY, said

DOCS = "https://www.scaleway.com/en/developers/api/instance/instance-types"
HOSTS = ("https://api.scaleway.com",)
FIRST = "/instance/v1/zones/fr-par-2/products/servers"
OTHER = FIRST.replace("fr-par-2", "nl-ams-1")
CONSTANTS = {"ZONES": ("fr-par-2", "nl-ams-1"), "PER_PAGE": 2}
NEEDED = "hourly_price"
KEYS: dict[str, str] = {}
OPTIONAL_KEYS = {"SCW_SECRET_KEY": CANARY}


def server(name="H100-PCIe", gpus=1, gib=80, price=2.73, **more):
    return {
        "monthly_price": price * 730,
        "hourly_price": price,
        "ncpus": 24 * max(gpus, 1),
        "gpu": gpus,
        "gpu_info": {"gpu_manufacturer": "NVIDIA", "gpu_name": name, "gpu_memory": gib * 2**30} if gpus else None,
        "ram": 257698037760,
        "arch": "x86_64",
        "end_of_service": False,
    } | more


TYPES = {
    "DEV1-S": server(gpus=0, price=0.01),
    "H100-1-80G": server(),
    "L40S-2-48G": server("L40S", gpus=2, gib=48, price=2.8),
}


def _paris(request: Request) -> Answer:
    start = 2 * (int(request.query.get("page", ["1"])[0]) - 1)
    return said({"servers": dict(list(TYPES.items())[start : start + 2])})


ROUTES = {FIRST: _paris, OTHER: said({"servers": {"DEV1-S": TYPES["DEV1-S"]}})}
EMPTY = {path: said({"servers": {}}) for path in ROUTES}
OFFERS = 2
