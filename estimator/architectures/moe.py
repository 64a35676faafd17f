"""Decoders with routed experts and ordinary attention."""


from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.decoder import (
    MoeStyle,
    Style,
)
from fitmart.estimator.architectures.parts import Layers
from fitmart.estimator.architectures.registry import register_styles

W_NAMES = ("w1", "w3", "w2")
DEEPSEEK_MOE = MoeStyle(correction="gate.e_score_correction_bias")


def every_layer(c: Config, layers: int) -> Layers:
    """Experts in all layers."""
    return tuple(range(layers))


MIXTRAL_MOE = MoeStyle(block="block_sparse_moe.", names=W_NAMES, width="intermediate_size", layers=every_layer)
QWEN_MOE = MoeStyle(shared="shared_expert.", shared_gate="shared_expert_gate")

register_styles(
    {
        "mixtral": Style(window="all", moe=MIXTRAL_MOE),
        "qwen2_moe": Style(qkv_bias="qkv_bias", window="qwen", window_if="use_sliding_window", moe=QWEN_MOE),
        "qwen3_moe": Style(
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            qk_norm="head",
            window="all",
            window_if="use_sliding_window",
            moe=QWEN_MOE,
        ),
        "olmoe": Style(
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            qk_norm="per_head",
            moe=MoeStyle(width="intermediate_size", layers=every_layer),
        ),
        "deepseek": Style(qkv_bias="attention_bias", o_bias="attention_bias", moe=MoeStyle()),
        "dots1": Style(
            qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="head", window="none", moe=DEEPSEEK_MOE
        ),
        "minimax_m2": Style(
            qk_norm="per_head",
            qk_norm_if="use_qk_norm",
            moe=MoeStyle(
                block="block_sparse_moe.",
                names=W_NAMES,
                width="intermediate_size",
                layers=every_layer,
                correction="e_score_correction_bias",
            ),
        ),
    }
)
