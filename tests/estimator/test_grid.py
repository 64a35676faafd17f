"""The grid: what is in it, that it answers as a scenario does, and that every row has its reason."""

import json

import polars as pl
import pytest

from fitmart.estimator.answer import answer
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.grid import CONTEXTS, compute_marts, grid_contexts, grid_devices, grid_precisions
from fitmart.estimator.reference import Models
from fitmart.estimator.scenarios import read_scenarios
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import SEEDS

IDS = ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-72B-Instruct-AWQ", "BAAI/bge-m3", "openai/gpt-oss-20b")
REFERENCE = load_reference()


@pytest.fixture(scope="module")
def models():
    lines = (json.loads(line) for line in (SEEDS / "model_config.jsonl").read_text(encoding="utf-8").splitlines())
    return Models.of([parse_config(r["model_id"], r["config"]) for r in lines if r["model_id"] in IDS])


@pytest.fixture(scope="module")
def marts(models):
    return compute_marts(models, REFERENCE)


def test_precisions_of_a_plain_and_of_a_quantized_repository(models):
    pairs = grid_precisions(models.models, REFERENCE.precisions)
    of = {m: set(pairs.filter(pl.col("model_id") == m)["precision_id"]) for m in IDS}
    assert {"bf16", "fp8", "int8", "awq-int4", "gguf-q4_k_m"} <= of[IDS[0]]
    assert "native" not in of[IDS[0]]
    assert of[IDS[1]] == {"native"}


def test_contexts_end_at_the_model_s_own(models):
    contexts = grid_contexts(models.models)
    of = {m: contexts.filter(pl.col("model_id") == m)["context_tokens"].to_list() for m in IDS}
    assert of["openai/gpt-oss-20b"] == [c for c in CONTEXTS if c <= 131_072]
    assert of["BAAI/bge-m3"] == [4096, 8192]


def test_devices_come_in_the_counts_they_are_sold_in():
    counts = grid_devices(REFERENCE.gpus).group_by("gpu_id").agg(pl.col("gpu_count").sort())
    of = dict(counts.iter_rows())
    assert of["nvidia-h100-sxm"] == [1, 2, 4, 8]
    assert of["nvidia-rtx-4090"] == [1, 2, 4]
    assert of["apple-m4-max-128gb"] == [1]


def test_every_row_has_its_verdict_and_its_reason(marts):
    key = ["model_id", "precision_id", "engine_id", "gpu_id", "gpu_count", "context_tokens"]
    assert marts.fit.select(key).is_duplicated().sum() == 0
    assert marts.fit.select(*key, "verdict").null_count().sum_horizontal()[0] == 0
    no = marts.fit.filter(pl.col("verdict") == "no")
    assert no["limited_by"].null_count() == 0
    fits = marts.fit.filter(pl.col("verdict") == "fits")
    assert (fits["headroom_bytes"] >= 0).all()
    assert marts.speed.height == marts.fit.filter(pl.col("verdict").is_in(["fits", "tight"])).height


def test_the_grid_answers_as_a_scenario_does(marts, models):
    shown = ["required_bytes", "taken_bytes", "users", "verdict", "limited_by"]
    rows = marts.fit.filter(pl.col("model_id") == IDS[0]).sample(60, seed=1)
    asked = rows.select(
        "model_id", "gpu_id", precision="precision_id", engine="engine_id", kv_cache_dtype=pl.lit("bf16"),
        gpu_count=pl.col("gpu_count").cast(pl.String), max_model_len=pl.col("context_tokens").cast(pl.String),
    )  # fmt: skip
    answers = answer(read_scenarios(asked), models, REFERENCE)
    assert answers["error"].null_count() == 60
    assert answers.select(shown).equals(rows.select(shown))


def test_a_cache_of_eight_bits_holds_more_users(marts):
    rows = marts.fit.filter((pl.col("users") > 0) & (pl.col("model_id") == IDS[0]))
    assert (rows["users_kv8"] >= rows["users"]).all()


def test_bands_hold_their_figures(marts):
    for name in ("decode_tokens_per_s", "prefill_tokens_per_s", "ttft_ms", "throughput_tokens_per_s"):
        known = marts.speed.drop_nulls([name, f"{name}_low", f"{name}_high"])
        assert known.height > 1000
        assert ((known[f"{name}_low"] <= known[name]) & (known[name] <= known[f"{name}_high"])).all()
