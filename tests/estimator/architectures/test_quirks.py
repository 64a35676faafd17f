"""Config fields that mislead: one case a quirk, with what the field really does."""

from typing import Any

import pytest
from published_configs import anatomy, config

from fitmart.estimator.anatomy import Anatomy, Tensor, count_params
from fitmart.estimator.architectures import parse_config


def named(model: Anatomy, ending: str) -> Tensor:
    """The one tensor pattern whose name ends so."""
    (found,) = [t for t in model.tensors if t.name.endswith(ending)]
    return found


# (model, layers with experts, experts, top k, expert width, shared width)
EXPERTS = [
    ("deepseek-ai/DeepSeek-R1", 58, 256, 8, 2048, 2048),  # first_k_dense_replace 3
    ("deepseek-ai/DeepSeek-V2-Lite", 26, 64, 6, 1408, 2816),  # two shared experts
    ("zai-org/GLM-5.2", 75, 256, 8, 2048, 2048),  # mlp_layer_types
    ("XiaomiMiMo/MiMo-V2-Flash", 47, 256, 8, 2048, None),  # moe_layer_freq as a list
    ("Qwen/Qwen3-30B-A3B", 48, 128, 8, 768, None),
    ("Qwen/Qwen2-57B-A14B-Instruct", 28, 64, 8, 2560, 20480),
    ("baidu/ERNIE-4.5-21B-A3B-PT", 27, 64, 6, 1536, 3072),  # moe_k, moe_layer_start_index 1
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 48, 16, 1, 8192, 8192),
    ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 24, 128, 1, 8192, 8192),  # every second layer
    ("ai21labs/AI21-Jamba-Mini-1.5", 16, 16, 2, 14336, None),
    ("LiquidAI/LFM2-8B-A1B", 22, 32, 4, 1792, None),  # num_dense_layers 2
    ("mistralai/Mixtral-8x7B-v0.1", 32, 8, 2, 14336, None),
    ("openai/gpt-oss-120b", 36, 128, 4, 2880, None),
    ("tencent/Hunyuan-A13B-Instruct", 32, 64, 8, 3072, 3072),  # list-valued width
    ("google/gemma-4-26B-A4B-it", 30, 128, 8, 704, None),  # top_k_experts; a dense MLP beside
    ("databricks/dbrx-instruct", 40, 16, 4, 10752, None),  # ffn_config.moe_top_k
    ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 26, 256, 8, 1024, 1024),  # num_experts_per_token
    ("ibm-granite/granite-4.0-h-small", 40, 72, 10, 768, 1536),  # shared_intermediate_size
    ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 40, 512, 22, 2688, 5376),
]


@pytest.mark.parametrize(("model_id", "layers", "experts", "top_k", "width", "shared"), EXPERTS)
def test_experts(model_id: str, layers: int, experts: int, top_k: int, width: int, shared: int | None) -> None:
    facts = anatomy(model_id).facts
    assert (
        facts.moe_layers,
        facts.experts,
        facts.experts_per_token,
        facts.expert_intermediate_size,
        facts.shared_expert_intermediate_size,
    ) == (layers, experts, top_k, width, shared)


def test_experts_may_work_on_a_narrower_vector() -> None:
    up = named(
        anatomy("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8"),
        "backbone.layers.{layer}.mixer.experts.{expert}.up_proj.weight",
    )
    assert (up.rows, up.columns, up.copies) == (2688, 1024, 512)  # moe_latent_size, not hidden 4096


def test_null_q_lora_rank_is_a_plain_projection() -> None:
    lite = anatomy("deepseek-ai/DeepSeek-V2-Lite")
    assert named(lite, "self_attn.q_proj.weight").rows == 16 * 192
    assert not [t for t in lite.tensors if "q_a_proj" in t.name]


def test_no_value_projection_where_keys_serve_as_values() -> None:
    values = [t for t in anatomy("google/gemma-4-31B-it").tensors if t.name.endswith("v_proj.weight")]
    assert [len(t.layers) for t in values] == [50]  # the 10 full layers have none; their cache keeps both


def test_full_layers_have_their_own_heads() -> None:
    keys = [t for t in anatomy("google/gemma-4-31B-it").tensors if t.name.endswith("self_attn.k_proj.weight")]
    assert sorted((t.rows, len(t.layers)) for t in keys) == [(4 * 512, 10), (16 * 256, 50)]


@pytest.mark.parametrize(
    ("model_id", "is_tied"),
    [
        ("google/gemma-2-9b-it", True),  # missing: the class ties
        ("google/gemma-3n-E4B-it", True),
        ("openai-community/gpt2", True),
        ("bigscience/bloom", True),
        ("tiiuae/falcon-7b", True),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", False),
        ("poolside/Laguna-XS-2.1", False),
    ],
)
def test_tied_embeddings(model_id: str, is_tied: bool) -> None:
    assert anatomy(model_id).facts.is_tied is is_tied


def test_a_nested_tie_wins_over_the_top_level() -> None:
    text = {**config("mistralai/Mistral-Small-3.1-24B-Instruct-2503")["text_config"], "tie_word_embeddings": True}
    both = anatomy("mistralai/Mistral-Small-3.1-24B-Instruct-2503", text_config=text, tie_word_embeddings=False)
    assert both.facts.is_tied


