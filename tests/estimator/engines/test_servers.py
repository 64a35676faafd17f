"""SGLang and TensorRT-LLM: the reserve by their rules, worked out by hand."""

import json

import polars as pl
import pytest

from fitmart.estimator.answer import answer
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.reference import Models
from fitmart.estimator.scenarios import read_scenarios
from fitmart.estimator.units import GIB, MIB
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import SEEDS

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
WEIGHTS = 8_030_261_248 * 2  # published parameters, bf16


@pytest.fixture(scope="module")
def models():
    lines = (json.loads(line) for line in (SEEDS / "model_config.jsonl").read_text(encoding="utf-8").splitlines())
    return Models.of([parse_config(r["model_id"], r["config"]) for r in lines if r["model_id"] == LLAMA])


def ask(models, **cells):
    row = {"model_id": LLAMA, "precision": "bf16", "max_model_len": "8192"} | cells
    return answer(read_scenarios(pl.DataFrame([row])), models, load_reference()).row(0, named=True)


def test_sglang_on_24_gib(models):
    # below 35 GiB: chunk 2048, graphs to 24: 512 + 1.5 × 2048 + 2 × 24 + 128 MiB = 3,760 MiB
    row = ask(models, engine="sglang", gpu_memory_bytes=str(24 * GIB))
    left = 24 * GIB - 3760 * MIB - row["weights_bytes"]
    assert row["kv_available_bytes"] == left
    # a token keeps 32 layers × 2 × 8 heads × 128 × 2 B
    assert row["users"] == left // (131_072 * 8192)


def test_sglang_keeps_ten_gib_of_a_large_card(models):
    row = ask(models, engine="sglang", gpu_memory_bytes=str(80 * GIB))
    # chunk 8192, graphs to 256: 512 + 12,288 + 512 + 128 MiB is more than 10 GiB
    assert row["activation_bytes"] == 13_440 * MIB


def test_tensorrt_takes_nine_tenths_of_what_is_free(models):
    row = ask(models, engine="tensorrt-llm", gpu_memory_bytes=str(80 * GIB))
    free = 80 * GIB - row["weights_bytes"] - 2 * GIB
    assert row["kv_available_bytes"] == pytest.approx(0.9 * free, abs=2)


def test_weights_are_the_model_s(models):
    row = ask(models, engine="sglang", gpu_memory_bytes=str(80 * GIB))
    assert row["weights_bytes"] == pytest.approx(WEIGHTS, rel=1e-3)
    half = ask(models, engine="sglang", gpu_memory_bytes=str(80 * GIB), gpu_count="2")
    assert half["weights_bytes"] == pytest.approx(WEIGHTS / 2, rel=1e-2)


def test_heads_must_divide(models):
    row = ask(models, engine="sglang", gpu_memory_bytes=str(80 * GIB), gpu_count="3")
    assert (row["verdict"], row["limited_by"]) == ("no", "tp_divisibility")
