"""Parameters against the totals that the Hub publishes for each repository (safetensors.total), to the unit."""

from typing import Any

import pytest
from published_configs import CONFIGS, anatomy

from fitmart.estimator.anatomy import count_params
from fitmart.estimator.architectures import parse_config

# Repositories that store exactly what their class loads.
PUBLISHED = [
    ("Qwen/Qwen2.5-7B-Instruct", 7615616512),
    ("Qwen/Qwen2.5-72B-Instruct", 72706203648),
    ("mistralai/Mistral-Nemo-Instruct-2407", 12247782400),  # head_dim 128, not 5120 / 32
    ("mistralai/Mistral-7B-v0.1", 7241732096),
    ("mistralai/Mistral-7B-Instruct-v0.3", 7248023552),
    ("meta-llama/Llama-3.1-8B-Instruct", 8030261248),
    ("microsoft/phi-1_5", 1418270720),  # num_key_value_heads null
    ("microsoft/Phi-3-mini-4k-instruct", 3821079552),
    ("bigcode/starcoder2-7b", 7173923840),
    ("google/gemma-2-9b-it", 9241705984),
    ("google/gemma-3-1b-it", 999885952),
    ("CohereLabs/c4ai-command-r7b-12-2024", 8028033024),
    ("LGAI-EXAONE/EXAONE-4.0-32B", 32003216384),
    ("LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct", 7818448896),
    ("allenai/Olmo-3-1025-7B", 7298011136),
    ("bigscience/bloom", 176247271424),
    ("openai/gpt-oss-20b", 20914757184),
    ("openai/gpt-oss-120b", 116829156672),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 108641793536),
    ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 401583781376),
    ("meta-llama/Llama-3.2-11B-Vision-Instruct", 10670220835),
    ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 24011361280),
    ("mistralai/Mixtral-8x7B-v0.1", 46702792704),
    ("Qwen/Qwen2-57B-A14B-Instruct", 57408658944),
    ("Qwen/Qwen3-30B-A3B", 30532122624),
    ("deepseek-ai/DeepSeek-V2-Lite", 15706484224),
    ("Qwen/Qwen2.5-VL-7B-Instruct", 8292166656),
    ("Qwen/Qwen3-VL-8B-Instruct", 8767123696),
    ("LiquidAI/LFM2-1.2B", 1170340608),
    ("ai21labs/AI21-Jamba-Mini-1.5", 51570323328),
    ("ibm-granite/granite-4.0-h-small", 32207337984),
    ("nvidia/Nemotron-H-8B-Base-8K", 8100852736),
    ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", 49867145216),  # no two layers need be alike
    ("state-spaces/mamba-2.8b-hf", 2768345600),
    ("google/recurrentgemma-2b", 2682862080),
    ("tencent/Hunyuan-A13B-Instruct", 80393183232),
    ("inclusionAI/Ling-mini-2.0", 16255643392),
    ("intfloat/e5-mistral-7b-instruct", 7110660096),  # MistralModel: no output matrix
    ("poolside/Laguna-XS-2.1", 33442617088),
    ("microsoft/Phi-3.5-MoE-instruct", 41873153344),
]

# (in memory, stored): prediction layers, tied heads, masks, correction biases and shared KV that only the file holds.
STORED = [
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", 79674391296, 81324862720),  # one prediction layer the config does not name
    ("Qwen/Qwen3.5-27B", 27356728560, 27781427952),
    ("deepseek-ai/DeepSeek-R1", 671026404352, 684489845504),  # layer 61 with embedding and head copies
    ("deepseek-ai/DeepSeek-V4-Flash", 284332230231, 290944616402),
    ("zai-org/GLM-4.5-Air", 106852245504, 110468824832),
    ("zai-org/GLM-4.7-Flash", 29943390976, 31221488576),
    ("zai-org/GLM-5", 743911199232, 753864139008),  # no copies
    ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 120668687360, 123611012096),
    ("tiiuae/falcon-7b", 6921720704, 7217189760),  # a stored tied head
    ("tiiuae/falcon-180B-chat", 178557088768, 179522565120),
    ("openai-community/gpt2", 124439808, 137022720),  # 12 masks of 1024²
    ("EleutherAI/pythia-6.9b", 6857302016, 6991520256),  # 32 masks of 2048², 32 × 16 rotary frequencies
    ("google/gemma-3n-E4B-it", 7818517072, 7849978192),  # k and v of the 15 layers that reuse others'
    ("google/gemma-4-26B-A4B-it", 25805933872, 25805936206),  # layer scalars, image mean and scale
    ("google/gemma-4-31B-it", 31273086512, 31273088876),
    ("moonshotai/Kimi-K2.5", 1026879353328, 1026879376368),  # 60 × 384 correction biases
    ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 49122675072, 49122681728),
    ("rednote-hilab/dots.llm1.inst", 142774373888, 142774381696),
]

