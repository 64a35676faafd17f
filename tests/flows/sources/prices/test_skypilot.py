from decimal import Decimal

import pytest
from servers.past import SEEN_AT, drain, past

from fitmart.flows.errors import TerminalError
from fitmart.flows.sources.prices import skypilot

HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"


def parse(cloud, text):
    return skypilot.parse(text.encode(), SEEN_AT, f"{cloud}/vms.csv")


def info(size, count=2):
    return (
        f"\"{{'Gpus': [{{'Name': 'H100', 'Count': {count}.0, 'MemoryInfo': {{'SizeInMiB': {size}}}}}], "
        f"'TotalGpuMemoryInMiB': {size * count}}}\""
    )


def test_price_and_spot_price_of_one_row_are_two_offers():
    good, rejected = parse("verda", HEADER + f"zz_2x_h100,H100,2.0,52.0,450.0,6.40,zz-1,{info(81920)},2.10\n")
    assert rejected == []
    on_demand, spot = good
    assert (on_demand.commitment, on_demand.amount) == ("on_demand", Decimal("6.40"))
    assert (spot.commitment, spot.amount) == ("spot", Decimal("2.10"))
    assert (spot.gpu_count, spot.gpu_memory_gb, spot.vcpus, spot.host_memory_bytes) == (2, 80, 52, 450 * 2**30)


@pytest.mark.parametrize(
    ("price", "spot", "want"),
    [
        ("6.4", "", ["on_demand"]),
        ("6.4", "0.0", ["on_demand"]),  # SpotPrice 0.00 means that there is none
        ("", "2.1", ["spot"]),  # verda's 8B200.240V, spheron's -spot
        ("nan", "2.1", ["spot"]),  # skypilot-catalog#50
    ],
)
def test_an_empty_or_zero_price_is_no_offer(price, spot, want):
    good, rejected = parse("verda", HEADER + f"zz,H100,1,8,64,{price},zz-1,,{spot}\n")
    assert ([o.commitment for o in good], rejected) == (want, [])


@pytest.mark.parametrize(("price", "spot"), [("0", "0"), ("", ""), ("0.0", "")])
def test_a_row_without_any_price_is_rejected(price, spot):
    good, rejected = parse("azure", HEADER + f"zz,H100,1,8,64,{price},zz-1,,{spot}\n")
    assert good == []
    assert rejected[0].reason == "no price above zero"


@pytest.mark.parametrize(
    ("cloud", "gpu_info", "want"),
    [
        ("nebius", info(0), None),  # Nebius states 0
        ("hyperstack", "null", None),
        ("paperspace", "H100", None),
        ("aws", info(81920), 80.0),
        ("vast", info(163840), 80.0),  # of both GPUs together
        ("primeintellect", '"{""Gpus"": [{""Name"": ""H100"", ""MemoryInfo"": {""SizeInMiB"": 163840}}]}"', 80.0),
        ("runpod", info(80), 80.0),  # GiB in a column of MiB
        ("shadeform", info(80), 80.0),
    ],
)
def test_memory_of_one_gpu_in_every_dialect_of_gpu_info(cloud, gpu_info, want):
    good, _ = parse(cloud, HEADER + f"zz,H100,2,8,64,6.4,zz-1,{gpu_info},\n")
    assert good[0].gpu_memory_gb == want


def test_runpod_writes_gpu_memory_where_the_hosts_belongs():
    """skypilot#6824"""
    good, _ = parse("runpod", HEADER + "1x_H100_SECURE,H100,1,8,80,2.99,US,,\n")
    assert (good[0].host_memory_bytes, good[0].tier) == (None, "secure")


def test_gcp_instance_is_gpu_plus_host():
    """skypilot-catalog#31: 2.93 for the A100 and 0.74 for its a2-highgpu-1g are one machine of 3.67."""
    rows = (
        "a2-highgpu-1g,,,12,85,0.74,us-central1,,0.25\n"
        "a2-highgpu-1g,A100,1,,,2.93,us-central1,,1.17\n"
        "a4-highgpu-8g,,,224,3968,0,us-central1,,0\n"
        "a4-highgpu-8g,B200,8,,,88.0,us-central1,,\n"  # its GPU price includes the host (skypilot#8125)
        ",T4,1,,,0.35,us-central1,,0.14\n"
    )
    good, rejected = parse("gcp", HEADER + rows)
    assert rejected == []
    assert [(o.gpu_name_raw, o.commitment, o.amount, o.price_scope) for o in good] == [
        ("A100", "on_demand", Decimal("3.67"), "instance"),
        ("A100", "spot", Decimal("1.42"), "instance"),
        ("B200", "on_demand", Decimal("88.0"), "instance"),
        ("T4", "on_demand", Decimal("0.35"), "gpu_only"),
        ("T4", "spot", Decimal("0.14"), "gpu_only"),
    ]
    assert good[0].vcpus == 12
    assert good[0].host_memory_bytes == 85 * 2**30


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("tpu-v5litepod-8", ("tpu-v5litepod", 8)),  # named by chips
        ("tpu-v6e-4", ("tpu-v6e", 4)),
        ("tpu-v5p-8", ("tpu-v5p", 4)),  # named by cores, two to a chip
        ("tpu-v4-16", ("tpu-v4", 8)),
        ("H100", ("H100", 1)),
    ],
)
def test_a_tpu_slice_is_its_chips(name, want):
    good, _ = parse("gcp", HEADER + f",{name},1,,,10,us-central1,,\n")
    assert (good[0].gpu_name_raw, good[0].gpu_count) == want


def test_columns_are_read_by_header_and_quoted_commas_are_data():
    header = "Region,Price,AcceleratorName,InstanceType,SpotPrice,AcceleratorCount\n"
    text = header + '"France, FR, EU",0.3,RTX_4090,1x-RTX_4090,0.00,1.0\n'
    good, rejected = parse("vast", text)
    assert rejected == []
    assert (good[0].region, good[0].gpu_count, good[0].tier) == ("France, FR, EU", 1, "marketplace")


def test_prices_are_kept_to_a_millionth():
    good, _ = parse("primeintellect", HEADER + "zz,H100,1,8,64,5.8854999999999995,zz-1,,\n")
    assert good[0].amount == Decimal("5.885500")
    assert good[0].seller == "primeintellect"


def test_a_file_that_is_not_text_is_one_rejected_row():
    good, rejected = skypilot.parse(b"\xff\xfe\x00", SEEN_AT, "aws/vms.csv")
    assert good == []
    assert "not readable" in rejected[0].reason


def test_fetch_goes_on_past_clouds_that_fail(server, http):
    for cloud in skypilot.CLOUDS[:-2]:
        server.put_skypilot(cloud, HEADER)
    server.faults["/raw/skypilot-org/skypilot-catalog/master/catalogs/v8/aws/vms.csv"] = b"<html>rate limited</html>"
    got, fetched = [], skypilot.fetch(http, past())
    with pytest.raises(TerminalError, match=r"3 of \d+ clouds failed: aws: .*not CSV.*verda.*404.*yotta"):
        drain(fetched, got)
    assert [p.name for p in got] == [f"{cloud}/vms.csv" for cloud in skypilot.CLOUDS[1:-2]]
