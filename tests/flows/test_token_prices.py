from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from fitmart.flows.model_names import ModelIndex
from fitmart.flows.records import TokenPrice
from fitmart.flows.sources.tokens import bundled
from fitmart.flows.token_prices import API_PRICE_SCHEMA, CURRENT_API_PRICE_SCHEMA, current_prices, normalise_prices

NOW = datetime(2026, 12, 1, tzinfo=UTC)
MODELS = ModelIndex(
    ["Qwen/Qwen2.5-Coder-7B-Instruct", "meta-llama/Llama-3.3-70B-Instruct", "a/Twin-1", "b/twin_1", "zai-org/GLM-5.1"]
)
SOURCES = pl.DataFrame({"source_id": ["litellm", "genai-prices"], "max_age_hours": [168, 168]})


def price(usd="1", **more):
    row = {
        "provider_id": "together",
        "model_name_raw": "zz-1",
        "input_usd_per_mtok": Decimal(usd),
        "output_usd_per_mtok": Decimal(2),
        "source_id": "litellm",
        "origin": "aggregator",
        "observed_at": NOW - timedelta(hours=1),
    }
    return TokenPrice(**row | more)


def current(*prices):
    return current_prices(normalise_prices(prices, MODELS).prices, SOURCES, NOW)


@pytest.mark.parametrize(
    ("raw", "model_id"),
    [
        ("Qwen/Qwen2.5-Coder-7B-Instruct", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("accounts/fireworks/models/qwen2p5-coder-7b-instruct", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("meta-llama/llama-3.3-70b-instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("glm-5.1", "zai-org/GLM-5.1"),
        ("llama-3.3-70b-instruct-turbo", None),  # a variant is another product
        ("llama-3.3-70b-instruct:nitro", None),
        ("twin-1", None),  # two repositories of one name
        ("b/twin_1", "b/twin_1"),
        ("", None),
    ],
)
def test_a_raw_name_finds_its_repository(raw, model_id):
    assert MODELS.find(raw) == model_id


def test_the_newest_stands_whichever_its_source():
    """genai-prices#703: a remote file that had gone stale replaced a fresher bundle."""
    stale = price("9", source_id="genai-prices", observed_at=NOW - timedelta(days=90))
    fresh = price("1", origin="seed", observed_at=NOW - timedelta(days=10))
    got = current(stale, fresh, price("7", observed_at=NOW + timedelta(days=1)))
    assert got.select("input_usd_per_mtok", "source_id", "is_stale").rows() == [(1.0, "litellm", True)]
    assert got.schema == CURRENT_API_PRICE_SCHEMA


def test_one_row_a_provider_and_model_whatever_its_name():
    names = ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct", "Other", "OTHER")
    got = current(*(price(model_name_raw=name) for name in names), price(provider_id="deepinfra"))
    assert got.select("provider_id", "model_id").rows() == [
        ("deepinfra", None),
        ("together", "meta-llama/Llama-3.3-70B-Instruct"),
        ("together", None),
    ]


def test_providers_go_by_our_ids_and_unknown_ones_are_counted():
    got = normalise_prices([price(provider_id=p) for p in ("together_ai", "nobody", "nobody")], MODELS)
    assert got.prices["provider_id"].to_list() == ["together"]
    assert [(r.raw_text, r.reason) for r in got.rejected] == [("nobody (× 2)", "unknown provider nobody")]


def test_empty_input_is_an_empty_typed_frame():
    assert normalise_prices([], MODELS).prices.schema == API_PRICE_SCHEMA


def test_the_bundled_prices_come_through():
    got = normalise_prices(bundled.read().good, MODELS)
    assert got.rejected == []
    assert current_prices(got.prices, SOURCES, NOW).height > 1000
