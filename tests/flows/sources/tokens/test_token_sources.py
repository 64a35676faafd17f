import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from servers.past import SEEN_AT, past
from servers.price_server import GENAI_PRICES, LITELLM

from fitmart.flows.sources.tokens import bundled, genai_prices, litellm, openrouter

OPENROUTER_MODEL = {
    "id": "zz/model-1",
    "context_length": 131072,
    "hugging_face_id": "zz-org/Model-1",
    "pricing": {"prompt": "0.0000002", "completion": "0.0000008", "input_cache_read": "0.00000002", "image": "0"},
}
LITELLM_MODEL = {
    "litellm_provider": "together_ai",
    "mode": "chat",
    "input_cost_per_token": 2e-07,
    "output_cost_per_token": 8e-07,
    "max_input_tokens": 131072,
}


def read(module, value, seen_at=SEEN_AT):
    return module.parse(json.dumps(value).encode(), seen_at, "test")


def test_openrouter_prices_are_usd_for_one_token():
    good, rejected = read(openrouter, {"data": [OPENROUTER_MODEL]})
    assert rejected == []
    price = good[0]
    assert (price.input_usd_per_mtok, price.output_usd_per_mtok) == (Decimal("0.2"), Decimal("0.8"))
    assert price.cached_input_usd_per_mtok == Decimal("0.02")
    assert (price.model_id, price.context_tokens) == ("zz-org/Model-1", 131072)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pricing": {"prompt": "-1", "completion": "-1"}}, "router"),  # pi#8020: −1,000,000 USD a million
        ({"id": "zz/model-1:free", "pricing": {"prompt": "0", "completion": "0"}}, "free"),
        ({"pricing": {"prompt": "0", "completion": "0"}}, "greater than 0"),
        ({"pricing": {"prompt": "0.2", "completion": "0.8"}}, "less than or equal"),  # a price of a million tokens
        ({"pricing": None}, "TypeError"),
        ({"pricing": {"prompt": "x", "completion": "1"}}, "not a number"),
    ],
)
def test_openrouter_rows_without_a_price_are_rejected(change, reason):
    good, rejected = read(openrouter, {"data": [OPENROUTER_MODEL | change, OPENROUTER_MODEL, None]})
    assert len(good) == 1
    assert reason in rejected[0].reason
    assert len(rejected) == 2


def test_litellm_keys_lose_their_provider_and_other_modes_are_no_rows():
    table = {
        "sample_spec": {"mode": "chat", "max_input_tokens": "max input tokens, if the provider specifies it"},
        "together_ai/zz/model-1": LITELLM_MODEL,
        "embed-1": LITELLM_MODEL | {"mode": "embedding"},
        "old-1": LITELLM_MODEL | {"deprecation_date": "2027-01-01", "input_cost_per_token_above_200k_tokens": 4e-7},
        "wordy-1": LITELLM_MODEL | {"max_input_tokens": "as the model allows"},
    }
    good, rejected = read(litellm, table)
    assert rejected == []
    assert [p.model_name_raw for p in good] == ["zz/model-1", "old-1", "wordy-1"]
    assert (good[0].input_usd_per_mtok, good[0].output_usd_per_mtok) == (Decimal("0.2"), Decimal("0.8"))
    assert good[1].note == "retires 2027-01-01; first tier"
    assert good[2].context_tokens is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"input_cost_per_token": 0, "output_cost_per_token": 0}, "zero means free or unknown"),  # litellm#1840
        ({"input_cost_per_token": 0.05}, "less than or equal"),  # litellm#23503: 50,000 USD a million
        ({"output_cost_per_token": None}, "no price"),
    ],
)
def test_litellm_slips_of_the_unit_are_rejected(change, reason):
    good, rejected = read(litellm, {"zz-1": LITELLM_MODEL | change})
    assert good == []
    assert reason in rejected[0].reason


def genai(prices, **more):
    return [{"id": "deepseek", "models": [{"id": "zz-1", "match": {"equals": "zz-1"}, "prices": prices} | more]}]


@pytest.mark.parametrize(("day", "want"), [(12, "2"), (13, "1.5"), (20, "1.5")])
def test_a_start_date_is_weighed_against_the_day_of_observation(day, want):
    """genai-prices: the last conditional price that holds applies."""
    prices = [
        {"prices": {"input_mtok": 2, "output_mtok": 8}},
        {"constraint": {"start_date": "2026-03-13"}, "prices": {"input_mtok": 1.5, "output_mtok": 6}},
    ]
    good, _ = read(genai_prices, genai(prices), datetime(2026, 3, day, tzinfo=UTC))
    assert good[0].input_usd_per_mtok == Decimal(want)


def test_of_tiers_and_times_of_day_the_base_is_taken_and_said():
    prices = [
        {"prices": {"input_mtok": {"base": 3, "tiers": [{"start": 200000, "price": 6}]}, "output_mtok": 15}},
        {"constraint": {"start_time": "16:30:00Z", "end_time": "00:30:00Z"}, "prices": {"input_mtok": 1}},
    ]
    good, rejected = read(genai_prices, genai(prices, context_window=200000))
    assert rejected == []
    assert (good[0].input_usd_per_mtok, good[0].context_tokens) == (3, 200000)
    assert good[0].note == "another price at some times of day; first tier"


def test_embeddings_have_no_output_price_and_models_billed_otherwise_are_no_rows():
    models = [
        {"id": "embed", "prices": {"input_mtok": 0.01}},
        {"id": "search", "prices": {"requests_kcount": 5}},
        {"id": "free", "prices": {"input_mtok": 0, "output_mtok": 0}},
    ]
    good, rejected = read(genai_prices, [{"id": "zz", "models": models}, {"id": "none"}])
    assert [(p.model_name_raw, p.output_usd_per_mtok) for p in good] == [("embed", None)]
    assert "free" in rejected[0].raw_text


@pytest.mark.parametrize("module", [openrouter, litellm, genai_prices])
@pytest.mark.parametrize("content", [b"", b"<html>", b"null", b"3", b'{"data": 1}', b"[" * 100_000, b"\xff"])
def test_a_payload_of_another_shape_never_raises(module, content):
    good, rejected = module.parse(content, SEEN_AT, "test")
    assert good == []
    assert len(rejected) == 1 or content == b'{"data": 1}'


def test_each_is_fetched_from_its_published_place(server, http):
    server.put_json("/or/api/v1/models", {"data": [OPENROUTER_MODEL]})
    server.put_json(f"/raw{LITELLM}", {"zz-1": LITELLM_MODEL})
    server.put_json(f"/raw{GENAI_PRICES}", genai({"input_mtok": 1, "output_mtok": 2}))
    for module in (openrouter, litellm, genai_prices):
        payloads = list(module.fetch(http, past()))
        good, rejected = module.parse(payloads[0].content, SEEN_AT, payloads[0].name)
        assert (len(payloads), len(good), rejected) == (1, 1, [])


def test_every_bundled_price_passes():
    good, rejected = bundled.read()
    assert len(good) > 1000
    assert rejected == []
    assert all(p.origin == "seed" for p in good)
