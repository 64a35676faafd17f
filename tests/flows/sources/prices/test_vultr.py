"""Vultr: shares of a card, totals, bare metal, places. Figures are made up unless a source is named."""

import json

import pytest
from servers.loopback import Answer, LoopbackServer
from servers.past import SEEN_AT, past
from servers.price_api_vultr import CPU, HOSTS, METAL, metal, page, plan

from fitmart.flows.http import Http
from fitmart.flows.landing import land
from fitmart.flows.memory import LandingMemory
from fitmart.flows.offers import normalise
from fitmart.flows.settings import Settings
from fitmart.flows.sources.prices import vultr


def parse(*plans):
    return vultr.parse(json.dumps(page("plans", list(plans))).encode(), SEEN_AT, "plans")


def parse_metal(*plans):
    return vultr.parse(json.dumps(page("plans_metal", list(plans))).encode(), SEEN_AT, "plans-metal")


def vdm(plan_id, **more):
    """A plan without any field of its GPU."""
    bare = {k: v for k, v in plan(id=plan_id, type="vdm", **more).items() if k not in ("gpu_type", "gpu_vram_gb")}
    return bare | {"gpu_brand": "NVIDIA"}


@pytest.mark.parametrize(
    ("row", "gpu", "count", "memory"),
    [
        (plan(), "A100", 1, 80),
        (plan(gpu_type="NVIDIA_A100", gpu_vram_gb=160), "A100", 2, 80),
        (plan(id="vcg-a16-x", gpu_type="NVIDIA_A16", gpu_vram_gb=32), "A16", 2, 16),  # two GPUs of a board of four
        (plan(gpu_type="NVIDIA_H100", gpu_vram_gb=640, gpu_count=8), "H100", 8, 80),
        (vdm("vcg-a40-24c-120g-48vram"), "a40", 1, 48),
        (vdm("vcg-b200-248c-2826g-1536vram"), "b200", 8, 192),
        (vdm("vcg-mi325x-252c-2872g-1536vram"), "mi325x", 8, None),  # its total is not that of its cards
    ],
)
def test_the_total_is_divided_by_the_cards_memory(row, gpu, count, memory):
    good, rejected = parse(row)
    assert rejected == []
    assert (good[0].gpu_name_raw, good[0].gpu_count, good[0].gpu_memory_gb) == (gpu, count, memory)


@pytest.mark.parametrize(
    "row",
    [
        plan(id="vcg-a100-1c-6g-4vram", gpu_vram_gb=4),  # a twentieth
        plan(gpu_vram_gb=40),
        vdm("vcg-a40-1c-5g-2vram"),
        plan(gpu_type="NVIDIA_L40S", gpu_vram_gb=24),
    ],
)
def test_a_share_is_not_a_card(row):
    good, rejected = parse(row)
    assert good == []
    assert "share of a GPU" in rejected[0].reason


def test_a_plan_is_offered_in_every_location_and_one_without_a_name_keeps_its_price():
    good, _ = parse(plan(locations=["ewr", "", "fra"]), plan(locations=[]), plan(locations=[""]))
    assert [o.region for o in good if o.commitment == "on_demand"] == ["ewr", "fra", None, None]
    country = dict(normalise(good).offers.select("region", "country").unique().iter_rows())
    assert (country["fra"], country["ewr"], country[None]) == ("DE", "US", None)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({}, ["on_demand", "spot"]),
        ({"deploy_ondemand": False}, ["spot"]),
        ({"deploy_preemptible": False}, ["on_demand"]),
        ({"hourly_cost_preemptible": 0}, ["on_demand"]),
        ({"hourly_cost_preemptible": None}, ["on_demand"]),
    ],
)
def test_only_what_can_be_had_is_offered(change, want):
    assert [o.commitment for o in parse(plan(locations=["ewr"]) | change)[0]] == want


def test_free_plans_and_plans_without_gpus_are_never_the_cheapest():
    good, rejected = parse(CPU, plan(hourly_cost=0, hourly_cost_preemptible=0))
    assert good == []
    assert [r.reason for r in rejected] == ["hourly_cost is 0: a placeholder, not an offer"]


@pytest.mark.parametrize(
    ("plan_id", "gpu_id", "count"),
    [
        ("vbm-256c-2048gb-8-mi300x-gpu", "amd-mi300x", 8),
        ("vbm-112c-2048gb-8-h100-gpu", "nvidia-h100-sxm", 8),
        ("vbm-72c-480gb-gh200-gpu", "nvidia-gh200-96gb", 1),
        ("vbm-64c-2048gb-8-l40-gpu", "nvidia-l40s", 8),
    ],
)
def test_bare_metal_is_what_its_id_says(plan_id, gpu_id, count):
    good, rejected = parse_metal(metal(id=plan_id))
    assert rejected == []
    row = normalise(good).offers.row(0, named=True)
    assert (row["gpu_count"], row["product_kind"]) == (count, "bare_metal")
    assert row["gpu_id"].split("-")[1] == gpu_id.split("-")[1]


def test_a_month_is_never_used():
    """16074.24 for bare metal is 672 × 23.92, for machines a month is 730 hours."""
    good, _ = parse_metal(metal(hourly_cost=23.92, monthly_cost=16074.24))
    assert float(good[0].amount) == 23.92


def test_an_unchanged_list_is_not_sent_again(tmp_path):
    body = json.dumps(page("plans_metal", [metal()])).encode()

    def answer(request):
        is_known = request.headers.get("if-none-match") == '"v1"'
        return Answer(304, headers={"ETag": '"v1"'}) if is_known else Answer(200, body, {"ETag": '"v1"'})

    plans = Answer(200, json.dumps(page("plans", [plan()])).encode())
    with LoopbackServer({METAL: answer, "/v2/plans": plans}) as server:
        settings = Settings(mirrors=((HOSTS[0], server.url),), data_dir=tmp_path)
        for _ in range(2):
            memory = LandingMemory(settings.landing_dir, "vultr")
            with Http(settings, memory=memory) as http:
                payloads = vultr.fetch(http, past())
            memory.save()
            result = land(settings.landing_dir, "vultr", payloads, SEEN_AT)
        assert (result.added, result.unchanged) == (0, 2)
        assert [r.headers.get("if-none-match") for r in server.requests if r.path == METAL] == [None, '"v1"']
