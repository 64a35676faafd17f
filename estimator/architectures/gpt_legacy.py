"""Decoders from before Llama's layout: GPT-2, OPT, BLOOM, GPT-NeoX, GPT-J, Falcon, Phi, StarCoder, StableLM, MPT."""

from dataclasses import replace

from fitmart.estimator.architectures.attention import window_caches
from fitmart.estimator.architectures.decoder import HIDDEN, Shape, Style, build
from fitmart.estimator.architectures.parts import Parts
from fitmart.estimator.architectures.registry import family, register_styles

GPT2_NAMES = ("", "", "", "c_proj")
BIASED = Style(qkv_bias=True, o_bias=True, mlp_bias=True, norm_bias=True)


def positions(parts: Parts, name: str, shape: Shape, *, extra: int = 0) -> None:
    """A trained table of positions."""
    length = parts.config.integer("max_position_embeddings", "n_positions", "max_seq_len")
    parts.add("embedding", f"{parts.model}{name}.weight", length + extra, shape.hidden)


def causal_masks(parts: Parts, name: str, shape: Shape) -> None:
    """Old checkpoints store each layer's triangular mask: positions² entries that no class loads."""
    length = parts.config.integer("max_position_embeddings", "n_positions")
    parts.buffer("attention", f"{parts.model}{name}", length, length, layers=shape.every)


def _gpt2_extra(parts: Parts, shape: Shape) -> None:
    positions(parts, "wpe", shape)
    causal_masks(parts, "h.{layer}.attn.bias", shape)


def _neox_extra(parts: Parts, shape: Shape) -> None:
    causal_masks(parts, "layers.{layer}.attention.bias", shape)
    if shape.heads:
        rotary = int(shape.heads.key_dim * parts.config.number("rotary_pct", default=0.25)) // 2
        parts.buffer(
            "attention", f"{parts.model}layers.{{layer}}.attention.rotary_emb.inv_freq", rotary, layers=shape.every
        )


def _position_extra(parts: Parts, shape: Shape) -> None:
    positions(parts, "wpe", shape)


def _bloom_extra(parts: Parts, shape: Shape) -> None:
    parts.norm(f"{parts.model}word_embeddings_layernorm", shape.hidden, bias=True)


GPT2 = replace(
    BIASED,
    layer="h.{layer}.",
    attention="attn.",
    names=GPT2_NAMES,
    fused_qkv="c_attn",
    mlp_names=("c_fc", "c_proj"),
    norms=("ln_1", "ln_2"),
    embedding="wte",
    final_norm="ln_f",
    model="transformer.",
    width=("n_inner",),
    width_factor=4,
    extra=_gpt2_extra,
)
GPTJ = Style(
    layer="h.{layer}.",
    attention="attn.",
    names=("q_proj", "k_proj", "v_proj", "out_proj"),
    mlp_bias=True,
    norm_bias=True,
    mlp_names=("fc_in", "fc_out"),
    norms=("ln_1",),
    embedding="wte",
    final_norm="ln_f",
    model="transformer.",
    width=("n_inner",),
    width_factor=4,
    head_bias=True,
)
PHI = replace(
    BIASED,
    names=("q_proj", "k_proj", "v_proj", "dense"),
    mlp_names=("fc1", "fc2"),
    norms=("input_layernorm",),
    final_norm="final_layernorm",
    qk_norm="head",
    qk_norm_if="qk_layernorm",
    qk_names=("q_layernorm", "k_layernorm"),
    qk_norm_bias=True,
    head_bias=True,
)

