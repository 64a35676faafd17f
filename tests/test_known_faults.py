"""Faults that users reported of calculators, planners and price catalogs: each with the value that is right.

The numbers in the names are those of the public reports (repository#issue in the comments).
"""

from contextlib import closing

import polars as pl
import pytest

from fitmart.estimator.answer import all_figures
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.explain import explain
from fitmart.estimator.reference import Models
from fitmart.estimator.scenarios import read_scenarios, with_defaults
from fitmart.estimator.shards import weight_shards
from fitmart.estimator.units import GIB, KIB, MIB
from fitmart.flows.build import build
from fitmart.flows.contexts import with_extension
from fitmart.flows.sources.models import bundled
from fitmart.warehouse.connection import connect
from fitmart.warehouse.reference import load_reference

REFERENCE = load_reference()
RECORDS = {record.model_id: record for record in bundled.read()[0]}
H100, RTX_4090 = "nvidia-h100-sxm", "nvidia-rtx-4090"
GPT_OSS, QWEN_72B, DEEPSEEK = "openai/gpt-oss-120b", "Qwen/Qwen2.5-72B-Instruct", "deepseek-ai/DeepSeek-V3"


def models_of(model_id, **changed):
    record = RECORDS[model_id]
    return Models.of(
        [with_extension(parse_config(model_id, record.config | changed, quant_config=record.quant_config))]
    )


def scenario(model_id, **cells):
    row = {"model_id": model_id, "precision": "native"} | {name: str(value) for name, value in cells.items()}
    return with_defaults(read_scenarios(pl.DataFrame([row])), REFERENCE.precisions)


def estimate(model_id, **cells):
    return all_figures(scenario(model_id, **cells), models_of(model_id), REFERENCE).row(0, named=True)


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("data")
    build(data_dir, include=("BAAI/bge-m3",))
    with closing(connect(data_dir)) as con:
        yield lambda sql: con.execute(sql).fetchall()


# ---- memory of weights ----


def test_03_every_expert_is_resident():
    # AlexsJones/llmfit#230: DeepSeek-V3 "22 GB" from its active parameters
    assert estimate(DEEPSEEK, precision="gguf-q4_k_m")["weights_total_bytes"] == pytest.approx(390e9, rel=0.05)


@pytest.mark.parametrize(
    ("model_id", "params", "gigabytes"),
    [
        # llmfit#1045, huggingface.js#1770, #2415: packed int32 and FP4 words counted as parameters
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", 7_615_616_512, 5.55),
        # gpustack#645: "162 GB"; AWQ and GPTQ repositories pad 29,568 to 29,696
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", 72_957_861_888, 41.6),
        (GPT_OSS, 116_829_156_672, 65.25),
    ],
)
def test_06_18_20_packed_weights_are_counted_unpacked(model_id, params, gigabytes):
    row = estimate(model_id)
    assert row["params_total"] == params
    assert row["weights_total_bytes"] / 1e9 == pytest.approx(gigabytes, rel=0.01)


def test_25_a_vision_projector_takes_memory():
    # llama.cpp#18111: the mmproj file, 16 bit
    row = estimate("Qwen/Qwen2.5-VL-7B-Instruct", precision="gguf-q4_k_m", gpu_id=H100, max_model_len=8192)
    assert row["vision_bytes"] == pytest.approx(1.353e9, rel=0.01)
    assert row["required_bytes_high"] >= row["required_bytes"] + row["vision_bytes"]


def test_26_experts_are_divided_by_expert_parallelism():
    # aiconfigurator#1390: 8 × too much
    models = models_of(DEEPSEEK)
    sizes = {"tensor_parallel": [8, 8], "pipeline_parallel": [1, 1], "expert_parallel": [1, 8]}
    wanted = pl.DataFrame({"model_id": [DEEPSEEK] * 2, "precision_id": ["bf16"] * 2} | sizes)
    shares = weight_shards(models.models, models.tensors, REFERENCE.precisions, wanted)["weights_bytes"]
    whole = estimate(DEEPSEEK, precision="bf16")["weights_total_bytes"]
    assert all(share == pytest.approx(whole / 8, rel=0.03) for share in shares)


def test_38_parameters_are_counted_by_component():
    # inference-atlas#153: headline 35 B, stored 35.95 B: 0.845 for MTP, 0.447 for vision
    row = estimate("nvidia/Qwen3.6-35B-A3B-NVFP4")
    got = [row[name] / 1e9 for name in ("stored_params", "params_mtp", "params_vision")]
    assert got == pytest.approx([35.952, 0.845, 0.447], abs=0.001)


