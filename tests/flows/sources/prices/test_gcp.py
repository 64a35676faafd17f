"""Google: parts added to machines, money in two fields, slices. Figures are made up unless a source is named."""

import json
from decimal import Decimal

import pytest
from servers.past import SEEN_AT
from servers.price_api_gcp import CORE, RAM, sku

from fitmart.flows.offers import normalise
from fitmart.flows.sources.prices import gcp


def parse(*skus):
    return gcp.parse(json.dumps({"skus": list(skus)}).encode(), SEEN_AT, "skus")


def test_a_machine_is_its_gpu_cores_and_memory():
    """skypilot-catalog#31: an A100 of 2.93 and its host of a2-highgpu-1g, 12 × 0.03 + 85 × 0.004."""
    good, rejected = parse(sku("Nvidia Tesla A100 GPU running in Americas", 2.93), CORE, RAM)
    assert rejected == []
    by_type = {(o.instance_type, o.price_scope): o for o in good}
    machine = by_type["a2-highgpu-1g", "instance"]
    assert (machine.amount, machine.vcpus, machine.host_memory_bytes) == (Decimal("3.63"), 12, 85 * 2**30)
    assert by_type["a2-highgpu-8g", "instance"].amount == 8 * Decimal("3.63")
    assert by_type["nvidia-tesla-a100", "gpu_only"].amount == Decimal("2.93")
    ids = set(normalise(good).offers["gpu_id"])
    assert ids == {"nvidia-a100-sxm-40gb"}


def test_the_gpu_alone_is_no_machine_and_parts_of_two_regions_are_none():
    gpu = sku("Nvidia Tesla A100 GPU running in Netherlands", 2.93, regions=("europe-west4",))
    good, _ = parse(gpu, CORE, RAM)
    assert [(o.price_scope, o.region) for o in good] == [("gpu_only", "europe-west4")]


def test_spot_is_added_from_spot_parts_only():
    skus = [
        sku("Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas", 0.2, usage="Preemptible"),
        sku("Spot Preemptible G2 Instance Core running in Americas", 0.01, usage="Preemptible", group="CPU"),
        sku("Spot Preemptible G2 Instance Ram running in Americas", 0.001, usage="Preemptible", unit="GiBy.h"),
        sku("Nvidia L4 GPU running in Americas", 0.56),
    ]
    good, rejected = parse(*skus)
    assert rejected == []
    machines = {o.instance_type: o for o in good if o.price_scope == "instance"}
    assert {o.commitment for o in machines.values()} == {"spot"}
    # 0.2 + 4 × 0.01 + 16 × 0.001; two GPUs: 0.4 + 24 × 0.01 + 96 × 0.001
    assert machines["g2-standard-4"].amount == Decimal("0.256")
    assert (machines["g2-standard-24"].gpu_count, machines["g2-standard-24"].amount) == (2, Decimal("0.736"))
    assert (machines["g2-standard-32"].gpu_count, machines["g2-standard-96"].gpu_count) == (1, 8)


def test_a_slice_brings_its_host_and_spot_may_be_said_in_the_description_only():
    """skypilot#8125: "A4 Nvidia B200 (1 gpu slice)", with usageType OnDemand for spot as well."""
    good, rejected = parse(
        sku("A4 Nvidia B200 (1 gpu slice) running in Americas", 11),
        sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", 4.5),
    )
    assert rejected == []
    assert [(o.instance_type, o.gpu_count, o.commitment, o.amount) for o in good] == [
        ("a4-highgpu-8g", 8, "on_demand", 88),
        ("a4-highgpu-8g", 8, "spot", 36),
    ]
    assert {o.price_scope for o in good} == {"instance"}


@pytest.mark.parametrize(
    ("units", "nanos", "want"), [("2", 930000000, "2.93"), ("0", 560004000, "0.560004"), (None, 140000000, "0.14")]
)
def test_money_is_units_and_billionths(units, nanos, want):
    row = sku("Nvidia Tesla T4 GPU running in Americas", 1)
    money = row["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]
    money |= {"units": units, "nanos": nanos}
    if units is None:
        del money["units"]
    assert [o.amount for o in parse(row)[0]] == [Decimal(want)]


@pytest.mark.parametrize(
    "row",
    [
        sku("DWS Defined Duration Nvidia H200 141GB GPU running in Americas", 5),
        sku("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas", 5),
        sku("Commitment v1: Nvidia Tesla T4 GPU running in Americas for 1 Year", 0.2, usage="Commit1Yr"),
        sku("Reserved Nvidia Tesla T4 GPU in Americas", 0.2),
        sku("Nvidia Tesla T4 Virtual Workstation GPU running in Americas", 0.2),
    ],
)
def test_time_boxed_and_committed_capacity_is_neither_on_demand_nor_spot(row):
    assert parse(row) == ([], [])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (sku("Nvidia RTX 6000 96GB GPU running in Americas", 0), "placeholder"),  # gpuhunt#183: a preview at 0
        (sku("Nvidia Tesla T4 GPU running in Americas", 1, unit="mo"), "billed by mo"),
        (sku("Nvidia Tesla T4 GPU running in Americas", 1, currency="EUR"), "in EUR"),
    ],
)
def test_what_is_no_price_of_an_hour_is_refused(row, reason):
    good, rejected = parse(row, sku("Nvidia L4 GPU running in Americas", 0.56))
    assert len(good) == 1
    assert reason in rejected[0].reason
