"""vLLM's defaults by version, device and usage (vllm/engine/arg_utils.py, vllm/config)."""

import polars as pl
import pytest
import vllm_models as m

from fitmart.estimator.engines.vllm_settings import with_settings

H100 = ("NVIDIA H100 80GB HBM3", 79.18, "9.0", False)
A100 = ("NVIDIA A100-SXM4-80GB", 79.25, "8.0", False)
L4 = ("NVIDIA L4", 22.05, "8.9", False)
B200 = ("NVIDIA B200", 178.4, "10.0", False)
GB10 = ("NVIDIA GB10", 119.7, "12.1", True)
T4 = ("Tesla T4", 14.56, "7.5", False)


def resolve(model=m.LLAMA_8B, device=H100, **given):
    name, memory, capability, is_unified = device
    gpu = {
        "vendor": "NVIDIA",
        "gpu_name": name,
        "device_memory_bytes": int(memory * m.GIB),
        "compute_capability": capability,
        "is_unified_memory": is_unified,
    }
    models, _, caches = m.FRAMES
    rows = with_settings(m.deployment(model, **(gpu | {"engine_core": None} | given)), models, caches, m.TABLES)
    return rows.row(0, named=True)


@pytest.mark.parametrize(
    ("version", "core", "device", "usage", "batch", "sequences"),
    [
        ("0.6.0", "v0", H100, None, 512, 256),  # chunked: 131,072 tokens of context
        ("0.7.0", "v0", H100, None, 2048, 256),
        ("0.8.3", "v1", L4, None, 2048, 1024),
        ("0.8.4", "v1", L4, None, 2048, 256),
        ("0.8.4", "v1", A100, None, 2048, 256),
        ("0.8.4", "v1", H100, None, 8192, 1024),
        ("0.8.5", "v1", A100, None, 8192, 1024),
        ("0.9.0", "v1", A100, None, 2048, 256),
        ("0.11.0", "v1", H100, None, 8192, 1024),
        ("0.11.0", "v1", H100, "offline", 16384, 1024),
        ("0.11.0", "v1", L4, "offline", 8192, 256),
        ("0.25.1", "v1", GB10, None, 2048, 256),
        ("0.26.0", "v1", B200, None, 8192, 1024),
        ("0.28.0", "v1", B200, None, 16384, 1024),
        ("0.33.0", "v1", H100, None, 8192, 1024),
    ],
)
def test_default_batch_and_sequences(version, core, device, usage, batch, sequences):
    row = resolve(device=device, engine_version=version, usage=usage)
    assert (row["engine_core"], row["batch_tokens"], row["sequences"]) == (core, batch, sequences)


@pytest.mark.parametrize(
    ("asked", "batch", "sequences"),
    [
        ({"max_num_batched_tokens": 512}, 512, 512),  # a default S is capped by B
        ({"max_num_batched_tokens": 512, "max_num_seqs": 600}, 512, 600),
        ({"max_num_seqs": 1, "context_tokens": 4096}, 4096, 1),  # from 0.11.1 a default B by S × L
        ({"max_num_seqs": 1, "context_tokens": 4096, "engine_version": "0.11.0"}, 8192, 1),
        ({"engine_core": "v0", "engine_version": "0.8.0", "context_tokens": 4096}, 4096, 256),
        ({"engine_core": "v0", "engine_version": "0.8.0", "context_tokens": 1024}, 2048, 256),
    ],
)
def test_batch_and_sequences_cap_each_other(asked, batch, sequences):
    row = resolve(**asked)
    assert (row["batch_tokens"], row["sequences"]) == (batch, sequences)


@pytest.mark.parametrize(
    ("asked", "used", "core", "share"),
    [
        ({}, "0.33.0", "v1", 0.92),
        ({"engine_version": "latest"}, "0.33.0", "v1", 0.92),
        ({"engine_version": "0.19.1"}, "0.19.1", "v1", 0.90),
        ({"engine_version": "0.20.0"}, "0.20.0", "v1", 0.92),
        ({"engine_version": "0.4.1"}, "0.5.0", "v0", 0.90),
        ({"engine_version": "0.99.0"}, "0.33.0", "v1", 0.92),
        ({"engine_core": "v0"}, "0.10.2", "v0", 0.90),
        ({"engine_version": "0.10.0", "device": T4}, "0.10.0", "v0", 0.90),  # V1 wants 8.0 before 0.11
        ({"engine_version": "0.11.0", "device": T4}, "0.11.0", "v1", 0.90),
        ({"engine_version": "0.9.2", "model": m.QWEN35_27B}, "0.9.2", "v0", 0.90),
    ],
)
def test_version_core_and_utilization(asked, used, core, share):
    row = resolve(**asked)
    assert (row["engine_version_used"], row["engine_core"]) == (used, core)
    assert row["budget_bytes"] == pytest.approx(row["memory_bytes"] * share, abs=1)


@pytest.mark.parametrize(
    ("version", "model", "precision", "is_second"),
    [
        ("0.21.0", m.QWEN3_32B, "bf16", False),
        ("0.22.0", m.QWEN3_32B, "bf16", True),
        ("0.22.0", m.QWEN3_32B, "fp8", False),
        ("0.22.0", m.LLAMA_8B, "bf16", False),
        ("0.24.0", m.LLAMA_8B, "fp8", True),
        ("0.25.0", m.QWEN25_7B, "bf16", True),
        ("0.25.0", m.QWEN3_30B_A3B, "bf16", False),
        ("0.28.0", m.QWEN35_27B, "bf16", False),
        ("0.29.0", m.QWEN35_27B, "bf16", True),
    ],
)
def test_model_runner(version, model, precision, is_second):
    row = resolve(model, engine_version=version, precision_id=precision)
    assert row["is_runner2"] is is_second


@pytest.mark.parametrize(
    ("version", "stages", "batches"), [("0.25.0", 1, 1), ("0.26.0", 1, 2), ("0.26.0", 4, 5), (None, 2, 3)]
)
def test_batches_in_flight(version, stages, batches):
    row = resolve(engine_version=version, pipeline_parallel=stages)
    assert row["flight_tokens"] == batches * row["batch_tokens"]


def test_gpus_are_split_by_tensor_parallelism_unless_said():
    assert resolve(gpu_count=8)["tensor_parallel"] == 8
    assert resolve(gpu_count=8, pipeline_parallel=2)["tensor_parallel"] == 4
    assert resolve(tensor_parallel=2, data_parallel=3)["gpu_count"] == 6


def test_an_eight_bit_cache_where_the_checkpoint_carries_its_scales():
    models, _, caches = m.FRAMES
    scaled = models.with_columns(kv_cache_scheme=pl.lit("fp8"))
    rows = with_settings(m.deployment(m.LLAMA_8B, kv_cache_dtype=[None, "auto", "bf16"]), scaled, caches, m.TABLES)
    assert rows["kv_element_bytes"].to_list() == [1.0, 1.0, 2.0]
