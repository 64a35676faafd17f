"""What a configuration reads and computes: hand calculations, and sums token by token."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitmart.estimator.anatomy import to_frames
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.attention_work import attended_pairs, attention_work, element_bytes
from fitmart.estimator.workload import device_class, model_work, peak_flop_per_s

LLAMA_3_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK_LIKE = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 128,
    "num_key_value_heads": 128, "num_hidden_layers": 1, "vocab_size": 129280, "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "tie_word_embeddings": False,
}  # fmt: skip


def frames(**configs: dict) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    return to_frames([parse_config(name, config) for name, config in configs.items()])


def test_embeddings_are_looked_up_not_multiplied() -> None:
    models, tensors, _ = frames(a=LLAMA_3_8B)
    work = model_work(models, tensors).row(0, named=True)
    # 32 layers of q, o (4096²), k, v (1024 × 4096) and three matrices of 14336 × 4096; published total 8,030,261,248.
    assert work["dense_params"] == 32 * (2 * 4096**2 + 2 * 1024 * 4096 + 3 * 14336 * 4096) == 6_979_321_856
    assert work["head_params"] == 128256 * 4096
    assert work["expert_params"] == 0
    assert (work["blocks"], work["moe_blocks"]) == (32, 0)


def test_a_layer_that_is_only_mixer_or_feed_forward_counts_half() -> None:
    nemotron = {
        "model_type": "nemotron_h", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100, "hybrid_override_pattern": "M-M-*-",
        "num_hidden_layers": 6, "mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 8, "n_groups": 1,
        "conv_kernel": 4, "tie_word_embeddings": False,
    }  # fmt: skip
    models, tensors, _ = frames(a=nemotron)
    assert model_work(models, tensors)["blocks"].item() == 3


@given(tokens=st.integers(0, 300), start=st.integers(0, 300), window=st.integers(1, 400))
def test_the_closed_form_of_pairs_is_the_sum_over_tokens(tokens: int, start: int, window: int) -> None:
    expression = attended_pairs(*(pl.lit(float(v)) for v in (tokens, start, window)), is_chunked=pl.lit(value=False))
    exact = sum(min(start + i, window) for i in range(tokens))  # tokens before each
    # The integral counts half a token more at each position that still grows.
    assert exact <= pl.select(expression).item() <= exact + tokens / 2 + 1


@pytest.mark.parametrize(
    ("dtype", "want"),
    [(None, 2.0), ("bf16", 2.0), ("auto", 2.0), ("fp8", 1.0), ("q8_0", 34 / 32), ("q4_0", 18 / 32), ("f32", 4.0),
     ("q8_0/q4_0", 26 / 32)],
)  # fmt: skip
def test_bytes_of_a_cached_element(dtype: str | None, want: float) -> None:
    assert pl.select(element_bytes(pl.lit(dtype, pl.String))).item() == pytest.approx(want)


def wanted(model: str, engine: str, prompt: int = 0, cached: int = 0, output: int = 0) -> pl.DataFrame:
    return pl.DataFrame(
        {"model_id": model, "engine_id": engine, "kv_cache_dtype": None, "input_tokens": prompt,
         "cached_tokens": cached, "output_tokens": output},
        schema_overrides={"kv_cache_dtype": pl.String},
    )  # fmt: skip


def test_a_step_reads_the_cache_up_to_the_middle_of_the_output() -> None:
    models, _, caches = frames(a=LLAMA_3_8B)
    work = attention_work(models, caches, wanted("a", "vllm", prompt=1000, cached=24, output=200))
    # 2 (K and V) × 8 heads × 128 × 32 layers × 2 bytes = 131,072 bytes a token
    assert work["kv_read_bytes"].item() == 131_072 * (24 + 1000 + 100)


def test_a_prompt_compares_every_head_with_the_tokens_before() -> None:
    models, _, caches = frames(a=LLAMA_3_8B)
    work = attention_work(models, caches, wanted("a", "vllm", prompt=512, cached=1024)).row(0, named=True)
    pairs = 512 * 1024 + 512**2 / 2
    assert work["score_pairs"] == 32 * 32 * pairs
    assert work["attention_flop"] == 4 * 4096 * 32 * pairs  # 2 × (key + value) of 32 heads × 128


def test_latents_are_expanded_by_servers_and_used_as_they_are_by_llamacpp() -> None:
    models, _, caches = frames(a=DEEPSEEK_LIKE)
    flop = {
        e: attention_work(models, caches, wanted("a", e, prompt=2))["attention_flop"].item()
        for e in ("vllm", "llama.cpp")
    }
    assert flop["llama.cpp"] == 2 * 128 * (576 + 512) * 2  # 2 pairs: 2² / 2
    assert flop["vllm"] == 2 * 128 * (192 + 192) * 2


@pytest.mark.parametrize(
    ("vendor", "memory", "form", "want"),
    [("NVIDIA", "HBM3", "SXM5", "nvidia-hbm"), ("NVIDIA", "GDDR6X", "PCIe", "nvidia-gddr"),
     ("NVIDIA", "LPDDR5X", "SoC", "nvidia-gddr"), ("AMD", "HBM3", "OAM", "amd-dc"), ("AMD", "HBM2", "PCIe", "amd-gpu"),
     ("AMD", "GDDR6", "PCIe", "amd-gpu"), ("Apple", "LPDDR5", "SoC", "apple"), ("Intel", "HBM2e", "OAM", "other")],
)  # fmt: skip
def test_device_classes(vendor: str, memory: str, form: str, want: str) -> None:
    row = pl.DataFrame({"vendor": [vendor], "memory_type": [memory], "form_factor": [form]})
    assert row.select(device_class()).item() == want


RTX_4090 = {"vendor": "NVIDIA", "fp16_flop_per_s": 165.2e12, "bf16_flop_per_s": 165.2e12, "fp8_flop_per_s": 330.3e12,
            "int8_op_per_s": 660.6e12, "fp32_flop_per_s": 82.6e12}  # fmt: skip
MI50 = {"vendor": "AMD", "fp16_flop_per_s": 26.5e12, "bf16_flop_per_s": None, "fp8_flop_per_s": None,
        "int8_op_per_s": None, "fp32_flop_per_s": None}  # fmt: skip


@pytest.mark.parametrize(
    ("gpu", "engine", "precision", "bits", "want"),
    [
        (RTX_4090, "llama.cpp", "gguf-q4_k_m", 4, 330.3e12),  # INT8 kernels
        (RTX_4090, "llama.cpp", "gguf-bf16", 16, 165.2e12),
        (RTX_4090, "vllm", "fp8", 8, 330.3e12),
        (RTX_4090, "vllm", "awq-int4", 4, 165.2e12),  # expanded to 16 bits
        (MI50, "llama.cpp", "gguf-f16", 16, 26.5e12),
        (MI50, "llama.cpp", "gguf-bf16", 16, 13.25e12),  # no BF16 units: 32 bits
    ],
)
def test_the_peak_is_that_of_the_kernels_in_use(gpu: dict, engine: str, precision: str, bits: int, want: float) -> None:
    rates = {k: pl.Float64 for k in gpu if k != "vendor"}
    row = pl.DataFrame(
        [gpu | {"engine_id": engine, "precision_id": precision, "weight_bits": bits}], schema_overrides=rates
    )
    assert row.select(peak_flop_per_s()).item() == want