register_styles(
    {
        "gpt2": GPT2,
        "gpt-sw3": GPT2,
        "bloom": replace(
            BIASED,
            layer="h.{layer}.",
            attention="self_attention.",
            names=("", "", "", "dense"),
            fused_qkv="query_key_value",
            mlp_names=("dense_h_to_4h", "dense_4h_to_h"),
            norms=("input_layernorm", "post_attention_layernorm"),
            embedding="word_embeddings",
            final_norm="ln_f",
            model="transformer.",
            width=(),
            width_factor=4,
            extra=_bloom_extra,
        ),
        "gpt_neox": Style(
            attention="attention.",
            names=("", "", "", "dense"),
            fused_qkv="query_key_value",
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            mlp_bias=True,
            norm_bias=True,
            mlp_names=("dense_h_to_4h", "dense_4h_to_h"),
            embedding="embed_in",
            final_norm="final_layer_norm",
            model="gpt_neox.",
            head="embed_out",
            extra=_neox_extra,
        ),
        "gptj": GPTJ,
        "codegen": replace(GPTJ, names=("", "", "", "out_proj"), fused_qkv="qkv_proj"),
        "phi": PHI,
        "starcoder2": Style(
            qkv_bias="use_bias",
            o_bias="use_bias",
            mlp_bias="use_bias",
            norm_bias=True,
            mlp_names=("c_fc", "c_proj"),
            window="all",
        ),
        "persimmon": replace(
            BIASED,
            names=("", "", "", "dense"),
            fused_qkv="query_key_value",
            mlp_names=("dense_h_to_4h", "dense_4h_to_h"),
            final_norm="final_layernorm",
            qk_norm="head",
            qk_norm_if="qk_layernorm",
            qk_names=("q_layernorm", "k_layernorm"),
            qk_norm_bias=True,
        ),
    }
)


@family("gpt_neo")
def gpt_neo(parts: Parts) -> Shape:
    """GPT-Neo: every second layer attends to `window_size` tokens; q, k, v without biases."""
    style = Style(
        layer="h.{layer}.",
        attention="attn.attention.",
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
        o_bias=True,
        mlp_bias=True,
        norm_bias=True,
        mlp_names=("c_fc", "c_proj"),
        norms=("ln_1", "ln_2"),
        embedding="wte",
        final_norm="ln_f",
        model="transformer.",
        width=("intermediate_size",),
        width_factor=4,
        extra=_position_extra,
    )
    shape = build(parts, style)
    c, heads = parts.config, shape.heads
    if heads:
        parts.caches.clear()
        kinds = c.items("attention_layers", at_least=shape.layers) or ["global", "local"] * shape.layers
        window = c.integer("window_size", default=256)
        by_layer = ["sliding" if kind == "local" else "full" for kind in kinds[: shape.layers]]
        window_caches(parts, by_layer, heads, window)
    return shape


@family("gpt_bigcode")
def gpt_bigcode(parts: Parts) -> Shape:
    """StarCoder 1 and Granite 34B code: GPT-2 with one key-value head."""
    return build(
        parts,
        replace(GPT2, extra=_position_extra),
        kv_heads=1 if parts.config.boolean("multi_query", default=True) else None,
    )


@family("stablelm")
def stablelm(parts: Parts) -> Shape:
    """StableLM 2: LayerNorm, optional query/key norms per head, one norm a layer where residuals are parallel."""
    is_parallel = parts.config.boolean("use_parallel_residual")
    norms = ("input_layernorm",) if is_parallel else ("input_layernorm", "post_attention_layernorm")
    return build(
        parts,
        Style(
            qkv_bias="use_qkv_bias",
            norms=norms,
            norm_bias=True,
            qk_norm="per_head",
            qk_norm_if="qk_layernorm",
            qk_names=("q_layernorm.norms", "k_layernorm.norms"),
        ),
    )


@family("opt")
def opt(parts: Parts) -> Shape:
    """OPT: trained positions (two extra rows), projections where the embedding is narrower than the model."""
    c = parts.config
    width = c.optional_integer("word_embed_proj_dim", low=1) or c.integer(*HIDDEN)
    has_norm = c.boolean("do_layer_norm_before", default=True)
    has_bias = c.boolean("enable_bias", default=True)
    style = Style(
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
        qkv_bias=has_bias,
        o_bias=has_bias,
        mlp_bias=has_bias,
        norm_bias=True,
        mlp="",
        mlp_names=("fc1", "fc2"),
        norms=("self_attn_layer_norm", "final_layer_norm"),
        final_norm="final_layer_norm" if has_norm and not c.boolean("_remove_final_layer_norm") else None,
        model="model.decoder.",
        width=("ffn_dim",),
        embedding_width=width,
    )
    shape = build(parts, style)
    positions(parts, "embed_positions", shape, extra=2)
    if width != shape.hidden:
        parts.linear("embedding", f"{parts.model}project_in", shape.hidden, width)
        parts.linear("embedding", f"{parts.model}project_out", width, shape.hidden)
    return shape


