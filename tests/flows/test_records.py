from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitmart.flows.records import Offer, RowError, TokenPrice, sift, unreadable
from fitmart.flows.sources import cells

GOOD = {
    "provider_id": "oci",
    "gpu_name_raw": "H100",
    "gpu_count": 8,
    "price_scope": "instance",
    "commitment": "on_demand",
    "amount": Decimal("80.0"),
    "source_id": "test",
    "origin": "direct",
    "observed_at": datetime(2026, 11, 30, tzinfo=UTC),
}


def one(row):
    return sift([row], lambda r: [r], Offer, source_id="test")


def test_a_good_row_is_a_frozen_record():
    good, rejected = one(GOOD)
    assert rejected == []
    assert good[0].currency == "USD"
    with pytest.raises(ValueError, match="frozen"):
        good[0].amount = Decimal(1)


@pytest.mark.parametrize(
    "change",
    [
        {"amount": Decimal(0)},
        {"amount": Decimal(-1)},
        {"amount": Decimal("NaN")},
        {"amount": Decimal("Infinity")},
        {"amount": 80.0},  # money is never a float
        {"amount": "80"},
        {"amount": None},
        {"gpu_count": 0},
        {"gpu_count": "8"},
        {"gpu_count": 8.0},
        {"gpu_count": True},
        {"currency": "usd"},
        {"currency": "€"},
        {"commitment": "preemptible"},
        {"price_scope": "gpu"},
        {"gpu_name_raw": " "},
        {"provider_id": ""},
        {"country": "Germany"},
        {"observed_at": datetime(2026, 11, 30)},
        {"price_scope": "per_gpu", "min_gpu_count": 8, "max_gpu_count": 4},
        {"colour": "green"},
    ],
)
def test_a_bad_field_rejects_the_row_and_names_it(change):
    good, rejected = one(GOOD | change)
    assert good == []
    assert len(rejected) == 1
    assert "\n" not in rejected[0].reason
    assert next(iter(change)) in rejected[0].reason or "counts" in rejected[0].reason


def test_one_bad_row_costs_itself_only_and_order_is_kept():
    rows = [GOOD | {"gpu_count": n} for n in (1, 0, 2, -1, 4)]
    good, rejected = sift(rows, lambda r: [r], Offer, source_id="test")
    assert [o.gpu_count for o in good] == [1, 2, 4]
    assert len(rejected) == 2


def test_what_a_maker_raises_is_a_reason():
    def make(row):
        if row == "row error":
            raise RowError("no price")
        yield {"a": 1}[row]

    good, rejected = sift(["row error", "b", object()], make, Offer, source_id="test")
    assert good == []
    assert [r.reason.partition(":")[0] for r in rejected] == ["no price", "KeyError", "KeyError"]


def test_a_long_row_is_cut():
    _, rejected = one(GOOD | {"gpu_count": 0, "url": "x" * 10_000})
    assert len(rejected[0].raw_text) == 500
    assert len(unreadable("test", b"\x00" * 10_000, "why").rejected[0].raw_text) < 500


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists, max_leaves=5))
def test_sift_never_raises(value):
    _, rejected = one(GOOD | {"amount": value})
    assert len(rejected) == 1


@pytest.mark.parametrize(("input_price", "output_price", "is_good"), [("150", "600", True), ("501", "1", False)])
def test_token_prices_beyond_a_bound_are_a_wrong_unit(input_price, output_price, is_good):
    """o1-pro costs 150 and 600 USD for a million tokens, the dearest there is."""
    row = {
        "provider_id": "openai",
        "model_name_raw": "o1-pro",
        "input_usd_per_mtok": Decimal(input_price),
        "output_usd_per_mtok": Decimal(output_price),
        "source_id": "test",
        "origin": "direct",
        "observed_at": GOOD["observed_at"],
    }
    good, _ = sift([row], lambda r: [r], TokenPrice, source_id="test")
    assert bool(good) == is_good


@pytest.mark.parametrize(
    ("cell", "want"),
    [
        ("5.8854999999999995", "5.885500"),
        (" 2.10 ", "2.100000"),
        ("0", "0.000000"),
        ("", None),
        ("NaN", None),
        (None, None),
    ],
)
def test_money_is_kept_to_a_millionth(cell, want):
    got = cells.money(cell)
    assert (None if got is None else str(got)) == want


@pytest.mark.parametrize(("cell", "want"), [("8", 8), ("8.0", 8), (8.0, 8), ("", None)])
def test_a_count_may_be_written_with_a_point(cell, want):
    assert cells.whole(cell, what="count") == want


@pytest.mark.parametrize("cell", ["0.5", "inf", "many"])
def test_what_is_no_count_is_said(cell):
    with pytest.raises(RowError, match="count is"):
        cells.whole(cell, what="count")
