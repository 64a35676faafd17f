"""Given the tiny catalog's history, each view and macro of prices over time gives the rows one would write by hand."""

from datetime import date, datetime
from decimal import Decimal

import pytest
import tiny_catalog

CON = tiny_catalog.in_memory()  # built on 2026-12-01
H100 = "nvidia-h100-sxm"


def _rows(sql):
    return CON.execute(sql).fetchall()


def test_price_history():
    rows = _rows(
        "SELECT seen_on, commitment, min_usd_per_gpu_hour, median_usd_per_gpu_hour::DOUBLE, "
        "cheapest_provider_id, providers "
        f"FROM price_history('{H100}', every_days := 30)"
    )
    assert rows == [
        (date(2026, 9, 2), "on_demand", Decimal("2.99"), 2.99, "lambda", 1),
        (date(2026, 10, 2), "on_demand", Decimal("2.0"), 2.495, "vast", 2),  # 2.99 and 4.00 for two
        (date(2026, 11, 1), "on_demand", Decimal("2.0"), 2.395, "vast", 2),  # 2.79 since that day
        (date(2026, 12, 1), "on_demand", Decimal("2.79"), 2.89, "lambda", 2),
        (date(2026, 12, 1), "spot", Decimal("1.5"), 1.5, "vast", 1),
    ]


def test_prices_not_seen_for_long_are_no_prices():
    rows = _rows(f"SELECT commitment, providers FROM price_history('{H100}', 30, 5) WHERE seen_on = DATE '2026-12-01'")
    assert rows == [("on_demand", 1)]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-08-31", []),
        ("2026-09-15", [("lambda", Decimal("2.99"), 0)]),
        ("2026-11-20", [("lambda", Decimal("0.5"), 0), ("vast", Decimal("1.5"), 0), ("lambda", Decimal("2.79"), 0),
                        ("vast", Decimal("2.99"), 0)]),
        ("2026-12-05", [("lambda", Decimal("0.5"), 7), ("vast", Decimal("1.5"), 15), ("lambda", Decimal("2.79"), 7),
                        ("vast", Decimal("2.99"), 15)]),
    ],
)  # fmt: skip
def test_offers_on_a_day_with_their_age(moment, expected):
    assert _rows(f"SELECT provider_id, usd_per_hour, age_days FROM offers_on('{H100}', '{moment}')") == expected


def test_offer_changes():
    rows = _rows(
        "SELECT changed_at, kind, instance_type, old_usd_per_hour, new_usd_per_hour, change_share "
        f"FROM offer_changes('2026-11-01') WHERE gpu_id = '{H100}' AND commitment = 'on_demand'"
    )
    assert rows == [
        (datetime(2026, 11, 20), "new", "h100", None, Decimal("2.99"), None),
        (datetime(2026, 11, 20), "gone", "h100-two", Decimal("4.0"), None, None),
        (datetime(2026, 11, 1), "new", "gpu without host", None, Decimal("0.5"), None),
        (datetime(2026, 11, 1), "cheaper", "gpu_1x_h100", Decimal("2.99"), Decimal("2.79"), -0.0669),
    ]
    assert _rows("SELECT count(*) FROM offer_changes('2026-11-29')") == [(0,)]


def test_source_disagreement():
    rows = _rows(
        "SELECT provider_id, standing_source_id, standing_usd_per_hour, source_id, usd_per_hour, difference_share "
        "FROM source_disagreement"
    )
    assert rows == [("lambda", "lambda", Decimal("2.79"), "marketplace", Decimal("3.1"), 0.1111)]
