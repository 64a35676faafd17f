"""Configs of published models, as far as their weights need them, and the tables that size them."""

from pathlib import Path
from typing import Any

import polars as pl

from fitmart.estimator.architectures import parse_config
from fitmart.estimator.footprint import footprint
from fitmart.estimator.frames import PRECISION_SCHEMA, conform
from fitmart.estimator.gguf_types import gguf_tensors
from fitmart.estimator.reference import Models

SEEDS = Path(__file__).parents[1] / "warehouse" / "seeds"
PRECISIONS = conform(
    pl.read_csv(SEEDS / "precision.csv", schema_overrides={"bits_per_weight": pl.Float64}),
    PRECISION_SCHEMA,
    stage="precision",
)
RULES = {
    path.stem: pl.read_csv(path, try_parse_dates=True, infer_schema_length=None)
    for path in SEEDS.glob("*.csv")
    if path.stem.startswith(("gguf_", "llamacpp_"))
}


def _decoder(
    model_type: str, layers: int, hidden: int, feed: int, heads: int, kv_heads: int, vocab: int, **more: Any
) -> dict[str, Any]:
    name = {"llama": "Llama", "mistral": "Mistral", "mixtral": "Mixtral", "qwen2": "Qwen2", "qwen3_moe": "Qwen3Moe"}
    return {
        "architectures": [f"{name.get(model_type, model_type)}ForCausalLM"],
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": feed,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocab,
        "max_position_embeddings": 32768,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    } | more


QWEN_72B, QWEN_3B, LLAMA_2_7B, LLAMA_8B = (
    "Qwen/Qwen2.5-72B-Instruct",
    "Qwen/Qwen2.5-3B-Instruct",
    "meta-llama/Llama-2-7b-hf",
    "meta-llama/Llama-3.1-8B-Instruct",
)
MISTRAL_7B, MIXTRAL, QWEN_30B, GPT_OSS, DEEPSEEK = (
    "mistralai/Mistral-7B-Instruct-v0.2",
    "mistralai/Mixtral-8x7B-v0.1",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-V3",
)
AWQ_72B = "Qwen/Qwen2.5-72B-Instruct-AWQ"

CONFIGS: dict[str, dict[str, Any]] = {
    QWEN_72B: _decoder("qwen2", 80, 8192, 29568, 64, 8, 152064),
    AWQ_72B: _decoder(
        "qwen2", 80, 8192, 29696, 64, 8, 152064, torch_dtype="float16",
        quantization_config={"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
    ),
    QWEN_3B: _decoder("qwen2", 36, 2048, 11008, 16, 2, 151936, tie_word_embeddings=True),
    LLAMA_2_7B: _decoder("llama", 32, 4096, 11008, 32, 32, 32000),
    LLAMA_8B: _decoder("llama", 32, 4096, 14336, 32, 8, 128256),
    MISTRAL_7B: _decoder("mistral", 32, 4096, 14336, 32, 8, 32000),
    MIXTRAL: _decoder("mixtral", 32, 4096, 14336, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2),
    QWEN_30B: _decoder(
        "qwen3_moe", 48, 2048, 6144, 32, 4, 151936, head_dim=128, num_experts=128, num_experts_per_tok=8,
        moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True,
    ),
    GPT_OSS: _decoder(
        "gpt_oss", 24, 2880, 2880, 64, 8, 201088, head_dim=64, num_local_experts=32, num_experts_per_tok=4,
        sliding_window=128, layer_types=["sliding_attention", "full_attention"] * 12, attention_bias=True,
        quantization_config={
            "quant_method": "mxfp4",
            "modules_to_not_convert": [
                "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
            ],
        },
    ),
    DEEPSEEK: _decoder(
        "deepseek_v3", 61, 7168, 18432, 128, 128, 129280, first_k_dense_replace=3, kv_lora_rank=512, q_lora_rank=1536,
        qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, n_routed_experts=256, n_shared_experts=1,
        moe_intermediate_size=2048, num_experts_per_tok=8, moe_layer_freq=1, n_group=8, topk_group=4,
        num_nextn_predict_layers=1,
        quantization_config={"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
    ),
}  # fmt: skip
MODELS = Models.of([parse_config(model_id, config) for model_id, config in CONFIGS.items()])


def requests(*wanted: tuple[str, str, str | None, bool | None]) -> pl.DataFrame:
    """Rows of model_id, precision_id, engine_version, imatrix."""
    columns = {"model_id": pl.String, "precision_id": pl.String, "engine_version": pl.String, "imatrix": pl.Boolean}
    return pl.DataFrame(list(wanted), schema=columns, orient="row")


def size(model_id: str, precision_id: str, version: str | None = None, imatrix: bool | None = None) -> dict[str, Any]:
    """The footprint's one row."""
    asked = requests((model_id, precision_id, version, imatrix))
    return footprint(MODELS.models, MODELS.tensors, PRECISIONS, asked, rules=RULES).row(0, named=True)


def types(model_id: str, precision_id: str, version: str | None = None, imatrix: bool | None = None) -> pl.DataFrame:
    """The GGUF tensors of one file."""
    asked = requests((model_id, precision_id, version, imatrix))
    return gguf_tensors(MODELS.models, MODELS.tensors, PRECISIONS, asked, rules=RULES)
