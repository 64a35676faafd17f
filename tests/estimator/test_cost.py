"""Costs: by hand, of that very GPU and count, and null where nobody offers it."""

import polars as pl
import pytest

from fitmart.estimator.cost import (
    KEY,
    api_usd_per_mtok,
    break_even_tokens_per_day,
    payback_months,
    scale_to_zero_usd_per_month,
    with_cost,
)

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


def test_a_blended_million_is_a_quarter_of_one_of_answers(rows):
    # of four tokens one is answer: 4.00 $ for a million answers and their three million tokens of prompts
    ends = ("", "_low", "_high")
    assert [rows[0][f"usd_per_mtok_blended{end}"] for end in ends] == pytest.approx([1.0, 0.5, 2.0])


def test_a_month_at_other_hours_and_power_prices():
    row = with_cost(SPEED, OFFERS, GPUS, hours=200, usd_per_kwh=0.30).row(0, named=True)
    # 5.76 × 200 h; 2 × 0.7 kW × 200 h × 0.30
    assert (row["usd_per_month"], row["power_usd_per_month"]) == pytest.approx((1152.0, 84.0))


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        # three parts at 0.40 and one at 1.00: 0.55 $
        (api_usd_per_mtok(pl.lit(0.40), pl.lit(1.00)), 0.55),
        # 1,000 $ a month are 32.877 $ a day of 24 of 730 hours; at 0.55 $ a million that buys 59.776 M tokens
        (break_even_tokens_per_day(pl.lit(1000.0), pl.lit(0.55)), 59.776e6),
        (break_even_tokens_per_day(pl.lit(1000.0), pl.lit(0.0)), None),
        # 2 $ an hour, 8 hours a day, 30.417 days
        (scale_to_zero_usd_per_month(pl.lit(2.0), 8), 486.67),
        (payback_months(pl.lit(100.0), pl.lit(50.0), pl.lit(60.0)), None),
    ],
)
def test_prices_by_hand(expression, want):
    assert pl.select(expression).item() == (want if want is None else pytest.approx(want, rel=1e-4))
