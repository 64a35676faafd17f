"""Lambda: cents, and regions that come and go. Figures are made up."""

import json
from decimal import Decimal

import pytest
from servers.past import SEEN_AT
from servers.price_api_lambda_cloud import TYPES, instance

from fitmart.flows.offers import normalise
from fitmart.flows.sources.prices import lambda_cloud


def parse(types):
    return lambda_cloud.parse(json.dumps({"data": types}).encode(), SEEN_AT, "instance-types")


def test_cents_are_dollars_and_no_room_is_not_unsold():
    good, rejected = parse(TYPES)
    assert rejected == []
    assert [(o.gpu_count, o.region, o.amount) for o in good] == [
        (1, "us-west-3", Decimal("3.29")),
        (1, "europe-central-1", Decimal("3.29")),
        (8, None, Decimal("10.32")),
    ]
    rows = normalise(good).offers.sort("gpu_count", "region").select("gpu_id", "country").rows()
    assert rows == [("nvidia-h100-sxm", "DE"), ("nvidia-h100-sxm", "US"), ("nvidia-a100-sxm-40gb", None)]


@pytest.mark.parametrize(("cents", "reason"), [(0, "placeholder"), (None, "placeholder"), (-5, "less than nothing")])
def test_a_price_of_nothing_is_refused(cents, reason):
    good, rejected = parse(TYPES | {"x": instance("gpu_1x_a10", 1, cents, "A10 (24 GB PCIe)")})
    assert len(good) == 3
    assert reason in rejected[0].reason
