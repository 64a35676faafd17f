"""What is special about the APIs of smaller clouds, one section each. Figures are made up unless a source is named."""

import json
from decimal import Decimal

import pytest
from servers import price_api_digitalocean as do_api
from servers import price_api_hotaisle as hotaisle_api
from servers import price_api_lium as lium_api
from servers import price_api_ovhcloud as ovh_api
from servers import price_api_scaleway as scaleway_api
from servers import price_api_shadeform as shadeform_api
from servers import price_api_tensordock as tensordock_api
from servers import price_api_verda as verda_api
from servers.loopback import Answer, LoopbackServer
from servers.past import SEEN_AT, drain, past
from servers.price_api import CANARY, mirrors, said

from fitmart.estimator.offers import best_offer, current_offers
from fitmart.flows.errors import TerminalError
from fitmart.flows.http import Http
from fitmart.flows.offers import normalise
from fitmart.flows.settings import Settings
from fitmart.flows.sources.prices import (
    digitalocean,
    hotaisle,
    lium,
    ovhcloud,
    scaleway,
    shadeform,
    tensordock,
    verda,
)
from fitmart.warehouse.snapshot import read_seed


def parse(module, document, name="x"):
    return module.parse(json.dumps(document).encode(), SEEN_AT, name)


def row(good):
    """The one row of the catalog that these offers are."""
    normal = normalise(good)
    assert normal.rejected == []
    assert len(normal.offers) == 1
    return normal.offers.row(0, named=True)


# DigitalOcean


def test_digitalocean_memory_is_the_total_and_the_price_the_machines():
    good, rejected = parse(digitalocean, do_api.page([do_api.size(regions=["nyc1"])]))
    assert rejected == []
    assert (good[0].gpu_memory_gb, good[0].amount) == (192, Decimal("15.92"))
    assert good[0].host_memory_bytes == 1966080 * 2**20
    assert row(good)["usd_per_gpu_hour"] == 1.99
    assert row(good)["gpu_id"] == "amd-mi300x"


def test_digitalocean_without_a_region_keeps_its_price():
    good, _ = parse(digitalocean, do_api.page([do_api.L40S]))
    assert [(o.region, o.amount) for o in good] == [(None, Decimal("1.57"))]


@pytest.mark.parametrize(
    ("gpu", "reason"),
    [
        ({"count": 0, "model": "nvidia_h100", "vram": None}, "without a count"),
        ({"count": 1, "model": "nvidia_h100", "vram": {"amount": 80, "unit": "tib"}}, "tib"),
        ({"count": 1.5, "model": "nvidia_h100", "vram": None}, "not a whole number"),
    ],
)
def test_digitalocean_gpus_that_make_no_sense_are_refused(gpu, reason):
    good, rejected = parse(digitalocean, do_api.page([do_api.size(gpu_info=gpu), do_api.L40S]))
    assert len(good) == 1
    assert reason in rejected[0].reason


def test_digitalocean_never_takes_its_token_to_another_host(monkeypatch):
    monkeypatch.setenv("DIGITALOCEAN_TOKEN", CANARY)
    away = do_api.page([do_api.size()], "https://elsewhere.example/v2/sizes?page=2")
    with LoopbackServer({do_api.FIRST: said(away)}) as server:
        settings = Settings(mirrors=(*mirrors(do_api, server), ("https://elsewhere.example", server.url)))
        with Http(settings) as http, pytest.raises(TerminalError, match="next page is at elsewhere"):
            digitalocean.fetch(http, past())
        assert len(server.requests) == 1


# Scaleway


def test_scaleway_is_in_euro_and_its_memory_in_bytes():
    good, rejected = parse(scaleway, {"servers": scaleway_api.TYPES}, "fr-par-2")
    assert rejected == []
    h100, l40s = good
    assert (h100.amount, h100.currency, h100.gpu_memory_gb) == (Decimal("2.73"), "EUR", 80)
    assert h100.host_memory_bytes == 257698037760
    assert (l40s.gpu_count, l40s.gpu_memory_gb) == (2, 48)
    found = row([h100])
    assert (found["gpu_id"], found["region"], found["is_eu"]) == ("nvidia-h100-pcie", "fr-par-2", True)
    assert (found["amount"], found["currency"]) == (2.73, "EUR")
    assert found["usd_per_hour"] == pytest.approx(2.73 * found["fx_rate"])
    assert found["fx_on"] is not None


def test_scaleway_types_that_end_are_refused_and_a_card_may_be_in_the_name_only():
    types = {
        "RENDER-S": scaleway_api.server("P100", gib=16, end_of_service=True),
        "L4-1-24G": scaleway_api.server(gpu_info=None),
    }
    good, rejected = parse(scaleway, {"servers": types}, "pl-waw-2")
    assert "its service ends" in rejected[0].reason
    assert row(good)["gpu_id"] == "nvidia-l4"


# OVHcloud


