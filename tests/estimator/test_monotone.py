"""Answers must not contradict each other: along each axis they only get better, or only worse; bands hold their value.

Each example draws a batch of deployments of real models and moves one setting of each through its values.
"""

import json
from functools import cache
from typing import Any

import polars as pl
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fitmart.estimator.answer import answer
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.reference import Models
from fitmart.estimator.scenarios import read_scenarios
from fitmart.estimator.units import GIB
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import SEEDS

# A model of each kind: dense, tied, mixture, latent, windowed, hybrid, state, encoder, vision, multi-query, no length.
MODELS = (
    "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct", "meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V3", "google/gemma-3-27b-it", "google/gemma-4-E2B-it",
    "openai/gpt-oss-120b", "Qwen/Qwen3-Next-80B-A3B-Instruct", "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    "state-spaces/mamba-2.8b-hf", "BAAI/bge-m3", "Qwen/Qwen2.5-VL-7B-Instruct", "tiiuae/falcon-7b",
    "bigscience/bloom-3b",
)  # fmt: skip
GPUS = (
    "nvidia-rtx-3060-12gb", "nvidia-rtx-4090", "nvidia-l40s", "nvidia-a100-sxm-80gb", "nvidia-h100-sxm",
    "nvidia-b200-sxm", "amd-mi300x", "amd-mi250", "nvidia-dgx-spark", "apple-m4-max-128gb", "nvidia-t4",
)  # fmt: skip
PRECISIONS = {
    "vllm": ("bf16", "fp8", "awq-int4", "native"),
    "llama.cpp": ("gguf-q4_k_m", "gguf-bf16"),
    "sglang": ("bf16", "fp8"),
    "tensorrt-llm": ("bf16",),
    "mlx": ("mlx-4bit",),
}
VERDICTS = {"no": 0, "tight": 1, "fits": 2}


@cache
def known_models() -> Models:
    lines = map(json.loads, (SEEDS / "model_config.jsonl").read_text(encoding="utf-8").splitlines())
    found = [parse_config(line["model_id"], line["config"]) for line in lines if line["model_id"] in MODELS]
    assert len(found) == len(MODELS)
    return Models.of(found)


@st.composite
def deployments(draw, *engines: str) -> dict[str, str]:
    engine = draw(st.sampled_from(engines or tuple(PRECISIONS)))
    drawn = {
        "model_id": draw(st.sampled_from(MODELS)),
        "engine": engine,
        "precision": draw(st.sampled_from(PRECISIONS[engine])),
        "gpu_id": draw(st.sampled_from(GPUS)),
        "gpu_count": str(draw(st.sampled_from([1, 2, 4, 8]))),
        "max_model_len": str(draw(st.integers(1, 40_000))),
        "kv_cache_dtype": draw(st.sampled_from(["", "bf16", "fp8"])),
    }
    return drawn | ({"gpu_count": "1"} if engine == "mlx" else {})


def batches(*engines: str):
    return st.lists(deployments(*engines), min_size=40, max_size=40)


def ask(cells: list[dict[str, Any]]) -> pl.DataFrame:
    names = dict.fromkeys(name for row in cells for name in row)
    frame = pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String))
    answers = answer(read_scenarios(frame), known_models(), load_reference()).sort("row")
    rank = pl.col("verdict").replace_strict(VERDICTS, default=None, return_dtype=pl.Int64)
    return frame.select(pl.all().name.prefix("asked_")).hstack(answers).with_columns(rank=rank)


def along(cells: list[dict[str, str]], setting: str, values: list[str]) -> pl.DataFrame:
    """Every deployment at every value of a setting: `case`, and in order."""
    asked = [row | {setting: value} for row in cells for value in values]
    case = pl.Series("case", [i for i in range(len(cells)) for _ in values])
    answers = ask(asked).with_columns(case)
    assert answers["error"].null_count() == answers.height
    return answers.filter(pl.col("limited_by").fill_null("") != "tp_divisibility")


def assert_only(answers: pl.DataFrame, setting: str, **signs: int) -> None:
    """Columns that only rise (1) or only fall (-1) within a case."""
    for column, sign in signs.items():
        before = pl.col(column).shift(1).over("case")
        wrong = answers.with_columns(before=before).filter((pl.col(column) - pl.col("before")) * sign < 0)
        shown = wrong.select(pl.col("^asked_.*$"), "before", column, "verdict").head(1).to_dicts()
        assert not shown, f"{column} against {setting}"


