import io
import zipfile
from decimal import Decimal

import pytest
from servers.past import SEEN_AT, drain, past
from servers.price_server import gpuhunt_zip

from fitmart.flows.errors import TerminalError
from fitmart.flows.sources.prices import gpuhunt

H100 = {
    "instance_name": "x1.h100-8",
    "location": "zz-west-1",
    "price": "20.0000001",
    "cpu": "128",
    "memory": "1440.0",
    "gpu_count": "8",
    "gpu_name": "H100",
    "gpu_memory": "80.0",
    "spot": "False",
    "gpu_vendor": "nvidia",
    "provider_data": "{}",
}


def parse(provider, *rows):
    return gpuhunt.parse(gpuhunt_zip(provider, rows), SEEN_AT, f"{provider}/catalog.zip")


def test_a_row_becomes_an_offer_of_the_whole_instance():
    good, rejected = parse("oci", H100)
    assert rejected == []
    offer = good[0]
    assert (offer.provider_id, offer.instance_type, offer.region) == ("oci", "x1.h100-8", "zz-west-1")
    assert (offer.gpu_count, offer.gpu_memory_gb, offer.price_scope) == (8, 80.0, "instance")
    assert offer.amount == Decimal("20.000000")  # a millionth is enough
    assert (offer.commitment, offer.currency, offer.origin) == ("on_demand", "USD", "aggregator")
    assert offer.host_memory_bytes == 1440 * 2**30
    assert offer.observed_at == SEEN_AT


def test_lambda_memory_is_in_gigabytes():
    """gpuhunt multiplies Lambda's GiB by 1.074: 225 GiB stand as 241.65."""
    good, _ = parse("lambdalabs", H100 | {"memory": "241.65"})
    assert good[0].host_memory_bytes == pytest.approx(225 * 2**30, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"price": "0"}, "price"),  # gpuhunt#36: capacity blocks at 0 USD
        ({"price": "0.0"}, "price"),
        ({"price": ""}, "price"),
        ({"price": "-1"}, "price"),
        ({"price": "nan"}, "price"),
        ({"price": "cheap"}, "not a number"),
        ({"gpu_name": ""}, "without a name"),  # gpuhunt#41: gpu_count without a name
        ({"gpu_count": "0"}, "without a gpu_count"),
        ({"gpu_count": "0.5"}, "not a whole number"),
        ({"gpu_count": "100000"}, "gpu_count"),
        ({"spot": "maybe"}, "maybe"),
        ({"gpu_memory": "-80"}, "gpu_memory_gb"),
    ],
)
def test_a_bad_row_is_rejected_with_its_text_and_costs_no_other(change, reason):
    good, rejected = parse("gcp", H100 | change, H100)
    assert len(good) == 1
    assert reason in rejected[0].reason
    assert "x1.h100-8" in rejected[0].raw_text
    assert rejected[0].source_id == "gpuhunt"


def test_machines_without_gpus_are_no_offers():
    assert parse("aws", H100 | {"gpu_count": "0", "gpu_name": "", "gpu_memory": ""}) == ([], [])


def test_spot_is_an_offer_of_its_own_and_columns_may_come_in_any_order():
    text = "spot,gpu_name,gpu_count,price,instance_name,location,gpu_memory\nTrue,L4,1,0.21,g6.xlarge,eu-west-3,22.5\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("aws.csv", text)
    good, rejected = gpuhunt.parse(packed.getvalue(), SEEN_AT, "aws/catalog.zip")
    assert rejected == []
    assert (good[0].commitment, good[0].vcpus, good[0].host_memory_bytes) == ("spot", None, None)


@pytest.mark.parametrize("content", [b"", b"<html>404</html>", gpuhunt_zip("aws", [H100])[:200]])
def test_a_broken_zip_is_one_rejected_row(content):
    good, rejected = gpuhunt.parse(content, SEEN_AT, "aws/catalog.zip")
    assert good == []
    assert "not a zip" in rejected[0].reason


def test_fetch_asks_for_the_zip_of_a_new_version_only(server, http):
    for provider in gpuhunt.PROVIDERS:
        server.put_gpuhunt(provider, "20261130-7", [H100])
    first = list(gpuhunt.fetch(http, past()))
    assert {p.name for p in first} == {f"{p}/{f}" for p in gpuhunt.PROVIDERS for f in ("version", "catalog.zip")}
    assert all(p.url.startswith("https://dstack-gpu-pricing") for p in first)

    server.put_gpuhunt("oci", "20261130-8", [H100 | {"price": "19"}])
    second = list(gpuhunt.fetch(http, past(first)))
    assert [p.name for p in second] == ["oci/catalog.zip", "oci/version"]
    good, _ = gpuhunt.parse(second[0].content, SEEN_AT, second[0].name)
    assert good[0].amount == 19


def test_one_dead_provider_does_not_hold_back_the_others(server, http):
    """gpuhunt#214: one broken provider made every query fail."""
    for provider in gpuhunt.PROVIDERS:
        server.put_gpuhunt(provider, "20261130-7", [H100])
    server.faults["/gpuhunt/v3/nebius/version"] = 403
    server.faults["/gpuhunt/v3/oci/version"] = b"<html>maintenance</html>"
    got = []
    fetched = gpuhunt.fetch(http, past())
    with pytest.raises(TerminalError, match=r"2 of 9 .*oci.*nebius"):
        drain(fetched, got)
    assert len({p.name.partition("/")[0] for p in got}) == 7
