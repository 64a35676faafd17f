"""Versions as builds, rules in force, and the names of KV types."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llamacpp_models import QWEN2_7B, RULES, one

from fitmart.estimator.engines.llamacpp_rules import LlamacppRuleError, overheads, parse_build, rule_tables

BUILDS = RULES["llamacpp_build"]
NEWEST = BUILDS["build"].max()


@pytest.mark.parametrize(
    ("text", "build"),
    [("b4500", 4500), ("4500", 4500), (" b887 ", 887), ("2024-05-30", 3047), ("2020-01-01", 1500), ("2030-01", NEWEST)],
)
def test_versions_are_read(text, build):
    assert parse_build(text, BUILDS) == build


@pytest.mark.parametrize("text", [None, "", "latest", "v0.3.2", "b", "2024-13", "2024-02-31", "123456"])
def test_blank_or_unreadable_is_the_newest(text):
    assert parse_build(text, BUILDS) == NEWEST
    assert one(QWEN2_7B, engine_version=text)["engine_version_used"] == f"b{NEWEST}"


@given(st.dates(), st.dates())
def test_later_dates_are_later_builds(one_day, other_day):
    first, last = sorted((one_day, other_day))
    assert parse_build(first.isoformat(), BUILDS) <= parse_build(last.isoformat(), BUILDS)


def test_a_month_is_between_its_dated_builds():
    """b4641 is of 2025-02-05, b4887 of 2025-03-14."""
    assert 4641 < parse_build("2025-02", BUILDS) < 4887


def test_builds_and_dates_rise_together():
    ordered = BUILDS.sort("build")
    assert ordered["released_on"].is_sorted()


def test_a_missing_table_is_one_line():
    with pytest.raises(LlamacppRuleError, match="no rule table llamacpp_build"):
        rule_tables({name: frame for name, frame in RULES.items() if name != "llamacpp_build"})


def test_a_vendor_has_its_own_overhead_and_a_gaming_card_a_display():
    wanted = pl.DataFrame(
        {
            "gpu_id": ["nvidia-h100-sxm", "nvidia-rtx-4090", "nvidia-rtx-6000-ada", None],
            "vendor": ["NVIDIA", "NVIDIA", "NVIDIA", None],
        }
    )
    found = {d["gpu_id"]: d for d in overheads(wanted, RULES).to_dicts()}
    assert found["nvidia-h100-sxm"]["overhead_bytes"] == found["nvidia-rtx-4090"]["overhead_bytes"]
    assert found["nvidia-rtx-4090"]["overhead_bytes_high"] - found["nvidia-h100-sxm"]["overhead_bytes_high"] == 2**30
    assert found["nvidia-rtx-6000-ada"] == found["nvidia-h100-sxm"] | {"gpu_id": "nvidia-rtx-6000-ada"}
    assert found[None]["overhead_bytes"] > 0


@pytest.mark.parametrize(
    ("dtype", "bits"), [("f16", 16), ("F32", 32), ("bf16", 16), ("fp8", 8.5), ("q8_0", 8.5), ("q4_0", 4.5), (None, 16)]
)
def test_kv_types(dtype, bits):
    """ggml rows: q8_0 34 bytes for 32 elements, q4_0 18."""
    answer = one(QWEN2_7B, context_tokens=8192, kv_cache_dtype=dtype)
    assert answer["kv_cache_bytes"] == 8192 * 28 * 1024 * bits / 8


@pytest.mark.parametrize(
    "given_settings", [{"kv_cache_dtype": "q3_k"}, {"kv_cache_dtype": "q8_0", "flash_attention": False}]
)
def test_kv_types_that_llama_cpp_refuses(given_settings):
    answer = one(QWEN2_7B, context_tokens=8192, device_memory_bytes=2**35, **given_settings)
    assert answer["limited_by"] == "unsupported"
