"""Decoders with routed experts and ordinary attention."""

from dataclasses import replace

from fitmart.estimator.architectures.attention import Heads, attention_cache, projections, read_heads
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.decoder import (
    MoeStyle,
    Shape,
    Style,
    decoder_layers,
    feed,
    frame,
    layer_norms,
    read_shape,
)
from fitmart.estimator.architectures.feedforward import experts, mlp, read_moe
from fitmart.estimator.architectures.mtp import deepseek_mtp
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family, register_styles

W_NAMES = ("w1", "w3", "w2")
CORRECTED = MoeStyle(correction="gate.e_score_correction_bias")


def every_layer(c: Config, layers: int) -> Layers:
    """Experts in all layers."""
    return tuple(range(layers))


def ernie_layers(c: Config, layers: int) -> Layers:
    """ERNIE: from `moe_layer_start_index` to `moe_layer_end_index` (inclusive; -1 is the last), every Nth."""
    start = c.integer("moe_layer_start_index", default=1, low=0)
    end = c.optional_integer("moe_layer_end_index", default=-1, low=-1)
    last = layers - 1 if end is None or end < 0 else min(end, layers - 1)
    step = c.integer("moe_layer_interval", default=1)
    return tuple(i for i in range(start, last + 1) if (i + 1) % step == 0)


MIXTRAL_MOE = MoeStyle(block="block_sparse_moe.", names=W_NAMES, width="intermediate_size", layers=every_layer)
QWEN_MOE = MoeStyle(shared="shared_expert.", shared_gate="shared_expert_gate")
GRANITE_MOE = MoeStyle(
    block="block_sparse_moe.",
    router="router.layer",
    width="intermediate_size",
    layers=every_layer,
    pattern="",
    fused="input_linear",
    names=("gate_proj", "up_proj", "output_linear"),
)
ATTENTION_BIASED = Style(qkv_bias="attention_bias", o_bias="attention_bias")


def _predicting(style: Style) -> Style:
    """`style` with DeepSeek's form of multi-token-prediction layers."""

    def add_mtp(parts: Parts, shape: Shape) -> None:
        deepseek_mtp(parts, shape, lambda layers: decoder_layers(parts, shape, style, layers))

    return replace(style, extra=add_mtp)


register_styles(
    {
        "mixtral": Style(window="all", moe=MIXTRAL_MOE),
        "phimoe": replace(ATTENTION_BIASED, window="all", norm_bias=True, head_bias="lm_head_bias", moe=MIXTRAL_MOE),
        "qwen2_moe": Style(qkv_bias="qkv_bias", window="qwen", window_if="use_sliding_window", moe=QWEN_MOE),
        "qwen3_moe": replace(
            ATTENTION_BIASED, qk_norm="head", window="all", window_if="use_sliding_window", moe=QWEN_MOE
        ),
        "qwen3_vl_moe_text": replace(ATTENTION_BIASED, qk_norm="head", moe=QWEN_MOE),
        "olmoe": replace(
            ATTENTION_BIASED, qk_norm="per_head", moe=MoeStyle(width="intermediate_size", layers=every_layer)
        ),
        "flex_olmo": replace(
            ATTENTION_BIASED,
            qk_norm="per_head",
            norms=("post_attention_layernorm", "post_feedforward_layernorm"),
            moe=MoeStyle(width="intermediate_size", layers=every_layer),
        ),
        "granitemoe": replace(ATTENTION_BIASED, moe=GRANITE_MOE),
        "granitemoeshared": replace(ATTENTION_BIASED, moe=GRANITE_MOE),
        "deepseek": replace(ATTENTION_BIASED, moe=MoeStyle()),
        "dots1": replace(ATTENTION_BIASED, qk_norm="head", moe=CORRECTED),
        "glm4_moe": _predicting(
            Style(qkv_bias="attention_bias", qk_norm="head", qk_norm_if="use_qk_norm", moe=CORRECTED)
        ),
        "glm4v_moe_text": Style(qkv_bias="attention_bias", moe=CORRECTED),
        "exaone_moe": Style(qk_norm="head", window="every:4", moe=CORRECTED),
        "hy_v3": replace(ATTENTION_BIASED, qk_norm="head", moe=MoeStyle(correction="e_score_correction_bias")),
        "cohere2_moe": replace(ATTENTION_BIASED, norms=("input_layernorm",), window="every:4", moe=MoeStyle()),
        "afmoe": replace(
            ATTENTION_BIASED,
            qk_norm="head",
            gate="gate_proj",
            norms=("input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm"),
            window="every:4",
            moe=MoeStyle(router="router.gate", correction="expert_bias", is_correction_param=True),
        ),
        "solar_open": Style(qkv_bias="attention_bias", moe=MoeStyle()),
        "minimax_m2": Style(
            qk_norm="per_head",
            moe=MoeStyle(
                block="block_sparse_moe.",
                names=W_NAMES,
                width="intermediate_size",
                layers=every_layer,
                correction="e_score_correction_bias",
            ),
        ),
        "hunyuan_v1_moe": replace(
            ATTENTION_BIASED,
            qk_norm="head",
            qk_norm_if="use_qk_norm",
            qk_names=("query_layernorm", "key_layernorm"),
            moe=MoeStyle(router="gate.wg", shared="shared_mlp.", layers=every_layer),
        ),
        "bailing_moe": Style(
            attention="attention.",
            names=("", "", "", "dense"),
            fused_qkv="query_key_value",
            qkv_bias="use_qkv_bias",
            o_bias="use_bias",
            qk_norm="head",
            qk_norm_if="use_qk_norm",
            qk_names=("query_layernorm", "key_layernorm"),
            embedding="word_embeddings",
            moe=MoeStyle(correction="gate.expert_bias", is_correction_param=True),
        ),
    }
)


