"""Oracle Cloud: shapes, parts and OCPUs. Figures are made up unless a source is named."""

import json
from decimal import Decimal

import pytest
from servers.past import SEEN_AT
from servers.price_api_oci import A10, DENSE, H100, PARTS, part, shape

from fitmart.flows.offers import normalise
from fitmart.flows.sources.prices import oci


def parse(*shapes, parts=PARTS):
    return oci.parse(json.dumps([{"items": list(shapes)}, {"items": list(parts)}]).encode(), SEEN_AT, "shapes")


def test_a_shape_costs_its_gpus_and_an_ocpu_is_two_vcpus():
    """VM.GPU.A10.1 has 15 OCPUs: 30 vCPUs, not 15 (docs.oracle.com, compute shapes)."""
    good, rejected = parse(A10, H100)
    assert rejected == []
    assert [(o.instance_type, o.commitment, o.amount) for o in good] == [
        ("VM.GPU.A10.1", "on_demand", Decimal(2)),
        ("VM.GPU.A10.1", "spot", Decimal(1)),
        ("BM.GPU.H100.8", "on_demand", Decimal(80)),
    ]
    assert (good[0].vcpus, good[0].host_memory_bytes, good[0].region) == (30, 240 * 2**30, None)
    assert (good[2].gpu_count, good[2].gpu_memory_gb, good[2].product_kind) == (8, 80, "bare_metal")


def test_parts_are_added_by_what_each_is_billed_by():
    mixed = shape(
        "VM.GPU.A10.2", 2, [("B00001", 30, "ocpu"), ("B00003", 30, "ocpu"), ("B00004", 480, "memory")]
    )  # 2 × 2 + 30 × 0.025 + 480 × 0.0015
    assert [o.amount for o in parse(mixed)[0]] == [Decimal("5.47")]


def test_fractional_quantities_and_shapes_without_gpus_harm_nothing():
    """BM.DenseIO.E5.128 has 81.6 of its disk."""
    assert len(parse(DENSE, A10)[0]) == 2


@pytest.mark.parametrize("change", [{"hidden": True}, {"status": "INACTIVE"}])
def test_what_is_not_sold_is_no_offer(change):
    assert parse(A10 | change) == ([], [])


def test_the_rack_in_a_name_is_no_part_of_the_shape():
    """dstackai/gpuhunt#262: "BM.GPU.GB200.4 (NVL72)" has four GPUs, and one vCPU a core."""
    good, _ = parse(shape("BM.GPU.GB200.4 (NVL72)", 4, [("B00002", 144, "ocpu")], gpuMemoryQty=768))
    assert (good[0].instance_type, good[0].gpu_count, good[0].vcpus, good[0].amount) == ("BM.GPU.GB200.4", 4, 144, 40)
    assert normalise(good).offers["gpu_count"].to_list() == [4]


@pytest.mark.parametrize(
    ("name", "told", "gpu_id"),
    [
        ("BM.GPU.MI355X.8", 288, "amd-mi355x"),  # of one GPU (dstackai/gpuhunt#262)
        ("BM.GPU.MI300X.8", 1536, "amd-mi300x"),  # of all
        ("BM.GPU.B200.8", 1440, "nvidia-b200-sxm"),
        ("BM.GPU4.8", 320, "nvidia-a100-sxm-40gb"),
        ("BM.GPU.A100-v2.8", 640, "nvidia-a100-sxm-80gb"),
        ("BM.GPU.L40S.4", 192, "nvidia-l40s"),
    ],
)
def test_memory_of_one_or_of_all_means_the_same_card(name, told, gpu_id):
    count = int(name[-1])
    good, _ = parse(shape(name, count, [("B00001", 112, "ocpu")], gpuMemoryQty=told))
    row = normalise(good).offers.row(0, named=True)
    assert (row["gpu_id"], row["gpu_count"], row["quality_flags"]) == (gpu_id, count, None)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], "B00001 is not in the price list"),
        ([part("B00001", "GPU Per Hour", 15, 18)], "2 prices"),  # two offers under one part: not averaged
        ([part("B00001", "GPU Per Hour", 2, model="MONTHLY_COMMIT")], "0 prices"),
        ([part("B00001", "GPU Per Month", 2)], "GPU Per Month"),
        ([part("B00001", "GPU Per Hour", 0)], "placeholder"),
    ],
)
def test_a_shape_without_one_price_is_refused(parts, reason):
    good, rejected = parse(A10, parts=parts)
    assert good == []
    assert reason in rejected[0].reason