@family("falcon", "RefinedWeb", "RefinedWebModel")
def falcon(parts: Parts) -> Shape:
    """Falcon: one KV head with `multi_query` in the old architecture, `num_kv_heads` in the new one; a stored head."""
    c = parts.config
    is_new = c.boolean("new_decoder_architecture")
    heads = c.integer("num_attention_heads", "n_head")
    if is_new:
        kv = c.optional_integer("num_kv_heads", "n_head_kv", low=1) or heads
        single = c.optional_integer("num_ln_in_parallel_attn", low=1) == 1
        norms = ("input_layernorm",) if single else ("ln_attn", "ln_mlp")
    else:
        kv = 1 if c.boolean("multi_query", default=True) else heads
        is_parallel = c.boolean("parallel_attn", default=True)
        norms = ("input_layernorm",) if is_parallel else ("input_layernorm", "post_attention_layernorm")
    style = Style(
        layer="h.{layer}.",
        attention="self_attention.",
        names=("", "", "", "dense"),
        fused_qkv="query_key_value",
        qkv_bias="bias",
        o_bias="bias",
        mlp_bias="bias",
        norm_bias=True,
        mlp_names=("dense_h_to_4h", "dense_4h_to_h"),
        norms=norms,
        embedding="word_embeddings",
        final_norm="ln_f",
        model="transformer.",
        width=("ffn_hidden_size",),
        width_factor=4,
        is_tied_stored=True,
    )
    return build(parts, style, kv_heads=kv)


@family("mpt")
def mpt(parts: Parts) -> Shape:
    """MPT: no biases, KV heads in `attn_config`, width as `expansion_ratio`."""
    c = parts.config
    nested = c.section("attn_config")
    kv = nested.optional_integer("kv_n_heads", low=1) if nested else None
    style = Style(
        layer="blocks.{layer}.",
        attention="attn.",
        names=("", "", "", "out_proj"),
        fused_qkv="Wqkv",
        mlp="ffn.",
        mlp_names=("up_proj", "down_proj"),
        norms=("norm_1", "norm_2"),
        embedding="wte",
        final_norm="norm_f",
        model="transformer.",
        width=(),
        width_factor=int(c.number("expansion_ratio", default=4)),
    )
    return build(parts, style, kv_heads=kv)


@family("qwen")
def qwen1(parts: Parts) -> Shape:
    """Qwen 1: `intermediate_size` counts both halves of the gated MLP; only q, k and v have biases."""
    style = Style(
        layer="h.{layer}.",
        attention="attn.",
        names=GPT2_NAMES,
        fused_qkv="c_attn",
        qkv_bias=True,
        mlp_names=("w1", "w2", "c_proj"),
        norms=("ln_1", "ln_2"),
        embedding="wte",
        final_norm="ln_f",
        model="transformer.",
        width_share=2,
    )
    return build(parts, style)


@family("chatglm")
def chatglm(parts: Parts) -> Shape:
    """ChatGLM 2 and 3, GLM-4 in its own code: `multi_query_group_num` KV heads, a fused gated MLP."""
    c = parts.config
    style = Style(
        layer="encoder.layers.{layer}.",
        attention="self_attention.",
        names=("", "", "", "dense"),
        fused_qkv="query_key_value",
        qkv_bias=c.boolean("add_qkv_bias", "add_bias_linear"),
        o_bias="add_bias_linear",
        mlp_names=("gate_proj", "up_proj", "dense_4h_to_h"),
        fused_mlp="dense_h_to_4h",
        mlp_bias="add_bias_linear",
        embedding="embedding.word_embeddings",
        final_norm="encoder.final_layernorm",
        model="transformer.",
        head="transformer.output_layer",
        width=("ffn_hidden_size",),
    )
    kv = None if c.boolean("multi_query_attention") else c.integer("num_attention_heads")
    return build(parts, style, kv_heads=kv)


@family("phi3small")
def phi3_small(parts: Parts) -> Shape:
    """Phi-3-small: blocksparse attention that still keeps every token; biases everywhere, a tied head."""
    style = replace(
        BIASED,
        names=("", "", "", "dense"),
        fused_qkv="query_key_value",
        mlp_names=("gate_proj", "up_proj", "down_proj"),
        fused_mlp="up_proj",
        final_norm="final_layernorm",
        width=("ff_intermediate_size",),
    )
    return build(parts, style)
