"""Given the tiny catalog, each view and macro gives the expected rows (reckoned by hand, or from its facts)."""

from datetime import datetime
from decimal import Decimal

import polars as pl
import pytest
import tiny_catalog
from tiny_catalog import FRAMES, QWEN, TINY

CON = tiny_catalog.in_memory()
H100, RTX, MI300X = "nvidia-h100-sxm", "nvidia-rtx-4090", "amd-mi300x"


def _rows(sql, con=CON):
    return con.execute(sql).fetchall()


def test_memory_by_context():
    rows = _rows(f"SELECT precision_id, context_tokens, weights_gib, kv_gib, kv8_gib FROM memory_by_context('{QWEN}')")
    assert rows == [
        ("bf16", 8192, 135.43, 2.5, 1.25),
        ("bf16", 32768, 135.43, 10.0, 5.0),
        ("awq-int4", 8192, 38.74, 2.5, 1.25),
        ("awq-int4", 32768, 38.74, 10.0, 5.0),
    ]


def test_memory_by_context_adds_up_and_flags_what_lies_beyond_the_configured_context():
    long = FRAMES["model"].with_columns(max_context_tokens=pl.lit(16_384))
    rows = _rows(
        f"SELECT context_tokens, weights_gib + kv_gib + overhead_gib_low - total_gib_low, is_beyond_configured_context "
        f"FROM memory_by_context('{QWEN}') WHERE precision_id = 'awq-int4'",
        tiny_catalog.in_memory(model=long),
    )
    assert [(context, beyond) for context, _, beyond in rows] == [(8192, False), (32768, True)]
    assert all(abs(rest) <= 0.02 for _, rest, _ in rows)


def test_smallest_gpus():
    asked = f"SELECT precision_id, place, gpu_id, users FROM smallest_gpus('{QWEN}'"
    assert _rows(f"{asked})") == [("bf16", 1, MI300X, 8), ("awq-int4", 1, H100, 11)]
    assert _rows(f"{asked}, users := 9)") == [("awq-int4", 1, H100, 11)]
    assert _rows(f"{asked}, context := 10000)") == [("bf16", 1, MI300X, 2), ("awq-int4", 1, H100, 2)]


def test_users_per_gpu():
    rows = _rows(f"SELECT gpu_id, gpu_count, users, verdict, usd_per_hour FROM users_per_gpu('{QWEN}') WHERE users > 1")
    assert rows == [
        (H100, 1, 11, "fits", Decimal("2.79")),
        (H100, 2, 40, "fits", Decimal("5.98")),
        (MI300X, 1, 8, "fits", Decimal("1.99")),
    ]


def test_cheapest_offers_are_recent_whole_and_dated():
    rows = _rows(
        "SELECT provider_id, commitment, usd_per_hour, usd_per_month, age_days, billing_granularity "
        f"FROM cheapest_offers('{H100}')"
    )
    assert rows == [
        ("vast", "spot", Decimal("1.5"), Decimal("1095"), 11, "second"),
        ("lambda", "on_demand", Decimal("2.79"), Decimal("2036.70"), 3, "minute"),
        ("vast", "on_demand", Decimal("2.99"), Decimal("2182.70"), 11, "second"),
    ]


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("gpus := 2", [("vast", Decimal("5.98"), "scaled")]),
        ("gpus := 9", []),
        ("max_age_days := 5", [("lambda", Decimal("2.79"), "offered")]),
        ("max_age_days := 365", [("vast", Decimal("1.0"), "offered")]),
    ],
)
def test_cheapest_offers_by_count_and_age(asked, rows):
    sql = f"SELECT provider_id, usd_per_hour, price_basis FROM cheapest_offers('{H100}', {asked}) LIMIT 1"
    assert _rows(sql) == rows


def test_cheapest_offers_leave_out_what_best_offer_leaves_out():
    con = tiny_catalog.in_memory(
        offer=FRAMES["offer"].with_columns(
            quality_flags=pl.when(pl.col("offer_id") == "h100-spot").then(pl.lit("x|price_outlier")),
            product_kind=pl.when(pl.col("offer_id") == "h100-each").then(pl.lit("managed")).otherwise(pl.lit("vm")),
        )
    )
    assert _rows(f"SELECT provider_id FROM cheapest_offers('{H100}')", con) == [("lambda",)]


def test_cheapest_fits():
    asked = f"SELECT gpu_id, gpu_count, precision_id, users, usd_per_hour, provider_id FROM cheapest_fits('{QWEN}'"
    assert _rows(f"{asked}, users := 10)") == [
        (H100, 1, "awq-int4", 11, Decimal("2.79"), "lambda"),
        (H100, 2, "awq-int4", 40, Decimal("5.98"), "vast"),
    ]
    assert _rows(f"{asked}, users := 100)") == []


