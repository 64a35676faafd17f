from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitmart.estimator.frames import FrameError
from fitmart.estimator.offers import (
    BEST_SCHEMA,
    CURRENT_SCHEMA,
    OFFER_SCHEMA,
    SOURCE_AGE_SCHEMA,
    best_offer,
    current_offers,
)

NOW = datetime(2026, 12, 1, tzinfo=UTC)
H100 = "nvidia-h100-sxm"
SOURCES = pl.DataFrame({"source_id": ["a", "b", "never"], "max_age_hours": [48, 24, None]}, schema=SOURCE_AGE_SCHEMA)


def offer(offer_id="1", usd=2.0, **more):
    count = more.get("gpu_count", 1)
    row = {
        "offer_id": offer_id,
        "provider_id": "p",
        "instance_type": offer_id,
        "gpu_id": H100,
        "gpu_count": count,
        "price_scope": "instance",
        "product_kind": "vm",
        "commitment": "on_demand",
        "usd_per_hour": usd,
        "usd_per_gpu_hour": usd / count,
        "source_id": "a",
        "origin": "aggregator",
        "observed_at": NOW - timedelta(hours=1),
    }
    return row | more


def offers(*rows):
    return pl.DataFrame(rows, schema=OFFER_SCHEMA)


def current(*rows, at=NOW):
    return current_offers(offers(*rows), SOURCES, at)


def best(*rows, counts=(1,), gpu_id=H100, **more):
    wanted = pl.DataFrame({"gpu_id": [gpu_id] * len(counts), "gpu_count": list(counts)})
    return best_offer(current(*rows), wanted, NOW, **more)


def prices(frame):
    return dict(zip(frame["gpu_count"], frame["usd_per_hour"], strict=True))


@pytest.mark.parametrize(
    ("rivals", "usd"),
    [
        ([offer(usd=3.0, origin="direct", observed_at=NOW - timedelta(days=9)), offer(usd=2.0)], 3.0),
        ([offer(usd=2.0, origin="seed"), offer(usd=3.0, observed_at=NOW - timedelta(days=9))], 3.0),
        # A price goes up as well as down: the newest, not the cheapest.
        ([offer(usd=23.92, observed_at=NOW - timedelta(days=60)), offer(usd=31.92)], 31.92),
        ([offer(usd=2.5, source_id="b"), offer(usd=2.5, source_id="a")], 2.5),
        ([offer(usd=1.0, observed_at=NOW + timedelta(seconds=1)), offer(usd=2.0)], 2.0),
    ],
)
def test_direct_before_aggregator_before_seed_then_the_newest(rivals, usd):
    for rows in (rivals, rivals[::-1]):
        got = current(*rows)
        assert got.height == 1
        assert got["usd_per_hour"][0] == usd


def test_an_earlier_day_sees_what_was_known_then():
    rows = [offer(usd=3.49, observed_at=datetime(2026, 10, 7, tzinfo=UTC))]
    rows.append(offer(usd=3.99, observed_at=datetime(2026, 10, 19, tzinfo=UTC)))
    assert current(*rows, at=datetime(2026, 10, 10, tzinfo=UTC))["usd_per_hour"].to_list() == [3.49]
    assert current(*rows)["usd_per_hour"].to_list() == [3.99]


@pytest.mark.parametrize(
    ("source_id", "hours", "want"),
    [("a", 47, False), ("a", 48, False), ("a", 49, True), ("b", 25, True), ("never", 9999, None), ("unknown", 1, None)],
)
def test_stale_is_older_than_the_source_allows_when_built(source_id, hours, want):
    got = current(offer(source_id=source_id, observed_at=NOW - timedelta(hours=hours)))
    assert got["is_stale"].to_list() == [want]


def test_an_offer_without_a_gpu_is_not_current():
    assert current(offer(gpu_id=None)).is_empty()


@pytest.mark.parametrize(
    ("spot", "want"),
    [
        ({"usd": 4.76}, True),  # spot 4.76 over 3.29 on demand
        ({"usd": 3.29}, True),  # SpotPrice = Price on every row of a file
        ({"usd": 3.10}, False),  # a small discount is a discount
        ({"usd": 4.76, "region": "elsewhere"}, False),  # compared within a region only
        ({"usd": 4.76, "source_id": "b"}, False),  # and within a source
    ],
)
def test_spot_not_below_on_demand_is_flagged_and_never_the_best(spot, want):
    usd = spot.pop("usd")
    rows = offer("1", 3.29, instance_type="x"), offer("2", usd, instance_type="x", commitment="spot", **spot)
    flags = current(*rows).filter(commitment="spot")["quality_flags"].to_list()
    assert (flags == ["spot_not_below_on_demand"]) == want
    assert best(*rows)["commitment"].to_list() == (["on_demand"] if want else ["on_demand", "spot"])


def test_the_flag_is_added_once_and_beside_others():
    rows = [offer("1", 2.0, instance_type="x")]
    rows.append(offer("2", 3.0, instance_type="x", commitment="spot", quality_flags="no_region"))
    rows.append(offer("3", 3.0, instance_type="x", commitment="spot", quality_flags="spot_not_below_on_demand"))
    assert current(*rows)["quality_flags"].to_list() == [
        None,
        "no_region|spot_not_below_on_demand",
        "spot_not_below_on_demand",
    ]