# ---- KV cache ----


@pytest.mark.parametrize("version", ["0.10.2", "0.20.0"])
def test_01_sliding_layers_are_kept_by_the_version_that_keeps_them(version):
    # hf-mem#60: 36,864 bytes a token; the log of that version says 73,728: all 36 layers × 2 × 8 × 64 × 2 bytes
    row = estimate(GPT_OSS, gpu_id=H100, gpu_count=2, engine_version=version, max_model_len=131_072)
    assert row["kv_cache_bytes"] / row["kv_tokens"] == 73_728
    # the architecture itself needs 18 full layers and 128 tokens of the other 18
    assert row["kv_minimum_bytes"] == 18 * 2048 * (131_072 + 128)


def test_04_context_is_an_axis():
    # llmfit#302: 9 B "26 GB", the whole 262k assumed
    short, long = (
        estimate("Qwen/Qwen3.5-9B", gpu_id=H100, max_model_len=tokens)["required_bytes"] for tokens in (8192, 262_144)
    )
    assert long - short > 7 * GIB


def test_05_cache_is_by_layers_and_heads_not_by_parameters():
    # llmfit#418: 8e-6 × parameters × context. 32 layers × 2 × 32 heads × 128 × 2 bytes, against 8 heads
    seven, eight = (
        estimate(model_id, max_model_len=4096)["kv_minimum_bytes"] / 4096
        for model_id in ("meta-llama/Llama-2-7b-hf", "meta-llama/Llama-3.1-8B-Instruct")
    )
    assert (seven, eight) == (524_288, 131_072)


@pytest.mark.parametrize(
    ("model_id", "tokens", "size"),
    [
        # gguf-parser-go#28: full_attention_interval 4: 10 of 40 layers × 2 × 2 heads × 256 × 2 bytes, and the states
        ("Qwen/Qwen3.5-35B-A3B", 32_768, pytest.approx(10 * 2048 * 32_768, rel=0.12)),
        # gguf-parser-go#31: LFM2 keeps KV in 6 of 16 layers, whose heads are listed layer by layer: 384 MiB
        ("LiquidAI/LFM2-1.2B", 32_768, pytest.approx(384 * MIB, rel=0.001)),
        # gguf-parser-go#2: an encoder keeps none
        ("BAAI/bge-m3", 8192, 0),
        # LMCache#688: head_dim is its own field, 128 and not 2048 / 32; DeepSeek keeps one latent of 576
        ("Qwen/Qwen3-30B-A3B", 1000, 48 * 2 * 4 * 128 * 2 * 1000),
        (DEEPSEEK, 1000, 61 * 576 * 2 * 1000),
        # unslothai/unsloth#4757: Gemma 3 keeps 1,024 tokens in 52 of 62 layers
        ("google/gemma-3-27b-it", 32_768, (10 * 32_768 + 52 * 1024) * 2 * 16 * 128 * 2),
    ],
)
def test_15_16_17_21_22_cache_by_kind_of_attention(model_id, tokens, size):
    assert estimate(model_id, max_model_len=tokens)["kv_minimum_bytes"] == size


def test_17_an_encoder_is_small():
    # "9.9 GiB": 568 M parameters of 2 bytes and an engine beside them
    row = estimate("BAAI/bge-m3", gpu_id="nvidia-l4")
    assert row["verdict"] == "fits"
    assert row["required_bytes"] < 4 * GIB


def test_23_deepseek_v2_keeps_expanded_heads_in_old_llama_cpp():
    # ollama#5136: 27 layers × 16 heads × (192 + 128) × 2 bytes
    row = estimate(
        "deepseek-ai/DeepSeek-V2-Lite", precision="gguf-q4_0", engine_version="b3000", gpu_id=RTX_4090, n_parallel=1,
        max_model_len=8192,
    )  # fmt: skip
    assert row["kv_cache_bytes"] == 27 * 16 * 320 * 2 * 8192
    assert row["compute_buffer_bytes"] > 200 * MIB


