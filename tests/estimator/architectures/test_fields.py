"""The fields that parsing reads, and what the annotated config says about them."""

import time

import pytest
from published_configs import CONFIGS, config

from fitmart.estimator.architectures import fields_read, parse_config
from fitmart.estimator.architectures.annotate import annotate, explain
from fitmart.estimator.architectures.field_meanings import ALIASES, MEANINGS

SHELL = {"transformers_version": "4.57", "initializer_range": 0.02, "use_cache": True, "torch_compile": {"x": 1}}


@pytest.mark.parametrize("model_id", sorted(CONFIGS))
def test_the_fields_read_are_enough_and_not_too_many(model_id: str) -> None:
    full = config(model_id, **SHELL)
    trimmed = fields_read(full)
    assert parse_config("m", trimmed) == parse_config("m", full)
    assert not set(SHELL) & set(trimmed)
    assert fields_read(trimmed) == trimmed


@pytest.mark.parametrize("model_id", sorted(CONFIGS))
def test_every_read_field_is_annotated(model_id: str) -> None:
    rows = annotate(config(model_id))
    assert rows
    assert all(row["meaning"] and row["effect"] and len(row["value"]) < 260 for row in rows)
    assert len({row["field"] for row in rows}) == len(rows)


def test_annotation_of_one_field() -> None:
    row = next(r for r in annotate(config("deepseek-ai/DeepSeek-R1")) if r["field"] == "kv_lora_rank")
    assert row == {
        "field": "kv_lora_rank",
        "value": "512",
        "meaning": "width of the compressed KV that all heads share",
        "effect": "weights and KV cache",
    }
    assert explain("n_layer") == explain("num_hidden_layers")
    assert explain("text_config.num_hidden_layers") == explain("num_hidden_layers")
    assert explain("vision_config.hidden_size")[1] == "vision weights"


def test_aliases_lead_to_known_fields() -> None:
    assert set(ALIASES.values()) <= set(MEANINGS)


def test_parsing_takes_two_milliseconds_at_most() -> None:
    started = time.perf_counter()
    for model_id, raw in CONFIGS.items():
        parse_config(model_id, raw)
    assert (time.perf_counter() - started) / len(CONFIGS) < 2e-3
