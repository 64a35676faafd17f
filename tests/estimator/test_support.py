"""Which engine runs what where, by version: the seed's rows against what the engines' makers say."""

import polars as pl
import pytest

from fitmart.estimator.support import STATES, expand, support_ids, with_support
from fitmart.warehouse.snapshot import read_seed

SUPPORT = expand(read_seed("engine_support"), read_seed("gpu"))
PRECISIONS = read_seed("precision")
CASE = ("engine_id", "gpu_id", "stored_precision_id", "engine_version_used")


def state(*case):
    rows = pl.DataFrame([case], schema=dict.fromkeys(CASE, pl.String), orient="row")
    return with_support(rows.with_columns(precision_id="stored_precision_id"), SUPPORT, PRECISIONS)["support"][0]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # vLLM: FP8 on Ampere keeps 16-bit activations (Marlin); Hopper computes in it
        (("vllm", "nvidia-a100-sxm-80gb", "fp8", "0.33.0"), "weight_only"),
        (("vllm", "nvidia-h100-sxm", "fp8", "0.33.0"), "native"),
        # FP4 tensor cores came with Blackwell
        (("vllm", "nvidia-b200-sxm", "nvfp4", "0.33.0"), "native"),
        # bfloat16 needs compute capability 8.0, and Volta was dropped at 0.20
        (("vllm", "nvidia-v100-sxm2-32gb", "bf16", "0.11.0"), "unsupported"),
        (("vllm", "nvidia-v100-sxm2-32gb", "fp16", "0.11.0"), "native"),
        (("vllm", "nvidia-v100-sxm2-32gb", "fp16", "0.33.0"), "unsupported"),
        # a family stands for its types
        (("llama.cpp", "nvidia-rtx-4090", "gguf-q4_k_m", None), "native"),
        (("llama.cpp", "apple-m4-max-128gb", "gguf-iq4_xs", None), "native"),
        (("mlx", "apple-m4-16gb", "mlx-4bit", None), "native"),
        # nothing is known against a device that nobody named
        (("vllm", None, "bf16", "0.11.0"), "native"),
        # llama.cpp loads GGUF files, mlx-lm none
        (("llama.cpp", "nvidia-h100-sxm", "awq-int4", None), "unsupported"),
        (("mlx", "apple-m4-16gb", "gguf-q4_k_m", None), "unsupported"),
        (("vllm", None, "mlx-4bit", "0.33.0"), "unsupported"),
        # what no row speaks of is not known, never a no
        (("mlx", "nvidia-rtx-4090", "mlx-4bit", None), "unknown"),
    ],
)
def test_states(case, expected):
    assert state(*case) == expected


def test_a_precision_falls_back_to_its_longest_family():
    found = support_ids(pl.Series(["gguf-q4_k_m", "fp8-block", "fp8", "new"]), pl.Series(["gguf", "fp8"]))
    assert dict(found.iter_rows()) == {"gguf-q4_k_m": "gguf", "fp8-block": "fp8", "fp8": "fp8", "new": None}


def test_rows_speak_of_known_devices_in_known_words():
    assert set(SUPPORT["gpu_id"]) <= set(read_seed("gpu")["gpu_id"])
    assert set(SUPPORT["support"]) <= set(STATES)
    assert (SUPPORT["since_key"] < SUPPORT["until_key"]).all()
