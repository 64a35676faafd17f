"""The gates at entry, and the known faults of price lists that they are there for (each with where it was seen)."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from fitmart.flows.gates import believed, is_shrunk, pass_versions
from fitmart.flows.landing import land
from fitmart.flows.price_tables import read_price_tables
from fitmart.flows.sources import registry
from fitmart.flows.sources.contract import Landed, Payload
from fitmart.flows.sources.prices import gpuhunt, skypilot
from fitmart.flows.sources.tokens import openrouter
from fitmart.warehouse.reference import load_reference

START = datetime(2026, 10, 1, tzinfo=UTC)
REFERENCE = load_reference()


def at(hours):
    return START + timedelta(hours=hours)


def version(hours, sha):
    return Landed(source_id="s", name="list", url="u", observed_at=at(hours), payload_sha256=sha, size_bytes=1)


@pytest.mark.parametrize(
    ("before", "now", "shrunk"),
    [
        (100, 51, False),
        (100, 50, True),
        (100, 0, True),
        (4, 2, True),
        (3, 1, False),
        (2, 1, False),
        (1, 0, True),
        (0, 0, False),
    ],
)
def test_half_of_a_list_is_no_list(before, now, shrunk):
    assert is_shrunk(now, before) is shrunk


def passed(counts, moment_hours=24):
    versions = [version(hour, str(number)) for number, hour in enumerate(counts)]
    got = pass_versions(versions, list(counts.values()), at(moment_hours))
    return [(v.observed_at - START).total_seconds() / 3600 for v in got.versions], [r.reason for r in got.rejected]


@pytest.mark.parametrize(
    ("counts", "hours", "reasons"),
    [
        pytest.param({0: 100, 1: 98, 2: 101}, [0, 1, 2], [], id="all is well"),
        pytest.param(
            {0: 100, 1: 40},
            [0],
            ["quarantined: 40 records after 100 of 2026-10-01 00:00, which stay in use"],
            id="shrunk by more than half",
        ),
        pytest.param({0: 100, 1: 40, 2: 99}, [0, 2], [], id="whole again"),
        pytest.param(
            {0: 100, 1: 0, 2: 0},
            [0],
            ["quarantined: 0 records after 100 of 2026-10-01 00:00, which stay in use"],
            id="empty",
        ),
        pytest.param({0: 100, 1: None}, [0], [], id="a file that cannot be read is told by landing"),
        pytest.param({0: None, 1: 3}, [1], [], id="the first that can be read counts"),
        pytest.param({}, [], [], id="nothing"),
    ],
)  # fmt: skip
def test_a_shrunk_document_is_quarantined_and_the_last_good_one_stays(counts, hours, reasons):
    assert passed(counts) == (hours, reasons)


def test_a_list_that_stays_small_is_believed_after_a_week_but_never_an_empty_one():
    assert passed({0: 100, 1: 40}, moment_hours=24 * 7)[0] == [0]
    assert passed({0: 100, 1: 40}, moment_hours=24 * 7 + 1)[0] == [0, 1]
    assert passed({0: 100, 1: 40, 24 * 8: 39, 24 * 9: 41}, moment_hours=24 * 9)[0] == [0, 1, 24 * 8, 24 * 9]
    assert passed({0: 100, 1: 0}, moment_hours=24 * 90)[0] == [0]


MARKET = (2.0, 2.2, 2.4, 2.6, 2.8)  # five prices make a median: 2.4


def spans(**suspect):
    market = [{"provider_id": f"p{n}", "usd_per_gpu_hour": usd} for n, usd in enumerate(MARKET)]
    usual = {
        "gpu_id": "nvidia-h100-sxm", "commitment": "on_demand", "origin": "direct", "valid_from": datetime(2026, 10, 3),
        "seen_count": 1, "is_confirmed": False,
    }  # fmt: skip
    return pl.DataFrame([usual | row for row in (*market, {"provider_id": "suspect"} | suspect)])


@pytest.mark.parametrize(
    ("suspect", "why"),
    [
        pytest.param({"usd_per_gpu_hour": 2.0}, None, id="a price like others"),
        pytest.param({"usd_per_gpu_hour": 19.0}, None, id="dear but within eight times"),
        pytest.param({"usd_per_gpu_hour": 21.0}, "seen once: 21.0 USD", id="beyond eight times"),
        pytest.param({"usd_per_gpu_hour": 21.0, "seen_count": 2}, None, id="seen in two versions"),
        pytest.param({"usd_per_gpu_hour": 21.0, "is_confirmed": True}, None, id="seen by two looks"),
        pytest.param({"usd_per_gpu_hour": 21.0, "origin": "seed"}, None, id="looked at by a person"),
        pytest.param({"usd_per_gpu_hour": 0.28, "commitment": "spot"}, "seen once: 0.28 USD", id="spot, an eighth"),
        # an auction opens at 1 USD for eight H200 (skypilot-org/skypilot#9156), however often it is seen
        pytest.param({"usd_per_gpu_hour": 0.125, "seen_count": 99}, "implausible", id="a bid floor"),
        # per 1,000 hours or for all of a rack (BerriAI/litellm#23503 of tokens)
        pytest.param({"usd_per_gpu_hour": 2990.0, "seen_count": 99}, "implausible", id="a wrong unit"),
        pytest.param({"usd_per_gpu_hour": 0.0001, "gpu_id": "other"}, "implausible", id="a placeholder"),
        pytest.param({"usd_per_gpu_hour": 21.0, "gpu_id": "other"}, None, id="no median, no judgement"),
    ],
)  # fmt: skip
def test_prices_far_from_the_market_have_to_be_seen_twice(suspect, why):
    kept, refused = believed(spans(**suspect))
    assert kept.height == 5 + (why is None)
    assert [row for row in refused["why"] if not row.startswith(why or "?")] == []
    assert refused["provider_id"].to_list() == ([] if why is None else ["suspect"])


def test_a_price_that_began_last_month_still_makes_the_median():
    early = spans(usd_per_gpu_hour=40.0).with_columns(
        valid_from=pl.when(pl.col("provider_id") == "suspect")
        .then("valid_from")
        .otherwise(pl.lit(datetime(2026, 9, 9)))
    )
    assert believed(early)[1]["provider_id"].to_list() == ["suspect"]


HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Land a table of SkyPilot's at an hour; read the tables of prices."""
    live = {"prices": (gpuhunt, skypilot), "tokens": (openrouter,)}
    monkeypatch.setattr(registry, "modules", lambda kind: live[kind])

    class Shop:
        def put(self, hours, *rows, text=None):
            content = text if text is not None else "\n".join((HEADER, *rows)).encode()
            land(
                tmp_path / "landing",
                skypilot.SOURCE_ID,
                [Payload(name="lambda/vms.csv", content=content, url="u")],
                at(hours),
            )

        def tables(self, hours=1000):
            return read_price_tables(tmp_path / "landing", [], REFERENCE, at(hours))

        def offers(self, hours=1000):
            return sorted(
                self.tables(hours).frames["offer"].select("instance_type", "commitment", "usd_per_hour").rows()
            )

    return Shop()


