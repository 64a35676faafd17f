"""DigitalOcean's sizes: pages by link, with a token. Figures are made up."""

from servers.loopback import Answer, Request
from servers.price_api import CANARY, said, with_key

DOCS = "https://docs.digitalocean.com/reference/api/digitalocean/#tag/Sizes"
HOSTS = ("https://api.digitalocean.com",)
FIRST = "/v2/sizes"
CONSTANTS: dict[str, object] = {}
NEEDED = "price_hourly"
KEYS = {"DIGITALOCEAN_TOKEN": CANARY}

CPU = {"slug": "s-1vcpu-1gb", "memory": 1024, "vcpus": 1, "price_hourly": 0.00893, "regions": ["fra1"]}


def size(**more):
    return {
        "slug": "gpu-mi300x8-1536gb",
        "memory": 1966080,
        "vcpus": 160,
        "disk": 2046,
        "price_monthly": 11844.48,
        "price_hourly": 15.92,
        "regions": ["nyc1", "fra1"],
        "available": True,
        "gpu_info": {"count": 8, "vram": {"amount": 1536, "unit": "gib"}, "model": "amd_mi300x"},
    } | more


L40S = size(
    slug="gpu-l40sx1-48gb",
    price_hourly=1.57,
    regions=[],
    gpu_info={"count": 1, "vram": {"amount": 48, "unit": "gib"}, "model": "nvidia_l40s"},
)


def page(sizes, following=None):
    links = {"pages": {"next": following, "last": following}} if following else {}
    return {"sizes": sizes, "links": links, "meta": {"total": 3}}


def _answer(request: Request) -> Answer:
    if request.query.get("page") == ["2"]:
        return said(page([L40S]))
    return said(page([CPU, size()], f"{HOSTS[0]}{FIRST}?page=2&per_page=200"))


ROUTES = {FIRST: with_key("Authorization", f"Bearer {CANARY}", _answer)}
EMPTY = {FIRST: said(page([CPU]))}
OFFERS = 3
