"""Costs: by hand, of that very GPU and count, and null where nobody offers it."""

import polars as pl
import pytest

from fitmart.estimator.cost import KEY, with_cost

SPEED = pl.DataFrame(
    [
        ("a/b", "bf16", "vllm", "h100", 2, 8192, 1000.0, 500.0, 2000.0),
        ("a/b", "bf16", "vllm", "h100", 4, 8192, 1800.0, 900.0, 3600.0),
        ("a/b", "bf16", "vllm", "mystery", 1, 8192, 10.0, 5.0, 20.0),
    ],
    schema=[*KEY, "throughput_tokens_per_s", "throughput_tokens_per_s_low", "throughput_tokens_per_s_high"],
    orient="row",
)
OFFERS = pl.DataFrame(
    [
        ("h100", 2, "on_demand", "two", 5.76),
        ("h100", 2, "spot", "cheap", 2.88),
        ("h100", 8, "on_demand", "eight", 20.0),
    ],
    schema=["gpu_id", "gpu_count", "commitment", "offer_id", "usd_per_hour"],
    orient="row",
)
GPUS = pl.DataFrame({"gpu_id": ["h100", "mystery"], "tdp_w": [700.0, None], "purchase_usd": [25_000.0, None]})


@pytest.fixture
def rows():
    return with_cost(SPEED, OFFERS, GPUS, utilisation=0.4, usd_per_kwh=0.15).rows(named=True)


def test_dollars_of_a_million_tokens(rows):
    # 5.76 $/h ÷ (1000 tokens/s × 0.4 × 3600 s) × 1e6 = 4.00 $; at half and twice the speed 8 and 2
    assert rows[0]["usd_per_mtok"] == pytest.approx(4.0)
    assert (rows[0]["usd_per_mtok_low"], rows[0]["usd_per_mtok_high"]) == pytest.approx((2.0, 8.0))


def test_a_month_its_power_and_the_payback(rows):
    # 5.76 × 730 h = 4,204.80 $; 2 × 0.7 kW × 730 h × 0.15 = 153.30 $; 50,000 ÷ 4,051.50 = 12.34 months
    assert rows[0]["usd_per_month"] == pytest.approx(4204.80)
    assert rows[0]["power_usd_per_month"] == pytest.approx(153.30)
    assert rows[0]["payback_months"] == pytest.approx(12.341, rel=1e-3)


def test_the_offer_is_of_that_gpu_and_count(rows):
    assert (rows[0]["on_demand_offer_id"], rows[0]["spot_offer_id"]) == ("two", "cheap")


def test_without_an_offer_there_is_no_price(rows):
    for row in rows[1:]:
        prices = ("on_demand_offer_id", "spot_offer_id", "usd_per_hour", "usd_per_mtok", "payback_months")
        assert [row[name] for name in prices] == [None] * len(prices)
