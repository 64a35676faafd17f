"""Lium's public feed of nodes. Figures are made up."""

from servers.price_api import said

DOCS = "https://docs.lium.io/developers/public-nodes-feed"
HOSTS = ("https://lium.io",)
FIRST = "/api/public/v1/nodes"
CONSTANTS: dict[str, object] = {}
NEEDED = "price_per_gpu_hour"
KEYS: dict[str, str] = {}


def node(**more):
    return {
        "id": "ebdfdbe2-0000-4caa-8eea-1ab5c2a763e1",
        "gpu_model": "RTX 5090",
        "gpu_count": 8,
        "available_gpu_count": 8,
        "price_per_gpu_hour": 0.5,
        "price_per_node_hour": 4.0,
        "min_rentable_gpu_count": 8,
        "gpu_memory_gb": 32,
        "cpu_count": 64,
        "ram_gb": 256,
        "disk_gb": 900,
        "tier": "secure",
        "country_code": "JP",
        "region": "13",
        "rent_url": "https://lium.io/browse-pods/ebdfdbe2",
    } | more


def feed(*nodes):
    return {"generated_at": "2026-11-30T06:00:00Z", "count": len(nodes), "nodes": list(nodes)}


NODES = (node(), node(id="f0", gpu_model="H100 SXM", gpu_memory_gb=80, min_rentable_gpu_count=1, tier="spot"))

ROUTES = {FIRST: said(feed(*NODES))}
EMPTY = {FIRST: said(feed())}
OFFERS = 2
