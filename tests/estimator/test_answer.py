"""Scenarios answered by the whole estimator: each row for itself, and no figure without its reason."""

import json

import polars as pl
import pytest

from fitmart.estimator.answer import answer
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.reference import Models
from fitmart.estimator.scenarios import OUTPUT, read_scenarios
from fitmart.estimator.units import GIB
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import SEEDS

QWEN, BERT, MAMBA = "Qwen/Qwen2.5-7B-Instruct", "BAAI/bge-m3", "state-spaces/mamba-2.8b-hf"
SPEEDS = [name for name in OUTPUT if "_per_s" in name or "ttft" in name]


@pytest.fixture(scope="module")
def models():
    lines = (json.loads(line) for line in (SEEDS / "model_config.jsonl").read_text(encoding="utf-8").splitlines())
    return Models.of([parse_config(r["model_id"], r["config"]) for r in lines if r["model_id"] in (QWEN, BERT, MAMBA)])


def ask_all(models, *rows):
    default = {"model_id": QWEN, "precision": "bf16", "gpu_id": "nvidia-h100-sxm", "max_model_len": "8192"}
    cells = [default | row for row in rows]
    names = dict.fromkeys(name for row in cells for name in row)
    frame = pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String))
    return answer(read_scenarios(frame), models, load_reference()).to_dicts()


def ask(models, **cells):
    return ask_all(models, cells)[0]


def test_a_row_that_cannot_be_read_costs_only_itself(models):
    bad = [
        {"kv_cache_dtype": "banana"},
        {"max_num_seqs": str(2**53)},
        {"gpu_count": "2", "tensor_parallel": "4"},
        {"precision": "exl2-4.0bpw"},
    ]
    *refused, good = ask_all(models, *bad, {})
    assert [row["error"] is not None for row in refused] == [True] * len(bad)
    assert good["error"] is None
    assert good["verdict"] == "fits"


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", "sglang", "tensorrt-llm", "mlx"])
@pytest.mark.parametrize(
    "cells",
    [
        {"max_model_len": str(2**28), "max_num_seqs": "65536", "n_parallel": "65536", "concurrency": "65536"},
        {"max_num_batched_tokens": str(2**28), "n_ubatch": str(2**28), "gpu_count": "1024"},
        {"gpu_memory_bytes": str(2**50), "gpu_count": "1024", "kv_cache_dtype": "bf16"},
        {"max_model_len": "1", "max_num_seqs": "1", "input_tokens": "0", "output_tokens": "0"},
        {"gpu_memory_bytes": "1"},
    ],
)
def test_the_ends_of_each_setting_are_answered(models, engine, cells):
    row = ask(models, engine=engine, **cells)
    assert row["error"] is None
    assert row["required_bytes"] > 0
    assert row["kv_minimum_bytes"] > 0


@pytest.mark.parametrize(
    ("engine", "dtype"),
    [("vllm", "q8_0"), ("vllm", "q8_0/f16"), ("sglang", "q4_0"), ("tensorrt-llm", "q8_0"), ("llama.cpp", "nvfp4")],
)
def test_a_kv_precision_that_the_engine_has_not_is_unsupported(models, engine, dtype):
    row = ask(models, engine=engine, kv_cache_dtype=dtype)
    assert (row["error"], row["verdict"], row["limited_by"]) == (None, "no", "unsupported")


@pytest.mark.parametrize(
    ("engine", "precision"), [("llama.cpp", "awq-int4"), ("vllm", "mlx-4bit"), ("mlx", "gguf-q4_0")]
)
def test_a_file_that_the_engine_cannot_load_is_unsupported(models, engine, precision):
    row = ask(models, engine=engine, precision=precision)
    assert (row["verdict"], row["limited_by"]) == ("no", "unsupported")


