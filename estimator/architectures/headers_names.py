"""Names of stored tensors: indexes folded into `{layer}` and `{expert}`, the component, and the cut across GPUs.

Rules in order, the first that matches decides. They serve where the family's own reader does not name the tensor.
"""

import re

from fitmart.estimator.anatomy import Component, TpAxis

_LAYER_WORDS = (
    "layers|h|blocks|block|blk|layer|resblocks|conformer|mtp|mtp_layers|mtp_block|mtp_emb_norm|mtp_hidden_norm"
    "|mtp_linear_proj|deepstack_merger_list|encoder_layers|decoder_layers|altup_projections|altup_unembed_projections"
)
# A number behind a layer word; "blocks.0.0" of convolution stages is not a list of equal layers.
_LAYER = re.compile(rf"(?:^|\.)(?:{_LAYER_WORDS})\.(\d+)(?=\.(?!\d+\.)|$)")
_EXPERT = re.compile(r"(?:^|\.)experts\.(\d+)(?=\.)")


def fold(name: str) -> tuple[str, int | None, int | None]:
    """(`name` with its indexes folded, layer, expert)."""
    layer = expert = None
    if found := _LAYER.search(name):
        layer = int(found[1])
        name = f"{name[: found.start(1)]}{{layer}}{name[found.end(1) :]}"
    if found := _EXPERT.search(name):
        expert = int(found[1])
        name = f"{name[: found.start(1)]}{{expert}}{name[found.end(1) :]}"
    return name, layer, expert


_COMPONENTS: tuple[tuple[Component, str], ...] = (
    ("mtp", r"(^|\.)(mtp|nextn)|eh_proj|(^|\.)(enorm|hnorm)\.|shared_head"),
    ("audio", r"audio|speech|conformer|(^|\.)(whisper|a)\."),
    (
        "vision",
        r"vision|visual|(^|\.)(vit|v|mm)\.|mm_projector|multi_modal|image_|patch_(embed|merger|conv)|mlp1\.|resampler",
    ),
    ("router", r"expert_gate|(mlp|moe|mixer|ffn|feed_forward|moe_block)\.(gate|router)\.|ffn_gate_inp|exp_probs_b"),
    ("router", r"router|e_score_correction|expert_bias|\.wg\."),
    ("norm", r"(?i)norm(?!_attn_norm\.attn)|(^|\.)ln(_|\d|\.)|(^|\.)rms|(^|\.)hc_|layer_scalar"),
    (
        "mlp",
        r"shared_(expert|mlp)|pooler|(?<!attention\.)output\.dense|altup|laurel|per_layer_(model_|input_gate|proj)",
    ),
    ("experts", r"(^|\.)experts?\.|_exps(\.|$)|block_sparse_moe\.(input|output)_linear"),
    ("lm_head", r"(^|\.)(lm_head|embed_out|output_layer)\.|^(output|head)\.(weight|bias)$|^cls\.predictions"),
    ("embedding", r"embed|(^|\.)(wte|wpe)\.|token_embd|position_embd|token_types"),
    ("mlp", r"(^|\.)(mlp|ffn|feed_forward|fc[12]|intermediate)(\.|_)|^blk\.\{layer\}\.ffn_"),
    ("attention", r"."),
)
_COMPILED = tuple((component, re.compile(pattern)) for component, pattern in _COMPONENTS)


def component_of(name: str) -> Component:
    """The component of a folded name: state spaces, convolutions and what nothing else claims count as attention."""
    return next(component for component, pattern in _COMPILED if pattern.search(name))


# Buffers: made by the class or kept by training, no parameters.
_BUFFER = re.compile(
    r"rotary_emb\.|inv_freq|rope_freqs|position_ids|masked_bias|e_score_correction_bias|exp_probs_b"
    r"|(^|\.)attn(ention)?\.bias$|num_batches_tracked|running_(mean|var)|_amax$"
)


def is_buffer(name: str) -> bool:
    """Whether the tensor is stored beside the parameters."""
    return _BUFFER.search(name) is not None


_REPLICATED = re.compile(
    r"_a_proj|indexer|index_[a-z]_proj|attn_(q|kv)_a\.|wq_a|\.wkv\.|compressor|position|(^|\.)wpe\.|latent|correction|lora"
    r"|^pooler|(^|\.)attn(ention)?\.bias$"
)
_CUT_VECTOR = re.compile(r"bias$|\.(A_log|D|dt_bias|sinks|attn_sink|ssm_a|ssm_d)$")
_NARROWING = re.compile(
    r"(^|\.)(o_proj|out_proj|down_proj|dense_4h_to_h|w2|wo|c_proj|fc2|output_linear|out_lin|fc_out|linear_fc2"
    r"|linear_out|x_proj|wo_b|Wo|attn_output|attn_out|ffn_down(_exps|_shexp)?|ssm_out|(?<!intermediate\.)dense|proj)(\.|_bias|$)"
)
_KV = re.compile(r"(^|\.)(k_proj|v_proj|attn_k|attn_v|wk|wv)\.")
_CUT = ("embedding", "attention", "mlp", "experts", "lm_head")


def tp_axis_of(name: str, component: Component, *, is_vector: bool) -> tuple[TpAxis, bool]:
    """(axis that tensor parallelism cuts, whether KV heads limit the cut)."""
    if component not in _CUT or _REPLICATED.search(name):
        return "replicated", False
    narrows = component not in ("embedding", "lm_head") and _NARROWING.search(name) is not None
    if is_vector:
        is_cut = _CUT_VECTOR.search(name) is not None and not narrows
        return ("rows" if is_cut else "replicated"), bool(_KV.search(name)) and is_cut
    return ("columns" if narrows else "rows"), bool(_KV.search(name))