def test_24_cache_precision_is_an_axis():
    # ollama#10128: q8_0 holds 32 elements in 34 bytes, q4_0 in 18
    sizes = [
        estimate(QWEN_72B, precision="gguf-q4_k_m", gpu_id=H100, max_model_len=8192, kv_cache_dtype=word)[
            "kv_cache_bytes"
        ]
        for word in ("f16", "q8_0", "q4_0")
    ]
    assert sizes == [327_680 * 8192 * bits // 64 for bits in (64, 34, 18)]


def test_27_windows_make_the_cache_piecewise():
    # aiconfigurator#1201: the first token's bytes used as the rate
    sizes = [estimate("google/gemma-3-27b-it", max_model_len=n * KIB)["kv_minimum_bytes"] for n in (1, 2, 3)]
    assert sizes[1] - sizes[0] == sizes[2] - sizes[1] < sizes[0] / 5


def test_29_30_hybrid_pages_are_whole_blocks():
    # configiq#112, vllm#54458: the printed size is no pool ÷ bytes, and users are whole requests
    row = estimate("Qwen/Qwen3-Next-80B-A3B-Instruct", precision="fp8", gpu_id="nvidia-h200-sxm", max_model_len=32_768)
    assert row["sequence_kv_bytes"] % row["kv_block_bytes"] == 0
    assert row["users"] == row["kv_cache_bytes"] // row["sequence_kv_bytes"]
    assert row["kv_tokens"] == pytest.approx(row["kv_cache_bytes"] / row["sequence_kv_bytes"] * 32_768, rel=0.01)


def test_32_packed_latents_at_a_million_tokens():
    # sparkrun#247: DeepSeek-V4 "86 GB"; at most 656 bytes a token and layer, less where layers compress
    row = estimate("deepseek-ai/DeepSeek-V4-Flash", gpu_id="nvidia-b200-sxm", gpu_count=4, max_model_len=1_000_000)
    assert row["kv_minimum_bytes"] < row["sequence_kv_bytes"] < 656 * row["layers"] * 1_000_000


# ---- engines ----


def test_02_graphs_are_reserved_by_the_versions_that_reserve_them():
    # hf-mem#51
    old, new = (
        estimate("Qwen/Qwen2.5-7B-Instruct", gpu_id=H100, engine_version=version, max_model_len=8192)[
            "cuda_graph_bytes"
        ]
        for version in ("0.15.0", "0.21.0")
    )
    assert old == 0
    assert new > 256 * MIB


def test_13_unified_memory_is_not_the_gpu_s_whole():
    # llmfit#570
    row = estimate(QWEN_72B, precision="gguf-q4_k_m", gpu_id="apple-m2-ultra-192gb", max_model_len=8192)
    assert row["budget_bytes"] < 0.9 * row["memory_bytes"]


@pytest.mark.parametrize(("split", "verdict"), [("data_parallel", "no"), ("tensor_parallel", "fits")])
def test_14_memory_of_cards_adds_up_only_where_the_model_is_split(split, verdict):
    # llmfit#46: 41.5 GB of weights on two cards of 24 GB
    cells = {"precision": "awq-int4", "gpu_id": RTX_4090, "max_model_len": 4096, split: 2}
    assert estimate(QWEN_72B, **cells)["verdict"] == verdict


def test_19_needed_and_taken_are_two_figures():
    # gpustack#2462: 1.8 GiB estimated, 21.85 used: utilization × memory
    row = estimate(
        "Qwen/Qwen3.5-0.8B", gpu_id=RTX_4090, max_model_len=4096, gpu_memory_utilization=0.9, engine_version="0.15.0"
    )
    assert row["required_bytes"] < 8 * GIB
    assert row["taken_bytes"] == pytest.approx(0.9 * 23.55 * GIB, rel=0.06)


def test_31_activations_count():
    # llm-d-benchmark#621: 70 B, FP8, 16k: weights and one user's cache are within the budget, and it does not start
    row = estimate("meta-llama/Llama-3.3-70B-Instruct", precision="fp8", gpu_id=H100, max_model_len=16_384)
    assert row["weights_bytes"] + row["sequence_kv_bytes"] <= row["budget_bytes"]
    assert (row["verdict"], row["limited_by"]) == ("no", "kv_cache")


# ---- models' own words ----


def test_07_context_is_what_the_config_says_and_is_scaled_once():
    # llmfit#1054: Llama 3.1's 131,072 include its factor of 8
    row = estimate("meta-llama/Llama-3.1-8B-Instruct")
    assert (row["max_context_tokens"], row["extended_context_tokens"]) == (131_072, 131_072)
    row = estimate(QWEN_72B)
    assert (row["max_context_tokens"], row["extended_context_tokens"]) == (32_768, 131_072)


def test_08_nested_configs_are_read():
    # llmfit#445: Maverick "4096 tokens, 16 experts"
    row = estimate("meta-llama/Llama-4-Maverick-17B-128E-Instruct")
    assert (row["max_context_tokens"], row["experts"]) == (1_048_576, 128)


# ---- speed ----


def test_09_offloaded_experts_are_read_at_the_host_s_rate():
    # llmfit#449: 472 tokens/s for what does 150 to 180
    cells = {"precision": "gguf-q4_k_m", "gpu_id": H100, "max_model_len": 8192}
    at_home = estimate(GPT_OSS, **cells)["decode_tokens_per_s"]
    away = estimate(GPT_OSS, **cells, n_cpu_moe=36)
    read = away["experts_bytes"] * away["experts_per_token"] / away["experts"]
    assert away["decode_tokens_per_s"] < min(at_home / 2, 60e9 / read)


def test_10_moe_speed_is_of_the_active_bytes():
    # llmfit#474: 3 of 30 B active are several times as fast as 32 dense
    cells = {"precision": "bf16", "gpu_id": H100, "max_model_len": 8192}
    sparse, dense = (estimate(m, **cells)["decode_tokens_per_s"] for m in ("Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-32B"))
    assert sparse > 3 * dense


def test_12_one_formula_in_one_place():
    # llmfit#921: two commands disagreed 13 ×
    asked = scenario(QWEN_72B, precision="bf16", gpu_id=H100, gpu_count=4, max_model_len=8192)
    models = models_of(QWEN_72B)
    row = all_figures(asked, models, REFERENCE).row(0, named=True)
    told = explain(asked, models, REFERENCE)
    for name in ("required_bytes", "taken_bytes", "users", "headroom_bytes", "decode_tokens_per_s", "ttft_ms"):
        assert told.value(name) == row[name]


# ---- devices and prices ----


def test_11_laptop_parts_are_rows_of_their_own(ask):
    # llmfit#919: the 5090's 1,792 GB/s, in a laptop 896
    rows = dict(
        ask(
            "SELECT cast(gpu_id AS VARCHAR), bandwidth_bytes_per_s / 1e9 FROM gpu "
            "WHERE gpu_id IN ('nvidia-rtx-5090', 'nvidia-rtx-5090-laptop')"
        )
    )
    assert rows == {"nvidia-rtx-5090": pytest.approx(1792, rel=0.01), "nvidia-rtx-5090-laptop": pytest.approx(896)}


def test_28_a_b200_is_what_the_driver_shows(ask):
    # aiconfigurator#1246: 7.7 TB/s and 178.35 GiB, not 8 and 192 or 96
    ((rate, gib),) = ask(
        "SELECT bandwidth_bytes_per_s / 1e12, torch_memory_bytes / 2.0^30 FROM gpu WHERE gpu_id = 'nvidia-b200-sxm'"
    )
    assert (rate, gib) == (pytest.approx(7.7), pytest.approx(178.35, abs=0.01))


def test_33_36_offers_name_a_gpu_whose_memory_agrees(ask):
    # gpuhunt#41, skypilot#6824: counts without a name, RAM in the column of VRAM
    assert ask("SELECT count(*) FROM offer WHERE gpu_id IS NULL OR gpu_count < 1") == [(0,)]
    assert (
        ask(
            "SELECT o.gpu_id, o.gpu_memory_gib FROM offer AS o INNER JOIN gpu AS g ON o.gpu_id = g.gpu_id "
            "WHERE o.gpu_memory_gib > 1.25 * greatest(g.memory_bytes / 2.0^30, g.marketed_memory_gb)"
        )
        == []
    )


def test_34_the_tier_is_a_column(ask):
    # dstack#1886: the community price shown, the secure one billed
    tiers = ask("SELECT DISTINCT tier FROM offer WHERE provider_id = 'runpod' AND tier IS NOT NULL ORDER BY 1")
    assert [tier for (tier,) in tiers] == ["community", "secure"]


def test_35_a_price_without_its_host_is_never_the_best(ask):
    # skypilot-catalog#31
    assert ask("SELECT count(*) > 0 FROM offer WHERE price_scope = 'gpu_only'") == [(True,)]
    assert ask(
        "SELECT count(*) FROM best_offer AS b INNER JOIN offer AS o ON b.offer_id = o.offer_id "
        "WHERE o.price_scope = 'gpu_only'"
    ) == [(0,)]


def test_37_every_price_has_a_source_and_a_date(ask):
    # litellm#39501, genai-prices#703: a stale file beat the fresh bundle
    for table in ("offer", "api_price"):
        assert ask(f"SELECT count(*) FROM {table} WHERE source_id IS NULL OR observed_at IS NULL") == [(0,)]
    assert ask("SELECT provider_id, model_name_raw FROM api_price GROUP BY ALL HAVING count(*) > 1") == [], (
        "of several sources the newest stands"
    )
