"""The profile run's peak against start logs that print it."""

import polars as pl
import pytest
import vllm_models as m

from fitmart.estimator.engines.vllm import vllm_memory
from fitmart.estimator.engines.vllm_rules import VllmRuleError, VllmRules

RULE = m.RULES["vllm_rule"]
ISSUES = "https://github.com/vllm-project/vllm/issues/"
H100 = {"gpu_name": "NVIDIA H100 80GB HBM3", "device_memory_bytes": int(79.18 * m.GIB), "compute_capability": "9.0"}
A10G = {"gpu_name": "NVIDIA A10G", "device_memory_bytes": int(21.99 * m.GIB), "compute_capability": "8.6"}
RTX_4090 = {
    "gpu_name": "NVIDIA GeForce RTX 4090",
    "device_memory_bytes": int(23.55 * m.GIB),
    "compute_capability": "8.9",
}
L40S = {"gpu_name": "NVIDIA L40S", "device_memory_bytes": int(44.52 * m.GIB), "compute_capability": "8.9"}
RTX_4080 = {"gpu_name": "NVIDIA RTX 4080", "device_memory_bytes": int(15.99 * m.GIB), "compute_capability": "8.9"}

# (log, model, settings, "PyTorch activation peak memory" in GiB as printed, GiB it may differ)
PEAKS = [
    (
        ISSUES + "15018",
        m.R1_QWEN_32B,
        {**RTX_4090, "engine_core": "v0", "engine_version": "0.7.4.dev442+gfd8e055f", "context_tokens": 4096},
        1.42,
        0.015,
    ),
    (
        "https://github.com/lennonYe/6998_project vllm_server.log",
        m.QWEN25_15B,
        {**L40S, "engine_core": "v0", "engine_version": "0.6.6.post1", "context_tokens": 4096},
        1.40,
        0.01,
    ),
    (
        ISSUES + "15360",
        m.QWEN25_7B,
        {**A10G, "engine_core": "v0", "engine_version": "0.8.1", "context_tokens": 6600},
        1.43,
        0.01,
    ),
    (
        "https://github.com/kolyangg/mlops-assignment vllm.log",
        m.QWEN3_30B_A3B,
        {**H100, "engine_version": "0.10.2", "context_tokens": 6144, "max_num_batched_tokens": 8192},
        5.58,
        0.01,
    ),
    (
        ISSUES + "16141",
        m.QWEN25_05B,
        {**L40S, "engine_core": "v0", "engine_version": "0.8.3", "context_tokens": 512, "max_num_seqs": 1},
        0.09,
        0.02,
    ),
    (
        "https://github.com/ShanghaoLi0913/memory-aware_RLHF vllm.log",
        m.QWEN25_3B,
        {
            **RTX_4090,
            "engine_version": "0.10.2",
            "context_tokens": 4096,
            "max_num_batched_tokens": 2048,
            "max_num_seqs": 1,
        },
        0.17,
        0.01,
    ),
    # Three images of 576 tokens fill the batch; the sampler over 256 rows is larger still.
    (
        "https://github.com/mrpid12org/imageworks nohup.out",
        m.LLAVA_7B,
        {**RTX_4080, "engine_version": "0.10.2", "context_tokens": 4096, "max_num_batched_tokens": 2048},
        0.34,
        0.02,
    ),
    # A100, model runner 1, few sequences: the experts' scratch decides.
    (
        "https://github.com/LukeJYK/AutoScientists vllm.log",
        m.QWEN3_30B_A3B,
        {
            "gpu_name": "NVIDIA A100-SXM4-80GB",
            "device_memory_bytes": int(79.25 * m.GIB),
            "compute_capability": "8.0",
            "engine_version": "0.26.1rc1",
            "max_num_batched_tokens": 2048,
            "max_num_seqs": 16,
        },
        0.23,
        0.06,
    ),
]


@pytest.mark.parametrize(("log", "model", "asked", "peak_gib", "slack"), PEAKS)
def test_reserves_the_logged_peak(log, model, asked, peak_gib, slack):
    peak = m.memory(model, **asked)["activation_bytes"][0] / m.GIB
    assert peak == pytest.approx(peak_gib, abs=slack), log


# The sampler's peak does not see the model: S × vocabulary × 4 B × 9.5 and the known small terms, by hand for an H100
# (S 1024, batch 8192): 9.5 × 1024 × 128256 × 4 + 2 × (8192 + 2048) × 4096 + 32 MiB.
def test_is_the_sampler_with_default_settings():
    row = m.memory(m.LLAMA_8B, **H100, engine_version="0.11.0").row(0, named=True)
    assert row["activation_bytes"] == int(9.5 * 1024 * 128256 * 4) + 2 * 10240 * 4096 + 32 * 2**20