def _dense_mtp(parts: Parts, shape: Shape) -> None:
    """ERNIE's stored prediction layers are dense though the model is not."""
    c, hidden = parts.config, shape.hidden
    shape.mtp_layers = c.integer("num_nextn_predict_layers", default=0, low=0, high=16)
    if not shape.mtp_layers or shape.heads is None:
        return
    layers, since = tuple(range(shape.mtp_layers)), len(parts.tensors)
    at = f"{parts.model}mtp_block.{{layer}}."
    projections(parts, f"{at}self_attn.", hidden, shape.heads, layers)
    mlp(parts, f"{at}mlp.", hidden, c.integer("intermediate_size"), layers)
    parts.linear("mtp", f"{parts.model}mtp_linear_proj.{{layer}}", hidden, 2 * hidden, layers=layers)
    for name in ("input_layernorm", "post_attention_layernorm"):
        parts.norm(at + name, hidden, layers=layers)
    for name in ("mtp_emb_norm", "mtp_hidden_norm"):
        parts.norm(f"{parts.model}{name}.{{layer}}", hidden, layers=layers)
    parts.as_mtp(since)


@family("hunyuan")
def hunyuan_large(parts: Parts) -> Shape:
    """Hunyuan-Large: of every `cla_share_factor` layers only the first has keys and values (cross-layer attention)."""
    c = parts.config
    style = Style(moe=MoeStyle(router="gate.wg", shared="shared_mlp.", width="intermediate_size", layers=every_layer))
    shape = read_shape(c)
    shape.heads = heads = read_heads(c, shape.hidden)
    factor = c.integer("cla_share_factor", default=1) if c.boolean("use_cla") else 1
    owners, users = shape.every[::factor], tuple(i for i in shape.every if i % factor)
    at = f"{parts.model}layers.{{layer}}.self_attn."
    shape.moe = read_moe(c, shape.every, width="intermediate_size")
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    projections(parts, at, shape.hidden, heads, owners)
    projections(parts, at, shape.hidden, heads, users, has_keys=False)
    if c.boolean("use_qk_norm"):
        parts.norm(f"{at}query_layernorm", heads.key_dim, layers=shape.every)
        parts.norm(f"{at}key_layernorm", heads.key_dim, layers=owners)
    attention_cache(parts, "full", heads, owners)
    feed(parts, shape, style, shape.every)
    return shape


@family("step3_text", "step3")
def step3(parts: Parts) -> Shape:
    """Step-3: factorized attention with a narrow shared query and one key-value head; experts in most layers."""
    c = parts.config
    style = Style()
    shape = read_shape(c)
    query, dim = c.integer("num_attention_heads"), c.integer("head_dim")
    kv, narrow = c.integer("num_attention_groups", default=1), c.integer("share_q_dim")
    shape.heads = heads = Heads(query=query, kv=kv, key_dim=dim, value_dim=dim)
    stated = c.get("moe_layers_enum", default=None)
    numbers = stated.split(",") if isinstance(stated, str) else c.items("moe_layers_enum") or []
    where = tuple(int(i) for i in numbers if str(i).strip().isdigit() and int(i) < shape.layers)
    at, hidden = f"{parts.model}layers.{{layer}}.", shape.hidden
    frame(parts, shape, style)
    layer_norms(parts, shape, style, shape.every)
    self_attn = f"{at}self_attn."
    parts.linear("attention", f"{self_attn}q_proj", narrow, hidden, layers=shape.every)
    parts.norm(f"{self_attn}inter_norm", narrow, layers=shape.every)
    parts.linear("attention", f"{self_attn}wq", query * dim, narrow, layers=shape.every, axis="rows")
    for name in ("k_proj", "v_proj"):
        parts.linear("attention", self_attn + name, kv * dim, hidden, layers=shape.every, axis="rows", shards=kv)
    parts.linear("attention", f"{self_attn}o_proj", hidden, query * dim, layers=shape.every, axis="columns")
    attention_cache(parts, "full", heads, shape.every)
    shape.moe = moe = read_moe(c, where)
    experts(parts, f"{at}moe.", hidden, replace(moe, shared_width=0), pattern="", is_bare=False)
    mlp(parts, f"{at}share_expert.", hidden, moe.shared_width, where)
    shape.width = c.integer("intermediate_size")
    mlp(parts, f"{at}mlp.", hidden, shape.width, tuple(i for i in shape.every if i not in where))
    return shape


register_styles(
    {
        "ernie4_5_moe": Style(
            qkv_bias="use_bias",
            o_bias="use_bias",
            mlp_bias="use_bias",
            head_bias="use_bias",
            moe=MoeStyle(
                layers=ernie_layers, correction="moe_statics.e_score_correction_bias", is_correction_param=True
            ),
            extra=_dense_mtp,
        )
    }
)