# A failing batch names its row itself; to shrink it would take minutes.
fast = settings(deadline=None, max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


@fast
@given(cells=batches())
def test_what_fits_holds_a_user_within_what_is_taken(cells):
    rows = ask(cells)
    fits = rows.filter(pl.col("verdict") == "fits")
    assert (fits["required_bytes"] <= fits["taken_bytes"]).all()
    assert (fits["users"] >= 1).all()
    assert (fits["fit_context_tokens"] >= fits["asked_max_model_len"].cast(pl.Int64)).all()
    assert fits["limited_by"].null_count() == fits.height
    assert rows.filter(pl.col("verdict") == "no")["limited_by"].null_count() == 0
    no_memory = rows.filter(pl.col("limited_by").is_in(["weights", "kv_cache"]))
    assert (no_memory["users"] == 0).all()


@fast
@given(cells=batches())
def test_bands_hold_their_value(cells):
    rows = ask(cells)
    for low in (name for name in rows.columns if name.endswith("_low")):
        name = low.removesuffix("_low")
        assert ((rows[low] <= rows[name]) & (rows[name] <= rows[f"{name}_high"])).fill_null(value=True).all(), name


@fast
@given(cells=batches())
def test_a_longer_context_takes_more(cells):
    rows = along(cells, "max_model_len", ["1", "512", "1000", "4096", "32768", "100000", "2000000"])
    assert_only(rows, "max_model_len", kv_minimum_bytes=1, required_bytes=1, users=-1, rank=-1)


@fast
@given(cells=batches("vllm", "llama.cpp"))
def test_more_gpus_hold_more(cells):
    rows = along(cells, "gpu_count", ["1", "2", "4", "8"])
    assert_only(rows, "gpu_count", weights_bytes=-1, rank=1)
    # llama.cpp keeps more copies of its inputs on several GPUs, and cuts by whole layers
    assert_only(rows.filter(pl.col("asked_engine") == "vllm"), "gpu_count", fit_context_tokens=1, users=1)


@fast
@given(cells=batches())
def test_more_memory_holds_more(cells):
    # the batch is held still: vLLM and SGLang take larger ones on larger cards
    still = [row | {"max_num_batched_tokens": "8192", "max_num_seqs": "256"} for row in cells]
    sizes = [str(size * GIB) for size in (4, 8, 12, 16, 24, 40, 80, 141, 192)]
    rows = along(still, "gpu_memory_bytes", sizes)
    assert_only(rows, "gpu_memory_bytes", users=1, fit_context_tokens=1, rank=1)
    # llama.cpp's is that of the GPU that fills up first, which may become another
    assert_only(rows.filter(pl.col("asked_engine") != "llama.cpp"), "gpu_memory_bytes", kv_available_bytes=1)


@fast
@given(cells=batches("vllm", "sglang"))
def test_a_larger_share_of_memory_holds_more(cells):
    rows = along(cells, "gpu_memory_utilization", ["0.3", "0.6", "0.9", "0.99"])
    assert_only(rows, "gpu_memory_utilization", kv_available_bytes=1, users=1, fit_context_tokens=1, rank=1)


@fast
@given(cells=batches("vllm", "llama.cpp", "sglang"))
def test_eight_bit_caches_hold_no_less(cells):
    rows = along(cells, "kv_cache_dtype", ["bf16", "fp8"])
    assert_only(rows, "kv_cache_dtype", kv_minimum_bytes=-1, required_bytes=-1, users=1, fit_context_tokens=1, rank=1)


@fast
@given(cells=batches("llama.cpp"))
def test_layers_and_experts_on_the_host_free_the_gpu(cells):
    # of several GPUs each copies what one has left on the host
    one = [row | {"gpu_count": "1"} for row in cells]
    rows = along(one, "n_cpu_moe", ["0", "1", "10", "999"])
    assert_only(rows, "n_cpu_moe", weights_bytes=-1, fit_context_tokens=1, rank=1)
    rows = along(one, "n_gpu_layers", ["-1", "999", "20", "10", "1", "0"])
    assert_only(rows, "n_gpu_layers", weights_bytes=-1, fit_context_tokens=1, rank=1, decode_tokens_per_s=-1)


@fast
@given(cells=batches("llama.cpp"))
def test_larger_batches_take_more(cells):
    rows = along(cells, "n_ubatch", ["1", "64", "512", "2048"])
    assert_only(rows, "n_ubatch", required_bytes=1, fit_context_tokens=-1, rank=-1)


@fast
@given(cells=batches("vllm"))
def test_more_sequences_take_more(cells):
    rows = along(cells, "max_num_seqs", ["1", "16", "256", "1024"])
    assert_only(rows, "max_num_seqs", required_bytes=1, kv_available_bytes=-1, rank=-1)


@fast
@given(cells=batches())
def test_more_at_once_is_slower_for_each_and_faster_for_all(cells):
    rows = along(cells, "concurrency", ["1", "2", "8", "64", "256"])
    assert_only(rows, "concurrency", decode_tokens_per_s=-1, throughput_tokens_per_s=1)


@fast
@given(cells=batches())
def test_longer_prompts_take_longer(cells):
    rows = along(cells, "input_tokens", ["1", "100", "2000", "30000"])
    assert_only(rows, "input_tokens", ttft_ms=1, decode_tokens_per_s=-1)
