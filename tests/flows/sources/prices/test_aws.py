"""AWS: lines of the price list, terms, capacity blocks, spot. Figures are made up unless a source is named."""

from decimal import Decimal

import pytest
from servers.loopback import Answer, LoopbackServer
from servers.past import SEEN_AT, drain, past
from servers.price_api_aws import CONSTANTS, FIRST, HOSTS, ROUTES, line, price_list, spot

from fitmart.flows.errors import TerminalError
from fitmart.flows.http import Http
from fitmart.flows.offers import normalise
from fitmart.flows.settings import Settings
from fitmart.flows.sources.prices import aws
from fitmart.flows.sources.prices.aws_machines import COUNTS


def parse(*lines):
    content = price_list(*lines)
    return aws.parse(content[content.index(b'"SKU"') :], SEEN_AT, "us-east-1/prices.csv")


def test_a_line_is_a_whole_machine():
    good, rejected = parse(line("p5.48xlarge", "55.04", vCPU="192", Memory="2,048 GiB", GPU="8"))
    assert rejected == []
    offer = good[0]
    assert (offer.gpu_count, offer.amount, offer.price_scope) == (8, Decimal("55.04"), "instance")
    assert (offer.vcpus, offer.host_memory_bytes, offer.region) == (192, 2048 * 2**30, "us-east-1")
    row = normalise(good).offers.row(0, named=True)
    assert (row["gpu_id"], row["usd_per_gpu_hour"], row["country"]) == ("nvidia-h100-sxm", 6.88, "US")


@pytest.mark.parametrize(
    "more",
    [
        {"Operating System": "Windows"},
        {"Tenancy": "Dedicated"},
        {"CapacityStatus": "AllocatedCapacityReservation"},
        {"Pre Installed S/W": "SQL Std"},
        {"MarketOption": "CapacityBlock"},
        {"Unit": "Quantity", "TermType": "Reserved"},
        {"TermType": "Reserved", "PurchaseOption": "All Upfront", "OfferingClass": "standard"},
        {"TermType": "Reserved", "PurchaseOption": "No Upfront", "OfferingClass": "convertible"},
        {"Instance Type": "m7i.large"},
    ],
)
def test_other_products_and_terms_are_no_offers(more):
    assert parse(line(**more)) == ([], [])


def test_reserved_is_what_costs_nothing_ahead():
    """Three ways to pay stand under one machine and term: only one of them is an hourly price."""
    ways = [
        line(
            price=price,
            TermType="Reserved",
            LeaseContractLength="1yr",
            PurchaseOption=f"{way} Upfront",
            OfferingClass="standard",
        )
        for way, price in (("No", "3.0"), ("Partial", "1.4"), ("All", "0"))
    ]
    good, rejected = parse(*ways)
    assert rejected == []
    assert [(o.commitment, o.commit_term, o.amount) for o in good] == [("reserved", "12mo", 3)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"PricePerUnit": "0.0000000000"}, "placeholder"),  # dstackai/gpuhunt#36: capacity blocks
        ({"PricePerUnit": ""}, "placeholder"),
        ({"Instance Type": "p9.48xlarge", "GPU": ""}, "not known"),
        ({"Instance Type": "g6f.large", "GPU": "0.125"}, "not a whole number"),
    ],
)
def test_placeholders_and_shares_are_refused(change, reason):
    good, rejected = parse(line(**change), line())
    assert len(good) == 1
    assert reason in rejected[0].reason


def test_every_machine_of_the_table_has_its_card():
    for family, sizes in COUNTS.items():
        for size, count in sizes.items():
            good, _ = parse(line(f"{family}.{size}", str(count), GPU=""))
            assert normalise(good).offers["gpu_count"].to_list() == [count], f"{family}.{size}"


def test_spot_comes_by_old_names_of_regions_and_only_where_it_is_sold():
    machines = {"p5.48xlarge": "21.5", "g6.xlarge": "N/A*", "m7i.large": "0.04", "g5.xlarge": "0"}
    good, rejected = aws.parse(spot(("us-east", machines), ("eu-ireland", {"g6.xlarge": "0.3"})), SEEN_AT, "spot.js")
    assert [(o.instance_type, o.region, o.gpu_count, o.amount) for o in good] == [
        ("p5.48xlarge", "us-east-1", 8, Decimal("21.5")),
        ("g6.xlarge", "eu-west-1", 1, Decimal("0.3")),
    ]
    assert [r.reason for r in rejected] == ["spot price is 0: a placeholder, not an offer"]  # spotinfo#2


@pytest.mark.parametrize("wrap", [b"%s", b"/* made */ callback(%s)", b"callback(%s);\n"])
def test_the_call_around_the_json_may_change(wrap):
    inside = spot(("us-west-2", {"p5.48xlarge": "21.5"})).removeprefix(b"callback(").removesuffix(b");")
    assert len(aws.parse(wrap % inside, SEEN_AT, "spot.js").good) == 1


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(aws, "REGIONS", CONSTANTS["REGIONS"])
    with LoopbackServer(dict(ROUTES)) as running:
        yield running


def fetch(server, known=()):
    with Http(Settings(mirrors=tuple((host, server.url) for host in HOSTS))) as http:
        return list(aws.fetch(http, past(known)))


def test_a_list_is_asked_for_at_a_new_version_only_and_kept_without_its_other_machines(server):
    first = fetch(server)
    kept = next(p for p in first if p.name == "us-east-1/prices.csv")
    assert kept.content.count(b"\n") == 3  # header and two machines of 201
    assert len(server.routes[FIRST].body) > 20 * len(kept.content)

    second = fetch(server, first)
    assert [p.name for p in second] == ["spot.js"]
    assert server.hits[f"GET {FIRST}"] == 1


def test_a_list_beyond_all_measure_is_refused(server, monkeypatch):
    monkeypatch.setattr(aws, "MAX_LIST_BYTES", 10_000)
    with pytest.raises(TerminalError, match=r"more than the 10,000 bytes"):
        fetch(server)


def test_what_fails_costs_no_other(server):
    server.routes["/spot.js"] = Answer(403)
    got = []
    with Http(Settings(mirrors=tuple((host, server.url) for host in HOSTS))) as http:
        source = aws.fetch(http, past())
        with pytest.raises(TerminalError, match=r"1 of 3 price lists failed: spot: .*403"):
            drain(source, got)
    assert len([p for p in got if p.name.endswith("prices.csv")]) == 2
