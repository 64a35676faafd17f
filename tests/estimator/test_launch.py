"""Launch lines: the engines' own words for what was estimated."""

import pytest

from fitmart.estimator.launch import launch_lines
from fitmart.warehouse.snapshot import read_seed

TEMPLATES = read_seed("launch_template")
FACTS = {"model_id": "Qwen/Qwen2.5-72B-Instruct", "max_context_tokens": 32_768, "extended_context_tokens": 131_072}
CONFIGURATION = {
    "engine_id": "vllm", "precision_id": "bf16", "gpu_count": 4, "context_tokens": 8192, "kv_cache_dtype": "bf16",
    "vendor": "NVIDIA", "engine_version_used": "0.33.0",
}  # fmt: skip


def lines(*, users=2, repositories=None, **changes):
    return launch_lines(
        CONFIGURATION | changes,
        users=users,
        facts=FACTS,
        templates=TEMPLATES,
        defaults={"gpu_memory_utilization": "0.92"},
        repositories=repositories or {},
    )


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        (
            {},
            "vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 4 --max-model-len 8192 "
            "--gpu-memory-utilization 0.92 --kv-cache-dtype auto",
        ),
        (
            {"precision_id": "fp8", "kv_cache_dtype": "fp8"},
            "vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 4 --max-model-len 8192 "
            "--gpu-memory-utilization 0.92 --kv-cache-dtype fp8 --quantization fp8",
        ),
        (
            {"precision_id": "awq-int4", "repositories": {"awq-int4": "Qwen/Qwen2.5-72B-Instruct-AWQ"}},
            "vllm serve Qwen/Qwen2.5-72B-Instruct-AWQ --tensor-parallel-size 4 --max-model-len 8192 "
            "--gpu-memory-utilization 0.92 --kv-cache-dtype auto",
        ),
        (
            {"engine_id": "llama.cpp", "precision_id": "gguf-q4_k_m", "context_tokens": 65_536},
            "llama-server -m Qwen2.5-72B-Instruct-Q4_K_M.gguf -c 131072 -np 2 -ngl 999 -fa on -ctk f16 -ctv f16 "
            "--rope-scaling yarn --rope-scale 4.0 --yarn-orig-ctx 32768",
        ),
        (
            {"engine_id": "mlx", "precision_id": "mlx-4bit", "vendor": "Apple"},
            "mlx_lm.convert --hf-path Qwen/Qwen2.5-72B-Instruct -q --q-bits 4 --q-group-size 64 --mlx-path "
            "Qwen2.5-72B-Instruct-mlx-4bit && mlx_lm.server --model Qwen2.5-72B-Instruct-mlx-4bit",
        ),
    ],
)
def test_commands(changes, command):
    assert lines(**changes)["command"] == command


@pytest.mark.parametrize(
    ("vendor", "image"),
    [("NVIDIA", "vllm/vllm-openai:v0.33.0"), ("AMD", "vllm/vllm-openai-rocm:v0.33.0"), ("Huawei", None)],
)
def test_images_are_the_vendors(vendor, image):
    docker = lines(vendor=vendor).get("docker")
    assert docker is None if image is None else f" {image} --model Qwen/" in docker


def test_every_word_of_every_template_is_filled_in():
    for engine, precision in (("vllm", "nvfp4"), ("llama.cpp", "gguf-q8_0"), ("mlx", "mlx-8bit")):
        for vendor in ("NVIDIA", "AMD", "Intel", "Apple"):
            told = lines(engine_id=engine, precision_id=precision, vendor=vendor, context_tokens=131_072)
            left = [line for line in told.values() if "{" in line.replace('{"rope_parameters": {"rope_type"', "")]
            assert left == []


def test_an_engine_without_a_template_has_no_line():
    assert lines(engine_id="sglang") == {}
