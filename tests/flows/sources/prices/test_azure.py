"""Azure: tiers of one size, terms, counts and shares. Figures are made up unless a source is named."""

import json
from decimal import Decimal

import pytest
from servers.loopback import Answer, LoopbackServer
from servers.past import SEEN_AT, drain, past
from servers.price_api import said
from servers.price_api_azure import FIRST, H100, ITEMS, item, page

from fitmart.flows.errors import TerminalError
from fitmart.flows.http import Http
from fitmart.flows.offers import normalise
from fitmart.flows.settings import Settings
from fitmart.flows.sources.prices import azure


def parse(*items):
    return azure.parse(json.dumps(page(list(items))).encode(), SEEN_AT, "eastus")


@pytest.mark.parametrize("order", [ITEMS, ITEMS[::-1]])
def test_low_priority_never_stands_for_another_tier(order):
    """opencost/opencost#3531: a third meter of the same size, at a fifth of the price, whatever the order."""
    good, rejected = parse(*order)
    assert rejected == []
    prices = {(o.instance_type, o.commitment): o.amount for o in good}
    assert prices == {
        (H100, "on_demand"): Decimal("98.32"),
        (H100, "spot"): Decimal("32.1"),
        ("Standard_NC24ads_A100_v4", "on_demand"): Decimal("3.673"),
    }


@pytest.mark.parametrize(
    "more",
    [
        {"productName": "Virtual Machines NC Series Windows"},
        {"productName": "NC Series Cloud Services"},  # mattrobinsonsre/terrapod#932
        {"productName": "NDv5 Series Dedicated Host"},
        {"type": "DevTestConsumption"},
        {"isPrimaryMeterRegion": False},
        {"armSkuName": "Standard_D2s_v5"},
        {"armSkuName": "Standard_NP10s"},  # FPGAs
    ],
)
def test_other_products_are_no_offers(more):
    assert parse(item(H100, 98.32, **more)) == ([], [])


@pytest.mark.parametrize(("term", "hours", "want"), [("1 Year", 8760, "12mo"), ("3 Years", 26280, "36mo")])
def test_a_reservation_is_priced_for_its_term(term, hours, want):
    """The unit still says "1 Hour" (documentation of the API, `reservationTerm`)."""
    good, _ = parse(item(H100, 50 * hours, type="Reservation", reservationTerm=term))
    assert (good[0].amount, good[0].commitment, good[0].commit_term) == (50, "reserved", want)


@pytest.mark.parametrize(
    ("size", "gpus", "vcpus"),
    [
        ("Standard_ND96isr_H100_v5", 8, 96),  # 12 in Azure's own list (Azure/azure-cli#31176)
        ("Standard_ND40rs_v2", 8, 40),
        ("Standard_NC80adis_H100_v5", 2, 80),
        ("Standard_NCC40ads_H100_v5", 1, 40),
        ("Standard_NC96ads_A100_v4", 4, 96),
        ("Standard_NC64as_T4_v3", 4, 64),
        ("Standard_NC4as_T4_v3", 1, 4),
        ("Standard_NV72ads_A10_v5", 2, 72),
        ("Standard_ND128isr_NDR_GB200_v6", 4, 128),
    ],
)
def test_the_number_of_gpus_follows_from_the_size(size, gpus, vcpus):
    good, rejected = parse(item(size, 10))
    assert rejected == []
    assert (good[0].gpu_count, good[0].vcpus) == (gpus, vcpus)
    assert normalise(good).offers["gpu_id"].len() == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (item("Standard_NV6ads_A10_v5", 0.454), "share of a GPU"),  # skypilot#3708: a sixth is no A10
        (item("Standard_NV18adms_A10_v5", 1.6), "share of a GPU"),
        (item("Standard_NC48zz_Z900_v9", 7), "not known"),
        (item(H100, 0), "placeholder"),  # skypilot#3615
        (item(H100, -1), "less than nothing"),
        (item(H100, 98, unitOfMeasure="1 Month"), "1 Month"),
        (item(H100, 98, type="Reservation", reservationTerm="9 Years"), "9 Years"),
    ],
)
def test_what_is_no_offer_of_whole_cards_is_refused_with_the_reason(row, reason):
    good, rejected = parse(row, item(H100, 98.32))
    assert len(good) == 1
    assert reason in rejected[0].reason


def test_another_currency_is_kept_as_such():
    good, _ = parse(item(H100, 90, currencyCode="EUR"))
    assert (good[0].amount, good[0].currency) == (90, "EUR")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(azure, "REGIONS", ("eastus", "westus"))


def fetch(routes, got):
    with LoopbackServer(routes) as server:
        mirrors = ((azure.URL, f"{server.url}{FIRST}"), ("https://prices.azure.com:443", server.url))
        with Http(Settings(mirrors=mirrors, http_tries=1)) as http:
            drain(azure.fetch(http, past()), got)


def test_a_region_that_fails_costs_no_other(small):
    def answer(request):
        return Answer(403) if "'westus'" in request.query["$filter"][0] else said(page(ITEMS))

    got = []
    with pytest.raises(TerminalError, match=r"1 of 2 regions failed: westus: .*403"):
        fetch({FIRST: answer}, got)
    assert [p.name for p in got] == ["eastus"]


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("https://elsewhere.example/prices", "next page is at elsewhere.example"),
        (f"https://prices.azure.com:443{FIRST}?$skip=1", "circles"),
    ],
)
def test_pages_lead_neither_away_nor_in_circles(small, link, message):
    def answer(request):
        return said(page(ITEMS, link))

    got = []
    with pytest.raises(TerminalError, match=message):
        fetch({FIRST: answer}, got)
    assert got == []


def test_a_page_with_less_than_it_announces_is_not_kept(small):
    """dstackai/gpuhunt#255: rows lost while the list was published anew."""
    got = []
    with pytest.raises(TerminalError, match="4 rows where 5 are announced"):
        fetch({FIRST: said(page(ITEMS) | {"Count": 5})}, got)
    assert got == []