def test_ovhcloud_prices_are_in_hundred_millionths_of_the_currency_beside():
    """560000000 is € 5.60 (the catalogue's own formattedPrice)."""
    good, rejected = parse(ovhcloud, ovh_api.catalogue(*ovh_api.ADDONS))
    assert rejected == []
    assert [(o.instance_type, o.gpu_count, o.gpu_memory_gb) for o in good] == [("h100-760", 2, 80)]
    assert (good[0].amount, good[0].currency, good[0].region) == (Decimal("5.6"), "EUR", None)
    canada, _ = parse(ovhcloud, ovh_api.catalogue(ovh_api.addon(), currency="CAD"))
    assert canada[0].currency == "CAD"


@pytest.mark.parametrize(
    ("addon", "reason"),
    [
        (ovh_api.addon(tags=("legacy",)), "not sold any more"),
        (ovh_api.addon(price=0), "placeholder"),
        (ovh_api.addon(pricings=[]), "0 prices"),
        (ovh_api.addon(gpu={"model": "H100", "number": None}), "GPU count"),
    ],
)
def test_ovhcloud_plans_that_are_no_offers_are_refused(addon, reason):
    good, rejected = parse(ovhcloud, ovh_api.catalogue(addon, ovh_api.addon("l4-90.consumption")))
    assert [o.instance_type for o in good] == ["l4-90"]
    assert reason in rejected[0].reason


# Verda


def places(on_demand=(), spot=()):
    return [list(on_demand), list(spot)]


def test_verda_prices_are_text_and_no_spot_price_is_no_spot():
    good, rejected = parse(verda, [verda_api.TYPES, verda_api.ON_DEMAND, verda_api.SPOT])
    assert rejected == []
    assert [(o.instance_type, o.commitment, o.region, o.amount) for o in good] == [
        ("1H100.80S.30V", "on_demand", "FIN-01", Decimal("2.1")),
        ("1H100.80S.30V", "on_demand", "ICE-01", Decimal("2.1")),
        ("1H100.80S.30V", "spot", "FIN-02", Decimal("0.74")),
        ("2A6000.20V", "on_demand", None, Decimal("2.1")),
    ]
    assert good[3].gpu_memory_gb == 48  # 96 of two
    eu = dict(normalise(good[:2]).offers.select("region", "is_eu").iter_rows())
    assert eu == {"FIN-01": True, "ICE-01": False}


def test_verda_another_currency_is_not_taken_for_dollars():
    good, _ = parse(verda, [[verda_api.kind(currency="eur", spot_price=None)], *places()])
    assert [(o.currency, o.amount) for o in good] == [("EUR", Decimal("2.1"))]


@pytest.mark.parametrize("price", ["0", "0.00", None, "soon"])
def test_verda_without_a_price_is_refused(price):
    good, rejected = parse(verda, [[verda_api.kind(price_per_hour=price)], *places()])
    assert good == []
    assert "price_per_hour" in rejected[0].reason


@pytest.mark.parametrize(
    ("gone", "answer", "message"),
    [
        ("VERDA_CLIENT_ID", None, "needs VERDA_CLIENT_ID"),
        (None, said({"expires_in": 1}), "no token"),
        (None, Answer(401), "answered 401"),
    ],
)
def test_verda_says_why_there_is_no_token(monkeypatch, gone, answer, message):
    for name, value in verda_api.KEYS.items():
        monkeypatch.setenv(name, value)
    if gone:
        monkeypatch.delenv(gone)
    routes = dict(verda_api.ROUTES) | ({verda_api.TOKEN: answer} if answer else {})
    with (
        LoopbackServer(routes) as server,
        Http(Settings(mirrors=mirrors(verda_api, server))) as http,
        pytest.raises(TerminalError) as error,
    ):
        verda.fetch(http, past())
    assert message in str(error.value)
    assert CANARY not in str(error.value)


# Hot Aisle


def test_hotaisle_prices_are_cents_and_the_smallest_rent_is_told():
    good, rejected = parse(hotaisle, [hotaisle_api.machine(1592, 8, MinimumReservationMinutes=480)], "bare_metal")
    assert rejected == []
    assert (good[0].instance_type, good[0].amount) == ("bm-mi300x-8", Decimal("15.92"))
    assert (good[0].product_kind, good[0].quality_flags) == ("bare_metal", ("min_rental_480min",))
    assert row(good)["usd_per_gpu_hour"] == 1.99


def test_hotaisle_null_is_nothing_free_and_wipes_nothing(monkeypatch):
    assert parse(hotaisle, None, "virtual_machines") == ([], [])
    for name, value in hotaisle_api.KEYS.items():
        monkeypatch.setenv(name, value)
    routes = dict(hotaisle_api.ROUTES) | {hotaisle_api.METAL: said(None)}
    with LoopbackServer(routes) as server, Http(Settings(mirrors=mirrors(hotaisle_api, server))) as http:
        payloads = list(hotaisle.fetch(http, past()))
    assert [p.name for p in payloads] == ["virtual_machines"]  # what landed of bare metal stays
    assert "our-team" not in payloads[0].url


