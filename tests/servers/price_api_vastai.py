"""Vast.ai's search of offers: filters in the body of a POST, at most `limit` of them. Figures are made up."""

import json

from servers.loopback import Answer, Request
from servers.price_api import CANARY, said

DOCS = "https://docs.vast.ai/api-reference"
HOSTS = ("https://console.vast.ai",)
FIRST = "/api/v0/bundles/"
CONSTANTS: dict[str, object] = {}
NEEDED = "dph_base"
KEYS: dict[str, str] = {}
OPTIONAL_KEYS = {"VAST_API_KEY": CANARY}


def offer(**more):
    return {
        "id": 101,
        "machine_id": 4090,
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "gpu_ram": 24564,
        "cpu_cores": 32,
        "cpu_cores_effective": 8.0,
        "cpu_ram": 128000,
        "disk_space": 500.0,
        "storage_cost": 0.1,
        "dph_base": 0.3,
        "dph_total": 0.31,
        "min_bid": 0.15,
        "geolocation": "Texas, US",
        "rentable": True,
        "rented": False,
        "reliability2": 0.99,
        "compute_cap": 890,
    } | more


MARKET = [
    offer(),
    offer(id=102, machine_id=77, num_gpus=2, dph_base=0.6, min_bid=0, geolocation="France, FR"),
    offer(id=103, machine_id=78, gpu_name="H100 SXM", gpu_ram=81559, num_gpus=8, dph_base=16, min_bid=None),
]


def _answer(request: Request) -> Answer:
    asked = json.loads(request.body)
    counts = asked["num_gpus"]
    tests = {"eq": lambda n, v: n == v, "gte": lambda n, v: n >= v, "lte": lambda n, v: n <= v}
    found = [o for o in MARKET if all(tests[op](o["num_gpus"], value) for op, value in counts.items())]
    return said({"offers": found[: asked.get("limit", 64)]})


ROUTES = {FIRST: _answer}
EMPTY = {FIRST: said({"offers": []})}
OFFERS = 2 + 1 + 1
