"""Dense decoders that differ from Llama in biases, norms and names."""

from fitmart.estimator.architectures.decoder import Shape, Style
from fitmart.estimator.architectures.feedforward import PLAIN
from fitmart.estimator.architectures.parts import Parts
from fitmart.estimator.architectures.registry import register_styles

LLAMA = Style(qkv_bias="attention_bias", o_bias="attention_bias", mlp_bias="mlp_bias")
POST_NORMS = ("post_attention_layernorm", "post_feedforward_layernorm")
GEMMA2_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)


def _xielu(parts: Parts, shape: Shape) -> None:
    """Apertus: two trained scalars a layer in the activation."""
    for name in ("alpha_n", "alpha_p"):
        parts.add("mlp", f"{parts.model}layers.{{layer}}.mlp.act_fn.{name}", 1, layers=shape.every)


def _mimo_mtp(parts: Parts, shape: Shape) -> None:
    """MiMo-7B keeps its extra prediction layers under model.mtp_layers: a decoder layer and a 2h × h projection."""
    count = parts.config.integer("num_nextn_predict_layers", default=0, low=0, high=16)
    shape.mtp_layers = count
    if not count or shape.heads is None or shape.width is None:
        return
    since, at, every, hidden = len(parts.tensors), "model.mtp_layers.{layer}.", tuple(range(count)), shape.hidden
    h = shape.heads
    for name, rows in (("q_proj", h.query), ("k_proj", h.kv), ("v_proj", h.kv)):
        parts.linear("mtp", f"{at}self_attn.{name}", rows * h.key_dim, hidden, layers=every, axis="rows", bias=True)
    parts.linear("mtp", f"{at}self_attn.o_proj", hidden, h.query * h.value_dim, layers=every, axis="columns")
    for name in ("gate_proj", "up_proj"):
        parts.linear("mtp", f"{at}mlp.{name}", shape.width, hidden, layers=every, axis="rows")
    parts.linear("mtp", f"{at}mlp.down_proj", hidden, shape.width, layers=every, axis="columns")
    parts.linear("mtp", f"{at}input_proj", hidden, 2 * hidden, layers=every)
    for name in (*LLAMA.norms, "token_layernorm", "hidden_layernorm", "final_layernorm"):
        parts.norm(at + name, hidden, layers=every)
    parts.as_mtp(since)


register_styles(
    {
        "llama": LLAMA,
        "aquila": LLAMA,
        "Yi": LLAMA,
        "xverse": LLAMA,
        "cwm": LLAMA,
        "smollm3": Style(
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            mlp_bias="mlp_bias",
            window="all",
            window_if="use_sliding_window",
        ),
        "mistral": Style(window="all"),
        "ministral": Style(window="all"),
        "ministral3": Style(window="all"),
        "granite": LLAMA,
        "minicpm": LLAMA,
        "helium": Style(qkv_bias="attention_bias", mlp_bias="mlp_bias"),
        "qwen2": Style(qkv_bias=True, window="qwen", window_if="use_sliding_window"),
        "mimo": Style(qkv_bias=True, window="qwen", window_if="use_sliding_window", extra=_mimo_mtp),
        "qwen3": Style(
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            qk_norm="head",
            window="qwen",
            window_if="use_sliding_window",
        ),
        "seed_oss": Style(qkv_bias="attention_bias", o_bias="attention_out_bias", mlp_bias="mlp_bias"),
        "ernie4_5": Style(qkv_bias="use_bias", o_bias="use_bias", mlp_bias="use_bias"),
        "hunyuan_v1_dense": Style(
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            qk_norm="head",
            qk_norm_if="use_qk_norm",
            qk_names=("query_layernorm", "key_layernorm"),
        ),
        "arcee": Style(qkv_bias="attention_bias", o_bias="attention_bias", mlp_names=PLAIN, mlp_bias="mlp_bias"),
        "nemotron": Style(
            qkv_bias="attention_bias", o_bias="attention_bias", mlp_names=PLAIN, mlp_bias="mlp_bias", norm_bias=True
        ),
        "apertus": Style(
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            qk_norm="head",
            mlp_names=PLAIN,
            mlp_bias="mlp_bias",
            norms=("attention_layernorm", "feedforward_layernorm"),
            extra=_xielu,
        ),
        "olmo": Style(qkv_bias="attention_bias", o_bias="attention_bias", has_norms=False),
        "olmo2": Style(qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="per_head", norms=POST_NORMS),
        "olmo3": Style(
            qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="per_head", norms=POST_NORMS, window="every:4"
        ),
        "exaone4": Style(qk_norm="head", norms=POST_NORMS, window="every:4"),
        "exaone": Style(
            layer="h.{layer}.",
            attention="attn.attention.",
            names=("q_proj", "k_proj", "v_proj", "out_proj"),
            mlp_names=("c_fc_0", "c_fc_1", "c_proj"),
            norms=("ln_1", "ln_2"),
            embedding="wte",
            final_norm="ln_f",
            model="transformer.",
        ),
        "glm": Style(qkv_bias="attention_bias", fused_mlp="gate_up_proj"),
        "glm4": Style(
            qkv_bias="attention_bias",
            fused_mlp="gate_up_proj",
            norms=("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"),
        ),
        "gemma": Style(qkv_bias="attention_bias", o_bias="attention_bias"),
        "gemma2": Style(qkv_bias="attention_bias", o_bias="attention_bias", norms=GEMMA2_NORMS, window="even"),
        "gemma3_text": Style(
            qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="head", norms=GEMMA2_NORMS, window="every:6"
        ),
        "cohere": Style(
            qkv_bias="attention_bias",
            o_bias="attention_bias",
            qk_norm="per_head",
            qk_norm_if="use_qk_norm",
            norms=("input_layernorm",),
        ),
        "cohere2": Style(
            qkv_bias="attention_bias", o_bias="attention_bias", norms=("input_layernorm",), window="every:4"
        ),
        "phi3": Style(fused_qkv="qkv_proj", fused_mlp="gate_up_proj", window="all"),
        "baichuan": Style(fused_qkv="W_pack"),
        "internlm2": Style(
            attention="attention.",
            fused_qkv="wqkv",
            names=("", "", "", "wo"),
            qkv_bias="bias",
            o_bias="bias",
            mlp="feed_forward.",
            mlp_names=("w1", "w3", "w2"),
            norms=("attention_norm", "ffn_norm"),
            embedding="tok_embeddings",
            head="output",
        ),
        "qwen2_vl_text": Style(qkv_bias=True, window="qwen", window_if="use_sliding_window"),
        "qwen2_5_vl_text": Style(qkv_bias=True, window="qwen", window_if="use_sliding_window"),
        "qwen3_vl_text": Style(qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="head"),
        "glm4v_text": Style(
            qkv_bias=True,
            fused_mlp="gate_up_proj",
            norms=("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"),
        ),
        "internlm3": Style(qkv_bias="qkv_bias", o_bias="bias", mlp_bias="bias"),
    }
)
