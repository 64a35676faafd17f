from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from fitmart.estimator.offers import OFFER_SCHEMA, best_offer, current_offers
from fitmart.flows.offers import FX_SCHEMA, bundled_references, normalise
from fitmart.flows.records import Offer
from fitmart.flows.regions import bundled_regions, clean_region
from fitmart.flows.sources.prices import bundled
from fitmart.warehouse.snapshot import read_seed

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def offer(**more):
    row = {
        "provider_id": "oci",
        "instance_type": "zz.1",
        "gpu_name_raw": "H100 SXM 80GB",
        "gpu_count": 1,
        "price_scope": "instance",
        "commitment": "on_demand",
        "amount": Decimal("2.50"),
        "source_id": "test",
        "origin": "aggregator",
        "observed_at": NOW,
    }
    more = {k: Decimal(v) if k == "amount" else v for k, v in more.items()}
    return Offer(**row | more)


def one(**more):
    got = normalise([offer(**more)])
    assert got.rejected == []
    return got.offers.row(0, named=True)


def test_the_price_of_one_gpu_is_divided_once():
    got = one(gpu_count=8, amount="20")
    assert (got["usd_per_hour"], got["usd_per_gpu_hour"]) == (20.0, 2.5)
    assert (got["gpu_id"], got["is_gpu_assumed"]) == ("nvidia-h100-sxm", False)
    assert (got["min_gpu_count"], got["max_gpu_count"]) == (8, 8)


def test_the_frame_is_typed_and_empty_input_is_an_empty_frame():
    assert normalise([offer()]).offers.schema == OFFER_SCHEMA
    assert normalise([]).offers.schema == OFFER_SCHEMA


@pytest.mark.parametrize(
    ("alias", "provider_id"),
    [
        *(("datacrunch", "verda"), ("DataCrunch", "verda"), ("lambdalabs", "lambda"), ("vast", "vastai")),
        *(("cudocompute", "cudo"), ("oraclecloud", "oci"), ("latitude.sh", "latitude"), ("do", "digitalocean")),
        *(("thunder_compute", "thunder-compute"), ("OCI", "oci")),
    ],
)
def test_one_provider_by_any_name(alias, provider_id):
    assert one(provider_id=alias)["provider_id"] == provider_id


def test_an_unknown_provider_is_rejected_and_named():
    got = normalise([offer(provider_id="nobody"), offer(provider_id="nobody"), offer()])
    assert got.offers.height == 1
    assert [(r.reason, r.raw_text) for r in got.rejected] == [("unknown provider nobody", "nobody H100 SXM 80GB (× 2)")]


KEY = {"instance_type": "x", "region": "eu-west-1", "commit_term": "12mo", "tier": "secure", "commitment": "reserved"}


@pytest.mark.parametrize(
    "change",
    [
        *({"provider_id": "aws"}, {"instance_type": "y"}, {"gpu_name_raw": "H100 PCIe 80GB"}, {"gpu_count": 2}),
        *({"region": "eu-west-2"}, {"commitment": "on_demand"}, {"commit_term": "36mo"}, {"tier": "community"}),
    ],
)
def test_each_part_of_the_natural_key_makes_another_offer(change):
    assert one(**KEY)["offer_id"] != one(**KEY | change)["offer_id"]


@pytest.mark.parametrize(
    "change",
    [
        *({"amount": "9"}, {"source_id": "other"}, {"observed_at": NOW - timedelta(days=9)}, {"vcpus": 4.0}),
        *({"url": "https://example.org"}, {"gpu_name_raw": "NVIDIA H100 SXM5 80GB"}, {"region": "EU-WEST-1"}),
        *({"instance_type": "X"}, {"origin": "direct"}),
    ],
)
def test_what_sources_write_differently_is_the_same_offer(change):
    assert one(**KEY)["offer_id"] == one(**KEY | change)["offer_id"]


def test_the_key_is_stable_between_runs():
    """The SHA-256 of the eight parts joined by 0x1f, made by hand: history hangs on it.

    printf 'oci\\x1fx\\x1fnvidia-h100-sxm\\x1f1\\x1feu-west-1\\x1freserved\\x1f12mo\\x1fsecure' | sha256sum
    """
    assert one(**KEY)["offer_id"] == "715a629f868984cf"


def test_azure_types_are_known_with_and_without_their_prefix():
    short = one(provider_id="azure", instance_type="NC24ads A100 v4", gpu_name_raw="A100 80GB")
    long = one(provider_id="azure", instance_type="Standard_NC24ads_A100_v4", gpu_name_raw="A100 80GB")
    assert short["offer_id"] == long["offer_id"]
    assert short["instance_type"] == "NC24ads A100 v4"  # as it was written