def test_an_almost_empty_text_config_takes_its_own_class_defaults() -> None:
    facts = parse_config("x", {"model_type": "gemma3n", "architectures": ["Gemma3nForConditionalGeneration"]}).facts
    assert (facts.layers, facts.vocab_size, facts.kv_heads, facts.head_dim) == (35, 262400, 2, 256)


def test_lfm2_rewrites_its_width() -> None:
    assert anatomy("LiquidAI/LFM2-1.2B").facts.intermediate_size == 8192  # 2/3 of 12288, a multiple of 256


def test_nas_blocks_without_attention_or_with_other_widths() -> None:
    model = anatomy("nvidia/Llama-3_3-Nemotron-Super-49B-v1")
    widths = {t.rows for t in model.tensors if t.name.endswith("mlp.gate_proj.weight")}
    assert 28672 in widths  # ffn_mult 5.25: 2 × 5.25 × 8192 / 3
    assert sum(len(c.layers) for c in model.caches) == 49


@pytest.mark.parametrize(
    ("model_id", "stated", "extended"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 131072, 131072),  # the factor of 8 is in it
        ("openai/gpt-oss-20b", 131072, 131072),  # 4096 × 32 is what is stated
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 1048576, 1048576),  # model_max_length
        ("tiiuae/falcon-7b", None, None),  # nothing is said
        ("openai-community/gpt2", 1024, 1024),
    ],
)
def test_context(model_id: str, stated: int | None, extended: int | None) -> None:
    facts = anatomy(model_id).facts
    assert (facts.max_context_tokens, facts.extended_context_tokens) == (stated, extended)


def test_optional_yarn_extends_the_context_once() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    facts = anatomy("Qwen/Qwen2.5-7B-Instruct", rope_scaling=yarn, max_position_embeddings=32768).facts
    assert (facts.max_context_tokens, facts.extended_context_tokens) == (32768, 131072)


def test_dynamic_scaling_is_not_in_the_stated_context() -> None:
    dynamic = {"type": "dynamic", "factor": 2.0}  # InternLM2.5's way
    facts = anatomy("meta-llama/Llama-2-7b-hf", rope_scaling=dynamic, max_position_embeddings=32768).facts
    assert (facts.max_context_tokens, facts.extended_context_tokens) == (32768, 65536)


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [
        ({"torch_dtype": "float16"}, "fp16"),
        ({"dtype": "bfloat16"}, "bf16"),
        ({"torch_dtype": "float32"}, "fp32"),
        ({}, "bf16"),
    ],
)
def test_dtype_key(fields: dict[str, str], dtype: str) -> None:
    plain = {k: v for k, v in config("Qwen/Qwen2.5-7B-Instruct").items() if k not in ("dtype", "torch_dtype")}
    assert parse_config("x", plain | fields).facts.native_dtype == dtype


def test_tensor_parallel_axes() -> None:
    model = anatomy("meta-llama/Llama-3.1-8B-Instruct")
    axes = {t.name.split(".")[-2]: (t.tp_axis, t.tp_max_shards) for t in model.tensors}
    assert axes == {
        "embed_tokens": ("rows", None),
        "norm": ("replicated", None),
        "lm_head": ("rows", None),
        "q_proj": ("rows", None),
        "k_proj": ("rows", 8),
        "v_proj": ("rows", 8),
        "o_proj": ("columns", None),
        "input_layernorm": ("replicated", None),
        "post_attention_layernorm": ("replicated", None),
        "gate_proj": ("rows", None),
        "up_proj": ("rows", None),
        "down_proj": ("columns", None),
    }
    latent = {t.name: t.tp_axis for t in anatomy("deepseek-ai/DeepSeek-R1").tensors}
    assert latent["model.layers.{layer}.self_attn.kv_a_proj_with_mqa.weight"] == "replicated"
    assert latent["model.layers.{layer}.mlp.gate.weight"] == "replicated"


def test_prediction_layers_are_stored_not_loaded() -> None:
    model = anatomy("deepseek-ai/DeepSeek-R1")
    mtp = [t for t in model.tensors if t.component == "mtp"]
    assert mtp
    assert not any(t.is_in_memory for t in mtp)
    assert {t.layers for t in mtp} == {(61,)}
    # the published total less the class total, less 59 × 256 correction biases of which one layer's is in here
    assert count_params(model)["params_mtp"] == 13463441152 - 58 * 256


@pytest.mark.parametrize("name", ["num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"])
def test_alternative_names(name: str) -> None:
    other = {
        "num_hidden_layers": "num_layers",
        "hidden_size": "n_embd",
        "vocab_size": "padded_vocab_size",
        "num_attention_heads": "n_head",
    }
    renamed: dict[str, Any] = config("meta-llama/Llama-3.1-8B-Instruct")
    renamed[other[name]] = renamed.pop(name)
    assert parse_config("x", renamed).tensors == anatomy("meta-llama/Llama-3.1-8B-Instruct").tensors
