"""Verda's types of instances and where there is room, for a token that a pair of keys buys. Figures are made up."""

import json

from servers.loopback import Answer, Request
from servers.price_api import CANARY, said, with_key

DOCS = "https://api.verda.com/v1/docs"
HOSTS = ("https://api.verda.com",)
FIRST = "/v1/instance-types"
PLACES = "/v1/instance-availability"
TOKEN = "/v1/oauth2/token"
CONSTANTS: dict[str, object] = {}
NEEDED = "price_per_hour"
KEYS = {"VERDA_CLIENT_ID": f"id-{CANARY}", "VERDA_CLIENT_SECRET": f"secret-{CANARY}"}
TOKEN_TEXT = f"token-{CANARY}"


def kind(name="1H100.80S.30V", gpus=1, card="H100 SXM5 80GB", gb=80, **more):
    return {
        "instance_type": name,
        "model": card.split()[0],
        "name": card,
        "price_per_hour": "2.10",
        "spot_price": "0.74",
        "currency": "usd",
        "cpu": {"description": "30 CPU", "number_of_cores": 30},
        "gpu": {"description": f"{gpus}x {card}", "number_of_gpus": gpus},
        "memory": {"description": "120GB RAM", "size_in_gigabytes": 120},
        "gpu_memory": {"description": "", "size_in_gigabytes": gb * gpus},
    } | more


TYPES = [kind(), kind("2A6000.20V", 2, "RTX A6000 48GB", 48, spot_price="0"), kind("CPU.4V.16G", 0, "CPU", 0)]
ON_DEMAND = [{"location_code": code, "availabilities": ["1H100.80S.30V"]} for code in ("FIN-01", "ICE-01")]
SPOT = [{"location_code": "FIN-02", "availabilities": ["1H100.80S.30V", "CPU.4V.16G"]}]


def _token(request: Request) -> Answer:
    asked = json.loads(request.body)
    if (asked["client_id"], asked["client_secret"]) != tuple(KEYS.values()):
        return Answer(401, b'{"code": "unauthorized_request"}')
    return said({"access_token": TOKEN_TEXT, "token_type": "Bearer", "expires_in": 3600})


def _places(request: Request) -> Answer:
    return said(SPOT if request.query["is_spot"] == ["true"] else ON_DEMAND)


BEARER = f"Bearer {TOKEN_TEXT}"
ROUTES = {
    TOKEN: _token,
    FIRST: with_key("Authorization", BEARER, said(TYPES)),
    PLACES: with_key("Authorization", BEARER, _places),
}
EMPTY = {TOKEN: _token, FIRST: said([]), PLACES: said([])}
OFFERS = 2 + 1 + 1