def test_the_count_that_azures_own_list_gets_wrong():
    """Azure/azure-cli#31176: 12 GPUs in an ND96isr_H100_v5, truly 8."""
    got = one(
        provider_id="azure", instance_type="Standard_ND96isr_H100_v5", gpu_name_raw="H100", gpu_count=12, amount="98.32"
    )
    assert (got["gpu_count"], got["usd_per_gpu_hour"]) == (8, 12.29)
    assert got["gpu_id"] == "nvidia-h100-sxm"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"gpu_name_raw": "GPU H"}, "hides the card"),
        ({"gpu_name_raw": "A10", "instance_type": "Standard_NV6ads_A10_v5", "provider_id": "azure"}, "share"),
        ({"amount": "0.001"}, "implausible"),
        ({"amount": "400"}, "implausible"),
        ({"currency": "XAU"}, "no exchange rate for XAU"),
    ],
)
def test_what_cannot_be_an_offer_is_rejected_with_the_reason(more, reason):
    got = normalise([offer(**more)])
    assert got.offers.is_empty()
    assert reason in got.rejected[0].reason


def test_an_opening_bid_is_no_price():
    """skypilot#9156: H200 at 1.00 and B200 at 0.01, where machines are auctioned from any bid."""
    providers = ("aws", "azure", "gcp", "lambda", "runpod", "verda")
    rows = [offer(provider_id=p, gpu_name_raw="B200", amount=str(5 + i)) for i, p in enumerate(providers)]
    bid = offer(provider_id="mithril", gpu_name_raw="B200", amount="1.0")
    spot = offer(provider_id="verda", gpu_name_raw="B200", amount="1.0", commitment="spot")
    early = offer(provider_id="mithril", gpu_name_raw="B200", amount="1.0", observed_at=NOW - timedelta(days=99))
    got = normalise([*rows, bid, spot, early])
    assert got.offers.height == 8  # spot falls deep; on the early day there was no median
    assert "where the median is 7.0" in got.rejected[0].reason


def test_of_equal_keys_in_one_payload_the_cheapest_stays_and_a_difference_is_flagged():
    twins = normalise([offer(), offer()]).offers
    assert twins["quality_flags"].to_list() == [None]
    clash = normalise([offer(amount="3"), offer(amount="2.5"), offer(amount="2.8")]).offers
    assert clash.select("usd_per_hour", "quality_flags").rows() == [(2.5, "key_clash")]


def test_two_sources_of_one_offer_are_both_kept():
    got = normalise([offer(amount="40", source_id="a"), offer(amount="32", source_id="b")]).offers
    assert got["offer_id"].n_unique() == 1
    assert sorted(got["usd_per_hour"]) == [32.0, 40.0]


RATES = pl.DataFrame(
    [("EUR", date(2026, 1, 1), 1.10), ("EUR", date(2026, 6, 1), 1.20)],
    schema=["currency", "on", "usd_per_unit"],
    orient="row",
).select("currency", "on", "usd_per_unit", source_id=pl.lit("ecb"), observed_on=pl.col("on"))


@pytest.mark.parametrize(
    ("day", "rate", "fx_on"),
    [
        (datetime(2026, 5, 31, tzinfo=UTC), 1.10, date(2026, 1, 1)),
        (datetime(2026, 6, 1, tzinfo=UTC), 1.20, date(2026, 6, 1)),
        (datetime(2026, 11, 1, tzinfo=UTC), 1.20, date(2026, 6, 1)),
        (datetime(2025, 3, 1, tzinfo=UTC), 1.10, date(2026, 1, 1)),  # older than any: the first there is
    ],
)
def test_another_currency_is_kept_with_its_rate_and_its_day(day, rate, fx_on):
    references = replace(bundled_references(), rates=RATES.cast(dict(FX_SCHEMA)))
    got = normalise([offer(currency="EUR", amount="2", observed_at=day)], references=references).offers.row(
        0, named=True
    )
    assert (got["amount"], got["currency"], got["fx_rate"], got["fx_on"]) == (2.0, "EUR", rate, fx_on)
    assert got["usd_per_hour"] == pytest.approx(2 * rate)


def test_dollars_need_no_rate():
    got = one()
    assert (got["fx_rate"], got["fx_on"]) == (1.0, None)


@pytest.mark.parametrize(
    ("instance_type", "provider_id", "kind"),
    [
        ("ml.p5.48xlarge", "aws", "managed"),  # SageMaker's twin of p5
        ("p5.48xlarge", "aws", "vm"),
        ("BM.GPU.H100.8", "oci", "bare_metal"),
        ("VM.GPU.A10.1", "oci", "vm"),
        ("vbm-256c-2048gb-8-mi300x-gpu", "vultr", "bare_metal"),
        ("g4dn.metal", "aws", "bare_metal"),
    ],
)
def test_the_kind_of_product_is_read_from_the_machine_type(instance_type, provider_id, kind):
    got = normalise([offer(instance_type=instance_type, provider_id=provider_id, gpu_name_raw="T4")]).offers
    assert got["product_kind"].to_list() == [kind]