@pytest.mark.parametrize(
    ("terms", "flagged"),
    [
        ({"6mo": 2.86, "36mo": 3.09}, ["36mo"]),  # RunPod's list of 2026-06-15
        ({"12mo": 2.86, "36mo": 2.86}, []),
        ({"6mo": 2.0, "12mo": 1.8, "36mo": 1.9}, ["36mo"]),
        ({"12mo": 2.0, None: 3.0}, []),
        ({"36mo": 2.0}, []),
    ],
)
def test_a_longer_term_that_costs_more_is_mislabelled(terms, flagged):
    rows = [
        offer(str(term), usd, instance_type="m", commitment="reserved", commit_term=term) for term, usd in terms.items()
    ]
    got = current(*rows).filter(pl.col("quality_flags") == "tier_mislabelled")
    assert sorted(got["commit_term"]) == flagged
    other = [row | {"instance_type": row["offer_id"]} for row in rows]
    assert current(*other)["quality_flags"].is_null().all()


def test_a_per_gpu_price_serves_its_range_at_n_times_the_price():
    """dstack#1890: 8 × A4000 shown at 1.28 and billed 10.24."""
    got = best(offer(usd=1.28, price_scope="per_gpu", min_gpu_count=1, max_gpu_count=8), counts=(1, 2, 4, 8, 16))
    assert prices(got) == {1: 1.28, 2: 2.56, 4: 5.12, 8: 10.24}
    assert got["price_basis"].to_list() == ["offered", "scaled", "scaled", "scaled"]


def test_a_minimum_rent_is_not_sold_by_the_piece():
    """Lium's nodes of eight are not one GPU for an eighth."""
    got = best(offer(usd=1.0, price_scope="per_gpu", min_gpu_count=8, max_gpu_count=8), counts=(1, 8))
    assert prices(got) == {8: 8.0}


def test_an_instance_is_sold_whole():
    assert prices(best(offer(usd=16.0, gpu_count=8), counts=(1, 4, 8))) == {8: 16.0}


def test_a_gpu_without_its_host_is_never_the_best():
    """skypilot-catalog#31"""
    assert best(offer(usd=0.5, price_scope="gpu_only"), offer("2", 3.67)).row(0)[3:5] == ("2", 3.67)


@pytest.mark.parametrize(("kind", "want"), [("vm", 1), ("bare_metal", 1), (None, 1), ("managed", 0), ("serverless", 0)])
def test_managed_twins_are_other_products(kind, want):
    assert best(offer(product_kind=kind)).height == want


@pytest.mark.parametrize("flag", ["price_outlier", "estimated", "no_region|tier_mislabelled"])
def test_rows_in_doubt_stay_in_the_table_only(flag):
    assert best(offer(quality_flags=flag)).is_empty()
    assert best(offer(quality_flags="no_region|no_host_spec")).height == 1


def test_the_window_is_ninety_days_unless_told():
    old = offer(observed_at=NOW - timedelta(days=91))
    assert best(old).is_empty()
    assert best(old, window_days=92).height == 1


def test_of_equal_prices_the_certain_gpu_then_the_newest():
    rows = [offer("1", is_gpu_assumed=True), offer("3", observed_at=NOW - timedelta(days=2)), offer("2")]
    assert best(*rows)["offer_id"].to_list() == ["2"]


def test_only_that_gpu_and_only_wanted_counts():
    assert best(offer(gpu_id="nvidia-l4")).is_empty()
    assert best(offer(), counts=()).is_empty()


def test_a_frame_of_another_shape_is_refused():
    with pytest.raises(FrameError, match="offer_id"):
        current_offers(offers(offer()).drop("offer_id"), SOURCES, NOW)


ROWS = st.builds(
    offer,
    offer_id=st.sampled_from("123456"),
    usd=st.floats(0.1, 40).map(lambda x: round(x, 2)),
    gpu_count=st.sampled_from([1, 2, 4, 8]),
    price_scope=st.sampled_from(["instance", "per_gpu", "gpu_only"]),
    commitment=st.sampled_from(["on_demand", "spot", "reserved"]),
    origin=st.sampled_from(["direct", "aggregator", "seed"]),
    product_kind=st.sampled_from(["vm", "bare_metal", "managed"]),
    instance_type=st.just("x"),
    max_gpu_count=st.none() | st.just(8),
    observed_at=st.integers(0, 200).map(lambda days: NOW - timedelta(days=days)),
    quality_flags=st.none() | st.just("price_outlier"),
)


@settings(max_examples=60)
@given(st.lists(ROWS, max_size=12), st.randoms())
def test_the_best_is_no_dearer_than_any_that_serves_and_order_does_not_matter(rows, random):
    standing = current(*rows)
    shuffled = random.sample(rows, len(rows))
    assert standing.equals(current(*shuffled))
    assert standing.schema == CURRENT_SCHEMA
    assert standing["offer_id"].n_unique() == standing.height == len({r["offer_id"] for r in rows})
    wanted = pl.DataFrame({"gpu_id": [H100] * 4, "gpu_count": [1, 2, 4, 8]})
    got = best_offer(standing, wanted, NOW)
    assert got.schema == BEST_SCHEMA
    for gpu_count, commitment, usd in got.select("gpu_count", "commitment", "usd_per_hour").iter_rows():
        whole = standing.filter(
            pl.col("gpu_count") == gpu_count,
            pl.col("commitment") == commitment,
            pl.col("price_scope") != "gpu_only",
            pl.col("product_kind") != "managed",
            pl.col("quality_flags").is_null(),
            pl.col("observed_at") >= NOW - timedelta(days=90),
        )
        assert whole.is_empty() or usd <= whole["usd_per_hour"].min()