def row(name, usd, *, gpus=1, spot="", region="us-east-1"):
    return f"{name},H100-SXM,{gpus}.0,26,225,{usd},{region},,{spot}"


TEN = [row(f"m{n}", 2 + n / 10) for n in range(10)]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("\n".join((HEADER, *TEN[:5])).encode(), id="cut in half"),  # dstackai/gpuhunt#255
        pytest.param(b"null", id="null"),  # Hot Aisle
        pytest.param(HEADER.encode(), id="only its header"),  # MicrosoftDocs/azure-docs#73461
        pytest.param(b"<html>Too many requests</html>", id="a page"),
    ],
)
def test_a_feed_that_is_empty_or_cut_delists_nothing(shop, content):
    shop.put(0, *TEN)
    before = shop.offers(hours=2)
    assert len(before) == 10
    shop.put(1, text=content)
    found = shop.tables(hours=2)
    assert shop.offers(hours=2) == before
    assert found.frames["offer_history"]["valid_to"].is_null().all()
    assert [r.raw_text for r in found.rejected if r.reason.startswith("quarantined: ")] == ["lambda/vms.csv"]
    shop.put(2, *TEN[:9])
    assert len(shop.offers(hours=3)) == 9


def test_a_price_of_zero_or_less_is_no_offer(shop):
    # Azure's H100 at 0 USD (skypilot-org/skypilot#3615), spot "0.00" for none (SkyPilot's Vast table)
    shop.put(
        0, row("zero", 0, spot="0.00"), row("negative", -1), row("good", 2, spot="0.00"), row("spot-only", "", spot=1)
    )
    assert shop.offers() == [("good", "on_demand", 2.0), ("spot-only", "spot", 1.0)]
    assert len(shop.tables().rejected) == 2


def test_the_price_of_eight_is_the_price_of_eight(shop):
    # dstackai/dstack#1890: 8 × A4000 shown at the price of one
    shop.put(0, row("eight", 20, gpus=8))
    offer = shop.tables().frames["offer"].row(0, named=True)
    assert (offer["usd_per_hour"], offer["usd_per_gpu_hour"], offer["gpu_count"]) == (20.0, 2.5, 8)


def test_a_spot_price_not_below_on_demand_is_flagged_and_not_the_best(shop):
    # skypilot-org/skypilot#4914: A40 spot 0.49, on demand 0.44
    shop.put(0, row("m", 2.0, spot=2.2), row("n", 3.0, spot=1.0))
    frames = shop.tables().frames
    flags = dict(
        frames["offer"].filter(pl.col("commitment") == "spot").select("instance_type", "quality_flags").iter_rows()
    )
    assert flags == {"m": "spot_not_below_on_demand", "n": None}
    assert frames["best_offer"].filter(pl.col("commitment") == "spot")["usd_per_hour"].to_list() == [1.0]


def test_an_outlier_waits_for_a_second_look(shop):
    market = [row(f"m{n}", usd, region=f"r{n}") for n, usd in enumerate(MARKET)]
    shop.put(0, *market)
    shop.put(1, *market, row("far", 30))
    assert "far" not in [name for name, *_ in shop.offers(hours=2)]
    assert any(r.reason.startswith("seen once: 30.0 USD") for r in shop.tables(hours=2).rejected)
    shop.put(2, *market[:4], row("m4", 2.9, region="r4"), row("far", 30))
    assert ("far", "on_demand", 30.0) in shop.offers(hours=3)


def test_prices_go_up_as_well_as_down(shop):
    # p5.48xlarge 98.32 → 55.04, Lambda's 8 × H100 23.92 → 31.92: the newest stands, the old ones are history
    shop.put(0, row("a", 98.32, gpus=8), row("b", 23.92, gpus=8))
    shop.put(5, row("a", 55.04, gpus=8), row("b", 31.92, gpus=8))
    assert shop.offers() == [("a", "on_demand", 55.04), ("b", "on_demand", 31.92)]
    history = shop.tables().frames["offer_history"].sort("instance_type", "valid_from")
    assert history["usd_per_hour"].to_list() == [98.32, 55.04, 23.92, 31.92]