def test_a_name_and_a_machine_type_that_contradict_are_flagged():
    got = one(provider_id="hyperstack", instance_type="n3-A100x1", gpu_name_raw="A100_80G_SXM4", gpu_memory_gb=80.0)
    assert (got["is_gpu_assumed"], got["quality_flags"]) == (True, "source_conflict")


def test_memory_that_is_not_the_cards_is_flagged_and_the_gpu_kept():
    got = one(gpu_name_raw="B300", gpu_memory_gb=180.0)
    assert (got["gpu_id"], got["quality_flags"]) == ("nvidia-b300-sxm", "memory_differs_from_spec")


@pytest.mark.parametrize(
    ("provider_id", "region", "country", "is_eu"),
    [
        ("aws", "eu-central-1", "DE", True),
        ("aws", "eu-west-2", "GB", False),
        ("aws", "eu-central-2", "CH", False),
        ("azure", "westeurope", "NL", True),
        ("azure", "eastus2", "US", False),
        ("gcp", "europe-west4", "NL", True),
        ("gcp", "europe-west9", "FR", True),
        ("gcp", "europe-west8", "IT", True),
        ("gcp", "europe-west10", "DE", True),
        ("gcp", "europe-west2", "GB", False),
        ("oci", "eu-stockholm-1", "SE", True),
        ("ovhcloud", "GRA11", "FR", True),
        ("verda", "ICE-01", "IS", False),  # in the EEA, not in the EU
        ("verda", "FIN-03", "FI", True),
        ("nebius", "eu-north1", "FI", True),
        ("runpod", "EU-RO-1", "RO", True),
        ("runpod", "EUR-IS-2", "IS", False),
        ("runpod", "US-KS-2", "US", False),
        ("vastai", "France, FR, EU", "FR", True),
        ("vastai", "Texas, US", "US", False),
        ("spheron", "warsaw-poland-1", "PL", True),
        ("shadeform", "desmoines-usa-1", "US", False),
        ("hyperbolic", "default", None, None),
        ("vultr", "", None, None),
        ("vastai", ", US, NA", "US", False),
        ("lium", "somewhere", None, None),
    ],
)
def test_country_and_eu_follow_from_the_region(provider_id, region, country, is_eu):
    got = one(provider_id=provider_id, region=region or None, gpu_name_raw="RTX 4090", amount="0.5")
    assert (got["country"], got["is_eu"]) == (country, is_eu)


@pytest.mark.parametrize("text", ["", "global", "default", " ", ", ", None])
def test_a_region_that_is_no_place_is_null(text):
    assert clean_region(text) is None


def test_the_bundled_offers_come_through_as_they_are():
    sifted = bundled.read()
    assert sifted.rejected == []
    got = normalise(sifted.good)
    assert len(got.rejected) <= 10
    assert all("implausible" in r.reason for r in got.rejected)
    seed = read_seed("offer")
    assert got.offers["usd_per_hour"].sum() == pytest.approx(seed["usd_per_hour"].sum(), rel=0.02)
    assert got.offers["gpu_id"].null_count() == 0


def test_the_bundled_regions_agree_with_the_countries_that_were_looked_up_by_hand():
    rows = read_seed("offer").filter(pl.col("region").is_not_null(), pl.col("country").is_not_null())
    for provider_id, region, country in rows.select("provider_id", "region", "country").unique().iter_rows():
        assert bundled_regions().country(provider_id, region) == country, (provider_id, region)


def test_from_records_to_the_cheapest():
    rows = [
        offer(provider_id="runpod", gpu_count=1, price_scope="per_gpu", max_gpu_count=8, amount="2.0"),
        offer(provider_id="aws", instance_type="p5.48xlarge", gpu_name_raw="H100", gpu_count=8, amount="55.04"),
    ]
    got = normalise(rows).offers
    sources = pl.DataFrame({"source_id": ["test"], "max_age_hours": [24]})
    wanted = pl.DataFrame({"gpu_id": ["nvidia-h100-sxm"] * 2, "gpu_count": [1, 8]})
    best = best_offer(current_offers(got, sources, NOW), wanted, NOW)
    assert best.select("gpu_count", "usd_per_hour", "price_basis", "provider_id").rows() == [
        (1, 2.0, "offered", "runpod"),
        (8, 16.0, "scaled", "runpod"),
    ]