def test_takes_less_for_a_pooling_model_which_has_no_sampler():
    pooled = m.memory(m.E5_MISTRAL, **H100, engine_version="0.11.0")["activation_bytes"][0]
    # One forward of 8192 tokens: 2 B × 8192 × (3 × 14336 + 4 × 4096 + (32 + 16) × 128).
    assert pooled == 2 * 8192 * (3 * 14336 + 4 * 4096 + 48 * 128)


@pytest.mark.parametrize(
    ("version", "copies", "scratch_rows"),
    [("0.16.0", 9.5, 0), ("0.17.0", 3.5, 132), ("0.22.0", 0.5, 0), ("0.33.0", 2.5, 0)],
)
def test_follows_the_sampler_of_the_version(version, copies, scratch_rows):
    row = m.memory(m.QWEN3_06B, **H100, engine_version=version, max_num_seqs=1024, max_num_batched_tokens=2048)
    unit = 151936 * 4
    expected = int((copies * 1024 + scratch_rows) * unit) + 2 * (2048 + 2048) * 1024 + 32 * 2**20
    assert row["activation_bytes"][0] == expected


# Jamba 1.5 Mini on V0 (vllm/model_executor/models/mamba_cache.py): for each sequence 28 layers × 8192 × (16 + 3) × 2 B
# of states outside the pool.
def test_keeps_recurrent_states_outside_the_pool_in_v0():
    asked = {**H100, "engine_version": "0.5.5", "engine_core": "v0", "context_tokens": 4096}
    few, many = (m.memory(m.JAMBA_MINI, **asked, max_num_seqs=n)["activation_bytes"][0] for n in (1, 256))
    states = 28 * 8192 * (16 + 3) * 2
    assert many - few == 255 * states


def test_reserves_graphs_only_where_the_version_does_and_graphs_are_on():
    versions = ["0.19.1", "0.20.0", "0.33.0"]
    on = m.memory(m.LLAMA_8B, **H100, engine_version=versions)["cuda_graph_bytes"].to_list()
    off = m.memory(m.LLAMA_8B, **H100, engine_version=versions, enforce_eager=True)["cuda_graph_bytes"].to_list()
    assert on[0] == 0
    assert on[1] == on[2] > 100 * 2**20
    assert off == [0, 0, 0]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (RULE.filter((pl.col("parameter") != "group_slack") | (pl.col("value") < 1.5)), "no value of group_slack"),
        (pl.concat([RULE, RULE.filter(pl.col("parameter") == "group_slack")]), "two values of one parameter"),
    ],
)
def test_refuses_rule_tables_with_a_gap_or_a_clash(rules, message):
    shards = pl.DataFrame({"row": [0], "weights_bytes": [1]})
    with pytest.raises(VllmRuleError, match=message):
        vllm_memory(m.deployment(m.LLAMA_8B), *m.FRAMES, shards, m.RULES | {"vllm_rule": rules})


def test_refuses_to_work_without_a_table():
    with pytest.raises(VllmRuleError, match="vllm_band is missing"):
        VllmRules.of({k: v for k, v in m.RULES.items() if k != "vllm_band"})


# vllm-project/vllm#16570: four A100 PCIe 40 GB, 34.434 GiB of weights each, utilization 0.95: 9072 tokens of 81,920 B
# were left, so that one image of 16,384 tokens and everything outside torch took 2.29 GiB.
def test_passes_the_largest_image_through_the_vision_tower():
    row = m.memory(
        m.QWEN25_VL_72B,
        34.434,
        gpu_name="NVIDIA A100-PCIE-40GB",
        device_memory_bytes=int(39.38 * m.GIB),
        compute_capability="8.0",
        tensor_parallel=4,
        engine_version="0.8.3",
        gpu_memory_utilization=0.95,
        context_tokens=8192,
        max_num_seqs=2,
    ).row(0, named=True)
    taken = (row["activation_bytes"] + row["non_torch_bytes"]) / m.GIB
    assert taken == pytest.approx(2.29, rel=0.2)
    assert row["kv_available_bytes_low"] < 9072 * 81920 < row["kv_available_bytes_high"]


def test_cuts_the_image_to_the_context_in_v0():
    asked = {**RTX_4080, "engine_core": "v0", "engine_version": "0.6.5", "max_num_batched_tokens": 4097}
    long, short = (m.memory(m.QWEN25_VL_72B, **asked, context_tokens=n)["activation_bytes"][0] for n in (32768, 4096))
    assert short < long