def test_quantization_matrix():
    rows = _rows(
        "SELECT precision_id, weights_gib, kv_gib, verdict, users, decode_tokens_per_s, support, smallest_gpu "
        f"FROM quantization_matrix('{QWEN}', 'H100 SXM')"
    )
    assert rows == [
        ("bf16", 135.43, 2.5, "no", 0, None, None, "Instinct MI300X"),
        ("awq-int4", 38.74, 2.5, "fits", 11, 40.0, "native", "H100 SXM"),
    ]


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        (
            f"'{QWEN}', '{RTX}'",
            [(1, "weights", "the weights alone do not fit beside what the engine needs", -21.0),
             (2, None, "it fits by the estimate, not by the careful end of its band", -0.25)],
        ),
        (f"'{QWEN.upper()}', '{MI300X}', context := 32768", [(1, None, "it fits", 12.0)]),
        ("'no/such', 'h100 sxm'", [(None, "unknown", "no such model in the catalog", None)]),
        (f"'{QWEN}', 'H900'", [(None, "unknown", "no such GPU in the catalog", None)]),
        (f"'{QWEN}', '{RTX}', context := 40000", [(None, "context", "the model is not made for this context", None)]),
    ],
)  # fmt: skip
def test_why_not(asked, rows):
    assert _rows(f"SELECT gpu_count, limited_by, reason, headroom_gib FROM why_not({asked})") == rows


def test_rent_or_buy():
    rows = _rows(
        f"SELECT gpu_id, gpu_count, purchase_usd, round(payback_months, 1) FROM rent_or_buy('{QWEN}', users := 2)"
    )
    # 30,000 / (2.79 × 730 − 76.60) and 60,000 / (5.98 × 730 − 153.20)
    assert rows == [(H100, 1, 30_000.0, 15.3), (H100, 2, 60_000.0, 14.2)]


def test_break_even():
    # The cheapest configuration costs 1,452.70 USD a month, the API 1 USD a million tokens: 1,452.7 M tokens a month.
    assert _rows(f"SELECT provider_id, break_even_output_tokens_per_day FROM break_even('{QWEN}')") == [
        ("tokens", round(1452.70 / (730 / 24) * 1e6))
    ]


def test_siblings():
    sibling = FRAMES["model"].filter(pl.col("model_id") == QWEN).with_columns(model_id=pl.lit("someone/Qwen-72B-AWQ"))
    other = FRAMES["model"].filter(pl.col("model_id") == TINY)
    con = tiny_catalog.in_memory(
        model=pl.concat([FRAMES["model"], sibling, other.with_columns(model_id=pl.lit("b/C"))])
    )
    assert _rows(f"SELECT model_id FROM siblings('{QWEN}')", con) == [("someone/Qwen-72B-AWQ",)]


def test_fit_detail():
    rows = _rows(
        "SELECT precision_class, budget_gib, weights_gib, kv_available_gib, kv_available_gib_low, fit_context_tokens "
        f"FROM fit_detail WHERE model_id = '{QWEN}' AND gpu_id = '{H100}' AND gpu_count = 1 AND verdict = 'fits' "
        "AND context_tokens = 8192"
    )
    assert rows == [("int4", 76.0, 38.74, 28.0, 27.0, 91_000)]
    assert _rows("SELECT count(*) FROM fit_detail") == _rows("SELECT count(*) FROM fit")


def test_model_overview():
    rows = _rows(
        "SELECT params_total_billion, kv_saving_ratio, bf16_weights_gib, kv_gib_at_8k, kv_gib_at_32k "
        f"FROM model_overview WHERE model_id = '{QWEN}'"
    )
    assert rows == [(72.706, 8.0, 135.43, 2.5, 10.0)]


def test_gpu_overview():
    rows = _rows("SELECT gpu_id, memory_gib, on_demand_usd_per_hour, spot_usd_per_hour FROM gpu_overview ORDER BY 2")
    assert rows == [
        (RTX, 23.99, None, None),
        (H100, 79.65, Decimal("2.79"), Decimal("1.5")),
        (MI300X, 191.69, Decimal("1.99"), None),
    ]


def test_source_status_uses_the_builds_clock():
    rows = _rows("SELECT source_id, status, served_rows, rejected_rows, age_hours, is_stale, reason FROM source_status")
    assert sorted(rows) == [
        ("datasheets", "bundled", 5, 0, 12.0, False, None),
        ("huggingface", "bundled", 2, 0, 36.0, False, None),
        ("lambda", "failed", 6, 1, 84.0, False, "HTTP 503"),
        ("marketplace", "skipped", 4, 0, 276.0, True, "needs VAST_API_KEY"),
    ]


def test_a_macro_never_answers_for_a_shorter_context():
    assert _rows(f"SELECT grid_context('{QWEN}', 1), grid_context('{QWEN}', 8193), grid_context('{QWEN}', 32769)") == [
        (8192, 32768, None)
    ]


def test_no_view_or_macro_reads_the_clock():
    told = _rows("SELECT sql FROM duckdb_views() WHERE NOT internal")
    told += _rows("SELECT macro_definition FROM duckdb_functions() WHERE NOT internal")
    assert not [text for (text,) in told if "now()" in text or "current_" in text.replace("is_current", "")]
    assert _rows("SELECT max(observed_at) FROM offer") == [(datetime(2026, 11, 28),)]