def test_vllm_keeps_the_blocks_of_a_gguf(models):
    # Qwen/Qwen2.5-7B-Instruct-GGUF: the q4_k_m file has 4,683,073,536 bytes, of which 6 MB are metadata
    one, two = ask_all(models, *({"engine": "vllm", "precision": "gguf-q4_k_m", "gpu_count": n} for n in "12"))
    assert one["weights_bytes"] == pytest.approx(4_683_073_536, rel=2e-3)
    assert two["weights_bytes"] == pytest.approx(one["weights_bytes"] / 2, abs=1)


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", "sglang", "mlx"])
def test_an_encoder_has_users_without_a_cache(models, engine):
    precision = "gguf-f16" if engine == "llama.cpp" else "bf16"
    row = ask(models, model_id=BERT, engine=engine, precision=precision)
    assert row["kv_minimum_bytes"] == 0
    assert row["users"] >= 1
    small = ask(models, model_id=BERT, engine=engine, precision=precision, gpu_memory_bytes=str(GIB // 2))
    assert small["users"] == 0


def test_layers_on_the_host_leave_users_to_the_slots(models):
    row = ask(models, precision="gguf-q4_k_m", n_gpu_layers="0", n_parallel="6")
    assert (row["verdict"], row["users"]) == ("fits", 6)


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", "sglang", "tensorrt-llm", "mlx"])
def test_the_version_used_is_said(models, engine):
    assert ask(models, engine=engine)["engine_version_used"]


def test_without_memory_nothing_is_said_of_what_fits(models):
    for engine in ("vllm", "llama.cpp", "sglang", "tensorrt-llm", "mlx"):
        row = ask(models, engine=engine, gpu_id="")
        assert (row["verdict"], row["limited_by"]) == ("unknown", "unknown")
        assert row["required_bytes"] > 0
        assert row["fit_context_tokens"] is None


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", "sglang", "mlx"])
def test_a_model_that_states_no_context_is_answered(models, engine):
    # mamba's config has no length; a state does not grow, so nothing sets an end
    row = ask(models, model_id=MAMBA, engine=engine, max_model_len="")
    assert row["required_bytes"] > 0
    assert row["fit_context_tokens"] is None


def test_the_longest_context_knows_the_batch(models):
    # without flash attention 28 heads × 2048 × 32768 scores of 4 bytes are 7 GiB, beside 4.4 GB of weights
    cells = {"precision": "gguf-q4_k_m", "flash_attention": "false", "n_ubatch": "2048", "max_model_len": "32768"}
    row = ask(models, gpu_memory_bytes=str(10 * GIB), **cells)
    assert row["verdict"] == "no"
    assert row["fit_context_tokens"] < 32768


def test_slots_take_no_less_than_is_needed(models):
    cells = {"precision": "gguf-q4_k_m", "n_parallel": "64", "gpu_count": "2", "flash_attention": "false"}
    row = ask(models, max_model_len="32768", **cells)
    assert row["verdict"] == "fits"
    assert row["required_bytes"] <= row["taken_bytes"]


def test_training_is_answered_where_a_method_is_given(models):
    full, sharded, wrong, none = ask_all(
        models, {"method": "full"}, {"method": "full", "gpu_count": "4"}, {"method": "lora", "optimizer": "banana"}, {}
    )
    # mixed precision: 2 bytes a weight, 2 a gradient, 8 of moments and 4 of a master copy; 7,615,616,512 parameters
    assert full["finetune_weights_bytes"] + full["finetune_gradients_bytes"] == 4 * 7_615_616_512
    assert full["finetune_optimizer_bytes"] == 12 * 7_615_616_512
    assert full["finetune_bytes"] == sum(
        v for k, v in full.items() if k.startswith("finetune_") and k != "finetune_bytes"
    )
    assert sharded["finetune_optimizer_bytes"] == 3 * 7_615_616_512
    assert wrong["error"].startswith("optimizer: not one of adamw, ")
    assert none["finetune_bytes"] is None


def test_replicas_serve_no_more_than_there_are(models):
    one, eight = ask_all(models, {}, {"data_parallel": "8"})
    assert eight["throughput_tokens_per_s"] == pytest.approx(one["throughput_tokens_per_s"])
    busy, spread = ask_all(models, {"concurrency": "64"}, {"concurrency": "64", "data_parallel": "8"})
    assert busy["throughput_tokens_per_s"] < spread["throughput_tokens_per_s"] < 8 * busy["throughput_tokens_per_s"]


def test_every_device_counts_for_the_verdict(models):
    # four cards share 28 layers and the output matrix unevenly: what fits at a length fits at each shorter one
    lengths = [str(2**n) for n in range(9, 18)]
    cells = [
        {"precision": "gguf-q8_0", "gpu_count": "4", "gpu_memory_bytes": str(size * GIB // 8), "max_model_len": length}
        for size in range(20, 60)
        for length in lengths
    ]
    ranks = {"no": 0, "tight": 1, "fits": 2}
    verdicts = [ranks[row["verdict"]] for row in ask_all(models, *cells)]
    for start in range(0, len(verdicts), len(lengths)):
        along = verdicts[start : start + len(lengths)]
        assert along == sorted(along, reverse=True)
