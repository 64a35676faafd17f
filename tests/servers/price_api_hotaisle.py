"""Hot Aisle's free machines and bare metal of a team; `null` where there are none. Figures are made up."""

from servers.price_api import CANARY, said, with_key

DOCS = "https://admin.hotaisle.app/api/docs"
HOSTS = ("https://admin.hotaisle.app",)
FIRST = "/api/teams/our-team/virtual_machines/available/"
METAL = "/api/teams/our-team/bare_metal/available/"
CONSTANTS: dict[str, object] = {}
NEEDED = "OnDemandPrice"
KEYS = {"HOTAISLE_API_KEY": CANARY, "HOTAISLE_TEAM_HANDLE": "our-team"}


def machine(cents=199, count=1, **more):
    return {
        "OnDemandPrice": cents,
        "Specs": {
            "cpu_cores": 13,
            "ram_capacity": 240 * 2**30,
            "disk_capacity": 12288 * 2**30,
            "gpus": [{"count": count, "manufacturer": "AMD", "model": "MI300X"}],
        },
    } | more


AUTHORIZATION = f"Token {CANARY}"
ROUTES = {
    FIRST: with_key("Authorization", AUTHORIZATION, said([machine()])),
    METAL: with_key("Authorization", AUTHORIZATION, said([machine(1592, 8, MinimumReservationMinutes=480)])),
}
EMPTY = {FIRST: said(None), METAL: said(None)}
OFFERS = 2