def test_hotaisle_one_kind_that_fails_does_not_cost_the_other(monkeypatch):
    for name, value in hotaisle_api.KEYS.items():
        monkeypatch.setenv(name, value)
    got = []
    routes = dict(hotaisle_api.ROUTES) | {hotaisle_api.FIRST: Answer(403)}
    with LoopbackServer(routes) as server, Http(Settings(mirrors=mirrors(hotaisle_api, server))) as http:
        source = hotaisle.fetch(http, past())
        with pytest.raises(TerminalError, match="1 of 2 kinds of machines failed: virtual_machines"):
            drain(source, got)
    assert [p.name for p in got] == ["bare_metal"]


# TensorDock


def test_tensordock_prices_are_of_the_gpu_alone_and_never_the_cheapest_machine():
    good, rejected = parse(tensordock, {"data": {"locations": [tensordock_api.place(tensordock_api.gpu())]}})
    assert rejected == []
    assert (good[0].price_scope, good[0].gpu_count, good[0].amount) == ("gpu_only", 1, Decimal("0.37"))
    assert good[0].region == "Austin, Texas, United States"
    offers = normalise(good).offers
    ages = read_seed("source").select("source_id", "max_age_hours")
    devices = read_seed("gpu").select("gpu_id", gpu_count=1).cast({"gpu_count": int})
    assert best_offer(current_offers(offers, ages, SEEN_AT), devices, SEEN_AT).is_empty()


# Shadeform


def test_shadeform_prices_are_cents_and_never_stand_for_the_clouds_own():
    good, rejected = parse(shadeform, {"instance_types": shadeform_api.TYPES})
    assert rejected == []
    assert [(o.instance_type, o.region, o.amount) for o in good] == [
        ("hyperstack/n3-H100-SXM5x8", "montreal-canada-2", Decimal("19.2")),
        ("hyperstack/n3-H100-SXM5x8", "oslo-norway-1", Decimal("19.2")),
        ("lambda/gpu_1x_h100_sxm5", None, Decimal("3.29")),
    ]
    found = normalise(good).offers.sort("gpu_count").row(0, named=True)
    assert (found["provider_id"], found["seller"], found["gpu_id"]) == ("shadeform", "shadeform", "nvidia-h100-sxm")


@pytest.mark.parametrize(("deployment", "kind"), [("vm", "vm"), ("container", "vm"), ("baremetal", "bare_metal")])
def test_shadeform_says_what_kind_of_machine_it_is(deployment, kind):
    good, _ = parse(shadeform, {"instance_types": [shadeform_api.kind(deployment_type=deployment)]})
    assert {o.product_kind for o in good} == {kind}


def test_shadeform_an_unknown_kind_is_refused():
    good, rejected = parse(shadeform, {"instance_types": [shadeform_api.kind(deployment_type="toaster")]})
    assert good == []
    assert "toaster" in rejected[0].reason


# Lium


def test_lium_a_node_that_is_let_whole_has_no_price_for_one_gpu():
    good, rejected = parse(lium, lium_api.feed(lium_api.node()))
    assert rejected == []
    assert (good[0].min_gpu_count, good[0].max_gpu_count, good[0].amount) == (8, 8, 4)
    found = row(good)
    assert (found["usd_per_gpu_hour"], found["min_gpu_count"], found["country"]) == (0.5, 8, "JP")


def test_lium_a_node_that_can_be_split_is_offered_from_one_to_what_is_free():
    good, _ = parse(lium, lium_api.feed(lium_api.node(min_rentable_gpu_count=1, available_gpu_count=5)))
    assert (good[0].gpu_count, good[0].max_gpu_count, good[0].amount) == (1, 5, Decimal("0.5"))
    assert (good[0].vcpus, good[0].host_memory_bytes) == (8, 32 * 2**30)  # an eighth of 64 and 256 GB


def test_lium_spot_is_a_tier_there_and_a_commitment_here():
    good, _ = parse(lium, lium_api.feed(lium_api.node(tier="spot"), lium_api.node(id="b")))
    assert [(o.commitment, o.tier) for o in good] == [("spot", "marketplace"), ("on_demand", "secure")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"available_gpu_count": 5}, "5 of 8 GPUs are free, 8 is the smallest order"),
        ({"available_gpu_count": 0, "min_rentable_gpu_count": None}, "0 of 8"),
        ({"price_per_gpu_hour": 0}, "placeholder"),
        ({"price_per_gpu_hour": None}, "placeholder"),
        ({"gpu_count": None}, "GPU count"),
    ],
)
def test_lium_what_cannot_be_ordered_is_refused(change, reason):
    good, rejected = parse(lium, lium_api.feed(lium_api.node(**change), lium_api.node(id="b")))
    assert len(good) == 1
    assert reason in rejected[0].reason
