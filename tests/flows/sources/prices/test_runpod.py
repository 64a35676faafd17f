"""RunPod: tiers, counts, stock and slices. Figures are made up unless a source is named."""

import json
from decimal import Decimal

import pytest
from servers.past import SEEN_AT
from servers.price_api_runpod import A40, answer_of, gpu

from fitmart.flows.offers import normalise
from fitmart.flows.sources.prices import runpod


def parse(tier, *gpus):
    return runpod.parse(json.dumps(answer_of(*gpus)).encode(), SEEN_AT, tier)


@pytest.mark.parametrize(("tier", "want", "most"), [("secure", "2.99", 8), ("community", "2.69", 4)])
def test_a_tiers_price_is_never_anothers(tier, want, most):
    """dstackai/dstack#1886: secure and community under one id."""
    good, rejected = parse(tier, gpu())
    assert rejected == []
    assert {o.tier for o in good} == {tier}
    listed = good[0]
    assert (listed.commitment, listed.amount) == ("on_demand", Decimal(want))
    assert (listed.price_scope, listed.gpu_count, listed.max_gpu_count) == ("per_gpu", 1, most)
    assert listed.host_memory_bytes == 125 * 2**30  # not the GPU's 80 (skypilot#6824)


def test_a_price_for_one_gpu_is_divided_never_multiplied_once():
    """dstackai/dstack#1890: eight cards shown at the price of one."""
    offers = normalise(parse("secure", gpu())[0]).offers
    row = offers.filter(commitment="on_demand").row(0, named=True)
    assert (row["usd_per_gpu_hour"], row["usd_per_hour"], row["max_gpu_count"]) == (2.99, 2.99, 8)


@pytest.mark.parametrize("lowest", [None, {}, gpu()["lowestPrice"] | {"minimumBidPrice": None, "stockStatus": None}])
def test_out_of_stock_leaves_the_list_price_and_no_spot(lowest):
    good, rejected = parse("community", gpu(lowestPrice=lowest))
    assert rejected == []
    assert [o.commitment for o in good] == ["on_demand"]


def test_spot_is_the_lowest_bid_and_no_list_price():
    """A community price published as spot was a label gone wrong."""
    good, _ = parse("secure", gpu())
    assert [o.amount for o in good if o.commitment == "spot"] == [Decimal("1.75")]


def test_months_ahead_are_of_the_secure_cloud():
    assert [o.commit_term for o in parse("secure", gpu())[0] if o.commitment == "reserved"] == ["1mo", "3mo"]
    assert [o for o in parse("community", gpu())[0] if o.commitment == "reserved"] == []


def test_a_cloud_that_does_not_have_the_card_has_no_offer():
    assert parse("community", A40) == ([], [])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"securePrice": 0, "lowestPrice": None}, "no price"),
        ({"securePrice": None, "lowestPrice": None}, "no price"),
        ({"securePrice": -1}, "less than nothing"),
        ({"securePrice": "cheap"}, "not a number"),
    ],
)
def test_rows_without_a_price_are_refused(change, reason):
    good, rejected = parse("secure", gpu(**change), A40)
    assert [o.gpu_name_raw for o in good] == ["A40"]
    assert reason in rejected[0].reason


@pytest.mark.parametrize("name", ["B300 MIG", "A100 MIG 1g.10gb"])
def test_a_slice_is_never_the_card(name):
    slice_of = gpu(id="NVIDIA B300 SXM6 AC", displayName=name, memoryInGb=34)
    normal = normalise(parse("secure", slice_of)[0])
    assert normal.offers.is_empty()
    assert "MIG slice" in normal.rejected[0].reason


def test_errors_in_an_answer_of_status_200_are_told():
    content = b'{"errors": [{"message": "Cannot query field \\"securePrice\\""}], "data": null}'
    good, rejected = runpod.parse(content, SEEN_AT, "secure")
    assert good == []
    assert "Cannot query field" in rejected[0].reason
