"""Vultr's plans and bare metal: lists with a cursor in `meta.links.next`. Figures are made up."""

from servers.loopback import Answer, Request
from servers.price_api import said

DOCS = "https://www.vultr.com/api/#tag/plans"
HOSTS = ("https://api.vultr.com",)
FIRST = "/v2/plans"
METAL = "/v2/plans-metal"
CONSTANTS: dict[str, object] = {}
NEEDED = "hourly_cost"
KEYS: dict[str, str] = {}


def plan(**more):
    return {
        "id": "vcg-a100-12c-120g-80vram",
        "vcpu_count": 12,
        "ram": 122880,
        "disk": 1400,
        "monthly_cost": 1750,
        "hourly_cost": 2.397,
        "monthly_cost_preemptible": 875,
        "hourly_cost_preemptible": 1.2,
        "type": "vcg",
        "locations": ["ewr", "fra"],
        "gpu_vram_gb": 80,
        "gpu_type": "NVIDIA_A100",
    } | more


def metal(**more):
    return {
        "id": "vbm-256c-2048gb-8-mi300x-gpu",
        "cpu_threads": 256,
        "ram": 2321924,
        "disk": 3576,
        "monthly_cost": 11773.44,
        "hourly_cost": 17.52,
        "type": "NVMe",
        "locations": ["ord"],
    } | more


CPU = {"id": "vc2-1c-1gb", "vcpu_count": 1, "ram": 1024, "hourly_cost": 0, "type": "vc2", "locations": ["ewr"]}
A16 = plan(id="vcg-a16-6c-64g-16vram", gpu_type="NVIDIA_A16", gpu_vram_gb=16, hourly_cost=0.47, locations=["fra"])


def page(key, items, cursor=""):
    return {key: items, "meta": {"total": 3, "links": {"next": cursor, "prev": ""}}}


def _plans(request: Request) -> Answer:
    if request.query.get("cursor") == ["bmV4dA=="]:
        return said(page("plans", [A16 | {"hourly_cost_preemptible": 0}]))
    return said(page("plans", [CPU, plan()], "bmV4dA=="))


ROUTES = {FIRST: _plans, METAL: said(page("plans_metal", [metal()]))}
EMPTY = {FIRST: said(page("plans", [])), METAL: said(page("plans_metal", []))}
OFFERS = 2 * 2 + 1 + 1