# Class totals of transformers 5.24 on the meta device, where the Hub publishes packed or no counts.
CLASS_TOTALS = [
    ("Qwen/Qwen2.5-72B-Instruct-AWQ", 72957861888),  # intermediate_size padded to 29,696
    ("Qwen/Qwen3-0.6B", 596049920),
    ("google/gemma-3-27b-it", 27432062576),
    ("google/gemma-4-E4B-it", 7632344064),
    ("deepseek-ai/DeepSeek-V3.2", 671877929216),
    ("zai-org/GLM-5.2", 743377000704),
    ("XiaomiMiMo/MiMo-V2-Flash", 308778768832),
    ("MiniMaxAI/MiniMax-Text-01", 456089655296),
    ("MiniMaxAI/MiniMax-M2", 228689748992),
    ("LiquidAI/LFM2-8B-A1B", 8339929856),
    ("tiiuae/Falcon-H1-7B-Instruct", 7585519712),
    ("databricks/dbrx-instruct", 131596523520),
    ("facebook/opt-6.7b", 6658473984),
    ("BAAI/bge-m3", 567754752),
    ("answerdotai/ModernBERT-base", 149014272),
    ("baidu/ERNIE-4.5-21B-A3B-PT", 21825437888),
    ("ibm-ai-platform/Bamba-9B-v2", 9780235392),
    ("meta-llama/Llama-2-7b-hf", 6738415616),
    ("moonshotai/Kimi-K2-Instruct", 1026408209408),
]


@pytest.mark.parametrize(("model_id", "total"), PUBLISHED + CLASS_TOTALS)
def test_params_total(model_id: str, total: int) -> None:
    assert count_params(anatomy(model_id))["params_total"] == total


@pytest.mark.parametrize(("model_id", "total", "stored"), STORED)
def test_what_only_the_checkpoint_holds(model_id: str, total: int, stored: int) -> None:
    counts = count_params(anatomy(model_id))
    assert (counts["params_total"], counts["stored_params"]) == (total, stored)


# Embedding and head counted. DeepSeek says 37 B, Kimi 32 B, OpenAI 5.1 B (less one embedding of 0.58 B), DBRX 36 B.
@pytest.mark.parametrize(
    ("model_id", "active"),
    [
        ("deepseek-ai/DeepSeek-R1", 37552297984),
        ("openai/gpt-oss-120b", 5711694336),
        ("Qwen/Qwen3-30B-A3B", 3352823808),
        ("google/gemma-4-26B-A4B-it", 4395322672),
    ],
)
def test_params_active(model_id: str, active: int) -> None:
    assert count_params(anatomy(model_id))["params_active"] == pytest.approx(active, rel=5e-3)


# Families of remote code, written out: (config, published total).
WRITTEN_OUT = [
    (  # Qwen/Qwen-7B
        {
            "model_type": "qwen",
            "vocab_size": 151936,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "intermediate_size": 22016,
            "kv_channels": 128,
        },
        7721324544,
    ),
    (  # zai-org/glm-4-9b-chat, less 32 stored rotary frequencies
        {
            "model_type": "chatglm",
            "architectures": ["ChatGLMModel"],
            "padded_vocab_size": 151552,
            "hidden_size": 4096,
            "num_layers": 40,
            "num_attention_heads": 32,
            "ffn_hidden_size": 13696,
            "kv_channels": 128,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "add_qkv_bias": True,
            "add_bias_linear": False,
        },
        9399951392 - 32,
    ),
]


@pytest.mark.parametrize(("written", "total"), WRITTEN_OUT)
def test_families_of_remote_code(written: dict[str, Any], total: int) -> None:
    assert count_params(parse_config("x", written))["params_total"] == total


def test_every_bundled_config_is_checked() -> None:
    checked = {row[0] for row in (*PUBLISHED, *STORED, *CLASS_TOTALS)}
    assert checked == set(CONFIGS)


def test_vision_is_counted_apart() -> None:
    assert count_params(anatomy("mistralai/Mistral-Small-3.1-24B-Instruct-2503"))["params_vision"] == 438958080
    assert count_params(anatomy("google/gemma-3n-E4B-it"))["params_vision"] == 983281504  # with the audio tower
