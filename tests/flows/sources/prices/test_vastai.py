"""Vast.ai: shares of a machine, disks, bids and places. Figures are made up unless a source is named."""

import json
from decimal import Decimal

import pytest
from servers.loopback import LoopbackServer
from servers.past import SEEN_AT, drain, past
from servers.price_api import said
from servers.price_api_vastai import FIRST, offer

from fitmart.flows.errors import TerminalError
from fitmart.flows.gpu_names import bundled_resolver
from fitmart.flows.http import Http
from fitmart.flows.offers import normalise
from fitmart.flows.settings import Settings
from fitmart.flows.sources.prices import vastai


def parse(*offers):
    return vastai.parse(json.dumps({"offers": list(offers)}).encode(), SEEN_AT, "1")


def test_on_demand_and_spot_are_both_without_the_disk():
    """dstackai/gpuhunt#242: one of the two with its disk made spot dearer than it is."""
    good, rejected = parse(offer())
    assert rejected == []
    assert [(o.commitment, o.amount) for o in good] == [("on_demand", Decimal("0.3")), ("spot", Decimal("0.15"))]


def test_host_memory_is_the_offers_share_of_the_machine():
    good, _ = parse(offer())
    assert (good[0].vcpus, good[0].host_memory_bytes) == (8.0, 32 * 10**9)  # 8 of 32 cores, 32 of 128 GB
    assert good[0].gpu_memory_gb == pytest.approx(23.99, abs=0.01)


@pytest.mark.parametrize("change", [{"cpu_cores": None}, {"cpu_ram": 0}, {"cpu_cores_effective": None}])
def test_cores_that_are_not_told_cost_the_memory_only(change):
    good, rejected = parse(offer(**change))
    assert (len(good), rejected, good[0].host_memory_bytes) == (2, [], None)


@pytest.mark.parametrize("bid", [0, 0.0, None])
def test_no_bid_is_no_spot(bid):
    assert [o.commitment for o in parse(offer(min_bid=bid))[0]] == ["on_demand"]


@pytest.mark.parametrize("change", [{"rented": True}, {"rentable": False}, {"num_gpus": 0}])
def test_what_cannot_be_rented_is_no_offer(change):
    assert parse(offer(**change)) == ([], [])


@pytest.mark.parametrize(
    ("place", "region", "country"),
    [("Texas, US", "Texas, US", "US"), (", US", "US", "US"), ("", None, None), (None, None, None)],
)
def test_a_place_without_a_name_keeps_its_price(place, region, country):
    row = normalise(parse(offer(geolocation=place))[0]).offers.row(0, named=True)
    assert (row["region"], row["country"]) == (region, country)


def test_machines_are_told_apart_and_never_taken_for_cards():
    """The id of a machine may be the number of a card."""
    good, _ = parse(offer(), offer(id=7, machine_id=5, dph_base=0.36))
    assert normalise(good).offers.filter(commitment="on_demand")["usd_per_hour"].sort().to_list() == [0.3, 0.36]
    assert [bundled_resolver().resolve(f"machine-{n}").gpu_id for n in (4090, 5090, 3060, 100, 4)] == [None] * 5


@pytest.mark.parametrize(
    ("memory", "why"),
    [(49140, "modified"), (6141, "share")],
)
def test_a_card_with_another_memory_is_not_that_card(memory, why):
    """48 GB on a "RTX 4090": skypilot-catalog lists such."""
    normal = normalise(parse(offer(gpu_ram=memory))[0])
    assert normal.offers.is_empty()
    assert why in normal.rejected[0].reason


@pytest.mark.parametrize("price", [0, None, -0.2])
def test_a_price_that_is_none_is_refused(price):
    good, rejected = parse(offer(dph_base=price))
    assert good == []
    assert "dph_base" in rejected[0].reason


def test_an_answer_as_long_as_the_limit_was_cut(monkeypatch):
    monkeypatch.setattr(vastai, "LIMIT", 2)
    got = []
    with LoopbackServer({FIRST: said({"offers": [offer(), offer(id=5)]})}) as server:
        settings = Settings(mirrors=(("https://console.vast.ai", server.url),))
        with Http(settings) as http, pytest.raises(TerminalError, match="the rest is missing"):
            drain(vastai.fetch(http, past()), got)
    assert got == []
