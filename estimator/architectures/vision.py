"""Vision towers and their projectors: CLIP and SigLIP, Pixtral, Qwen-VL, GLM-4V, Kimi, MiniMax, Step, InternVL."""

from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.parts import Parts
from fitmart.estimator.architectures.towers import Block, blocks, depth, matrix, norm, patch_columns, patches, square

PLAIN = Block()
QWEN2 = Block(
    attention="attn.", fused="qkv", names=("", "", "", "proj"), norms=("norm1", "norm2"), mlp_names=("fc1", "fc2")
)
GATED = ("gate_proj", "up_proj", "down_proj")
QWEN25 = Block(
    attention="attn.",
    fused="qkv",
    names=("", "", "", "proj"),
    norms=("norm1", "norm2"),
    norm_bias=False,
    mlp_names=GATED,
)
QWEN3 = Block(
    attention="attn.",
    fused="qkv",
    names=("", "", "", "proj"),
    norms=("norm1", "norm2"),
    mlp_names=("linear_fc1", "linear_fc2"),
)
GLM4V = Block(
    attention="attn.",
    fused="qkv",
    names=("", "", "", "proj"),
    attention_bias=False,
    norms=("norm1", "norm2"),
    norm_bias=False,
    mlp_names=GATED,
    mlp_bias=False,
)
PIXTRAL = Block(
    attention="attention.",
    names=("q_proj", "k_proj", "v_proj", "o_proj"),
    attention_bias=False,
    mlp="feed_forward.",
    mlp_names=GATED,
    mlp_bias=False,
    norms=("attention_norm", "ffn_norm"),
    norm_bias=False,
)
KIMI = Block(attention="", fused="wqkv", names=("", "", "", "wo"), mlp_names=("fc0", "fc1"), norms=("norm0", "norm1"))
INTERN = Block(
    attention="attention.",
    names=("q_proj", "k_proj", "v_proj", "projection_layer"),
    attention_bias=False,
    o_bias=True,
    norms=("layernorm_before", "layernorm_after"),
    scales=("lambda_1", "lambda_2"),
)
STEP = Block(norms=("layernorm_before", "layernorm_after"), scales=("lambda_1", "lambda_2"))


# ---- CLIP and SigLIP ---------------------------------------------------------------------------------------------- #


def clip_tower(parts: Parts, v: Config, at: str = "vision_tower.vision_model.") -> int:
    """CLIP or SigLIP by `model_type`; the width of its output."""
    is_clip = (v.string("model_type") or "").startswith("clip")
    hidden, width = v.integer("hidden_size", default=768), v.integer("intermediate_size", default=3072)
    count = patches(v, patch=32 if is_clip else 16)
    patch = patch_columns(v, patch=32 if is_clip else 16)
    matrix(parts, f"{at}embeddings.patch_embedding", hidden, patch, bias=not is_clip)
    if is_clip:
        parts.add("vision", f"{at}embeddings.class_embedding", hidden)
        norm(parts, f"{at}pre_layrnorm", hidden)
    parts.add("vision", f"{at}embeddings.position_embedding.weight", count + is_clip, hidden)
    blocks(parts, f"{at}encoder.layers.{{layer}}.", hidden, width, depth(v, 12), PLAIN)
    norm(parts, f"{at}post_layernorm", hidden)
    return hidden


def gemma3_vision(parts: Parts, v: Config, text: int) -> None:
    """SigLIP and Gemma 3's projector (a bare matrix and a norm)."""
    hidden = clip_tower(parts, v)
    parts.add("vision", "multi_modal_projector.mm_input_projection_weight", text, hidden)
    norm(parts, "multi_modal_projector.mm_soft_emb_norm", hidden, bias=False)


def llava_vision(parts: Parts, v: Config, text: int) -> None:
    """CLIP or SigLIP and a projector of two matrices."""
    layers = parts.config.get("vision_feature_layer", default=-2)
    hidden = clip_tower(parts, v)
    inputs = hidden * (len(layers) if isinstance(layers, list) else 1)
    bias = parts.config.boolean("multimodal_projector_bias", default=True)
    matrix(parts, "multi_modal_projector.linear_1", text, inputs, bias=bias)
    matrix(parts, "multi_modal_projector.linear_2", text, text, bias=bias)


def llava_next_vision(parts: Parts, v: Config, text: int) -> None:
    """LLaVA-NeXT and OneVision: LLaVA's, and the vector that ends an image's row."""
    llava_vision(parts, v, text)
    parts.add("vision", "image_newline", text)


def paligemma_vision(parts: Parts, v: Config, text: int) -> None:
    """SigLIP and one matrix to `projection_dim`."""
    hidden = clip_tower(parts, v)
    matrix(parts, "multi_modal_projector.linear", text, hidden)


def idefics3_vision(parts: Parts, v: Config, text: int) -> None:
    """SigLIP and a pixel-shuffled projection."""
    hidden = clip_tower(parts, v, "model.vision_model.")
    scale = parts.config.integer("scale_factor", default=2)
    matrix(parts, "model.connector.modality_projection.proj", text, hidden * scale**2, bias=False)


def aya_vision(parts: Parts, v: Config, text: int) -> None:
    """SigLIP, pixel shuffle, a norm, and a gated projector."""
    hidden = clip_tower(parts, v)
    c = parts.config
    inputs = hidden * c.integer("downsample_factor", default=2) ** 2
    width = c.integer("alignment_intermediate_size", default=text)
    norm(parts, "multi_modal_projector.layernorm", inputs)
    matrix(parts, "multi_modal_projector.linear_1", width, inputs)
    matrix(parts, "multi_modal_projector.linear_2", text, width // 2)


def plain_vision(parts: Parts, v: Config, text: int) -> None:
    """A tower of an unknown class, read as a plain ViT with a projector of two matrices."""
    hidden, width = v.integer("hidden_size", "embed_dim"), v.integer("intermediate_size", "mlp_dim")
    at = "vision_tower."
    matrix(parts, f"{at}patch_embed", hidden, patch_columns(v))
    blocks(parts, f"{at}layers.{{layer}}.", hidden, width, depth(v, 24), PLAIN)
    matrix(parts, "multi_modal_projector.linear_1", text, hidden)
    matrix(parts, "multi_modal_projector.linear_2", text, text)


# ---- Pixtral ------------------------------------------------------------------------------------------------------- #


def _pixtral(parts: Parts, v: Config) -> int:
    hidden, width = v.integer("hidden_size", default=1024), v.integer("intermediate_size", default=4096)
    at = "vision_tower."
    matrix(parts, f"{at}patch_conv", hidden, patch_columns(v, patch=16), bias=False)
    norm(parts, f"{at}ln_pre", hidden, bias=False)
    blocks(parts, f"{at}transformer.layers.{{layer}}.", hidden, width, depth(v, 24), PIXTRAL)
    return hidden


def mistral3_vision(parts: Parts, v: Config, text: int) -> None:
    """Pixtral with a patch merger."""
    hidden, c = _pixtral(parts, v), parts.config
    side, at = c.integer("spatial_merge_size", default=2), "multi_modal_projector."
    norm(parts, f"{at}norm", hidden, bias=False)
    matrix(parts, f"{at}patch_merger.merging_layer", hidden, hidden * side**2, bias=False)
    bias = c.boolean("multimodal_projector_bias")
    matrix(parts, f"{at}linear_1", text, hidden, bias=bias)
    matrix(parts, f"{at}linear_2", text, text, bias=bias)


def llava_or_pixtral(parts: Parts, v: Config, text: int) -> None:
    """LLaVA's class also wraps Pixtral-12B."""
    if v.string("model_type") != "pixtral":
        llava_vision(parts, v, text)
        return
    hidden = _pixtral(parts, v)
    matrix(parts, "multi_modal_projector.linear_1", text, hidden)
    matrix(parts, "multi_modal_projector.linear_2", text, text)


# ---- Qwen and GLM -------------------------------------------------------------------------------------------------- #


def qwen2_vision(parts: Parts, v: Config, text: int) -> None:
    """Qwen2-VL: `embed_dim` is the tower's width, `hidden_size` the language model's."""
    hidden, at = v.integer("embed_dim", default=1280), "visual."
    width = int(hidden * v.number("mlp_ratio", default=4))
    frames = v.integer("temporal_patch_size", default=2)
    matrix(parts, f"{at}patch_embed.proj", hidden, patch_columns(v, frames=frames), bias=False)
    blocks(parts, f"{at}blocks.{{layer}}.", hidden, width, depth(v, 32), QWEN2)
    out = v.integer("hidden_size", default=text)
    _merger(parts, f"{at}merger.", hidden, v.integer("spatial_merge_size", default=2), out, norm_bias=True)


def qwen25_vision(parts: Parts, v: Config, text: int) -> None:
    """Qwen2.5-VL: RMS norms and a gated MLP."""
    hidden, width, at = v.integer("hidden_size", default=1280), v.integer("intermediate_size", default=3420), "visual."
    frames = v.integer("temporal_patch_size", default=2)
    matrix(parts, f"{at}patch_embed.proj", hidden, patch_columns(v, frames=frames), bias=False)
    blocks(parts, f"{at}blocks.{{layer}}.", hidden, width, depth(v, 32), QWEN25)
    out = v.integer("out_hidden_size", default=text)
    _merger(parts, f"{at}merger.", hidden, v.integer("spatial_merge_size", default=2), out, norm_bias=False)


def _merger(parts: Parts, at: str, hidden: int, side: int, text: int, *, norm_bias: bool) -> None:
    inputs = hidden * side**2
    norm(parts, f"{at}ln_q", hidden, bias=norm_bias)
    matrix(parts, f"{at}mlp.0", inputs, inputs)
    matrix(parts, f"{at}mlp.2", text, inputs)


def qwen3_vision(parts: Parts, v: Config, text: int) -> None:
    """Qwen3-VL and Qwen3.5: trained positions; one more merger for each layer that feeds the language model."""
    hidden, width = v.integer("hidden_size", default=1152), v.integer("intermediate_size", default=4304)
    at, frames = "model.visual.", v.integer("temporal_patch_size", default=2)
    matrix(parts, f"{at}patch_embed.proj", hidden, patch_columns(v, patch=16, frames=frames))
    parts.add("vision", f"{at}pos_embed.weight", v.integer("num_position_embeddings", default=2304), hidden)
    blocks(parts, f"{at}blocks.{{layer}}.", hidden, width, depth(v, 27), QWEN3)
    inputs = hidden * v.integer("spatial_merge_size", default=2) ** 2
    text = v.integer("out_hidden_size", default=text)
    _qwen3_merger(parts, f"{at}merger.", hidden, inputs, text, ())
    deep = v.integers("deepstack_visual_indexes") or []
    if deep:
        layers = tuple(range(len(deep)))
        _qwen3_merger(parts, f"{at}deepstack_merger_list.{{layer}}.", inputs, inputs, text, layers)


def _qwen3_merger(parts: Parts, at: str, normed: int, inputs: int, text: int, layers: tuple[int, ...]) -> None:
    norm(parts, f"{at}norm", normed, layers=layers)
    parts.linear("vision", f"{at}linear_fc1", inputs, inputs, layers=layers, bias=True)
    parts.linear("vision", f"{at}linear_fc2", text, inputs, layers=layers, bias=True)


def glm4v_vision(parts: Parts, v: Config, text: int) -> None:
    """GLM-4.1V to 4.6V: a gated tower, a 2 × 2 convolution down, a gated merger."""
    hidden, at = v.integer("hidden_size", default=1536), "model.visual."
    out, width = v.integer("out_hidden_size", default=text), v.integer("out_hidden_size", default=4096)
    frames, side = v.integer("temporal_patch_size", default=2), v.integer("spatial_merge_size", default=2)
    parts.add("vision", f"{at}embeddings.position_embedding.weight", patches(v, image=336), hidden)
    matrix(parts, f"{at}patch_embed.proj", hidden, patch_columns(v, frames=frames))
    blocks(parts, f"{at}blocks.{{layer}}.", hidden, width, depth(v, 24), GLM4V)
    for name in ("post_conv_layernorm", "post_layernorm"):
        norm(parts, at + name, hidden, bias=False)
    matrix(parts, f"{at}downsample", out, hidden * side**2)
    merged = v.integer("intermediate_size", default=13696)
    matrix(parts, f"{at}merger.proj", out, out, bias=False)
    norm(parts, f"{at}merger.post_projection_norm", out)
    for name in ("gate_proj", "up_proj"):
        matrix(parts, f"{at}merger.{name}", merged, out, bias=False)
    matrix(parts, f"{at}merger.down_proj", out, merged, bias=False)


# ---- Kimi, MiniMax, Step, InternVL --------------------------------------------------------------------------------- #


def kimi_vision(parts: Parts, v: Config, text: int) -> None:
    """MoonViT: trained positions on a 64 × 64 grid, a projector over merged patches (Kimi-VL, K2.5, K3)."""
    hidden = v.integer("vt_hidden_size", "hidden_size", default=1152)
    width = v.integer("vt_intermediate_size", "intermediate_size", default=4304)
    count = v.integer("vt_num_hidden_layers", "num_hidden_layers", default=27, high=2_000)
    grid = v.integer("init_pos_emb_height", default=64) * v.integer("init_pos_emb_width", default=64)
    merge = v.integers("merge_kernel_size", length=2, low=1) or [2, 2]
    at, inner = "vision_tower.", v.integer("qkv_hidden_size", default=hidden)
    linear_bias, attention_bias = v.boolean("linear_bias", default=True), v.boolean("attn_bias", default=True)
    is_rms = v.string("norm_type") == "rmsnorm"
    matrix(
        parts, f"{at}patch_embed.proj", hidden, patch_columns(v), bias=v.boolean("patch_embed_proj_bias", default=True)
    )
    parts.add("vision", f"{at}patch_embed.pos_emb.weight", grid, hidden)
    block = Block(
        attention=KIMI.attention,
        fused=KIMI.fused,
        names=KIMI.names,
        mlp_names=KIMI.mlp_names,
        norms=KIMI.norms,
        attention_bias=attention_bias,
        mlp_bias=linear_bias,
        norm_bias=not is_rms,
    )
    blocks(parts, f"{at}encoder.blocks.{{layer}}.", hidden, width, tuple(range(count)), block, queries=inner)
    norm(parts, f"{at}encoder.final_layernorm", hidden, bias=not is_rms)
    inputs, project = hidden * merge[0] * merge[1], "mm_projector."
    norm(parts, f"{project}pre_norm", hidden)
    matrix(parts, f"{project}proj.0", inputs, inputs)
    matrix(parts, f"{project}proj.2", text, inputs)


def minimax_vision(parts: Parts, v: Config, text: int) -> None:
    """MiniMax-M3: CLIP's layers with 3-D rotary positions, a projector, and a merger of patches."""
    hidden, width = v.integer("hidden_size", default=1280), v.integer("intermediate_size", default=5120)
    merge = v.section("img_token_compression_config")
    side = merge.integer("spatial_merge_size", default=2) if merge else 2
    frames = merge.integer("temporal_patch_size", default=2) if merge else 2
    at, c = "vision_tower.", parts.config
    matrix(parts, f"{at}embeddings.proj", hidden, patch_columns(v, frames=frames), bias=False)
    norm(parts, f"{at}pre_layrnorm", hidden)
    blocks(parts, f"{at}layers.{{layer}}.", hidden, width, depth(v, 32), PLAIN)
    inner = c.integer("projector_hidden_size", default=text)
    matrix(parts, "multi_modal_projector.linear_1", inner, hidden)
    matrix(parts, "multi_modal_projector.linear_2", text, inner)
    matrix(parts, "patch_merge_mlp.linear_1", inner, text * side**2)
    matrix(parts, "patch_merge_mlp.linear_2", text, inner)


def step_vision(parts: Parts, v: Config, text: int) -> None:
    """Step-3.7: a 47-layer tower, two convolutions down, one matrix into the language model."""
    hidden = v.integer("hidden_size", "width", default=1536)
    width = round(hidden * v.number("mlp_ratio", default=8960 / 1536))
    layers = tuple(range(v.integer("num_hidden_layers", "layers", default=47, high=2_000)))
    at = "vision_model."
    matrix(parts, f"{at}embeddings.patch_embedding", hidden, patch_columns(v), bias=False)
    parts.add("vision", f"{at}embeddings.position_embedding.weight", patches(v, image=728), hidden)
    norm(parts, f"{at}pre_layernorm", hidden)
    blocks(parts, f"{at}layers.{{layer}}.", hidden, width, layers, STEP)
    for i in (1, 2):
        matrix(parts, f"{at}downsampler{i}", hidden * 2**i, hidden * 2 ** (i - 1) * 9)
    matrix(parts, "multi_modal_projector", text, 4 * hidden, bias=parts.config.boolean("projector_bias"))


def internvl_vision(parts: Parts, v: Config, text: int) -> None:
    """InternViT: a class token, layer scale, pixel shuffle, a two-layer projector."""
    hidden, width = v.integer("hidden_size", default=1024), v.integer("intermediate_size", default=4096)
    at, side = "vision_tower.", square(v, "image_size", 448)
    count = (side // square(v, "patch_size", 14)) ** 2
    matrix(parts, f"{at}embeddings.patch_embeddings.projection", hidden, patch_columns(v))
    parts.add("vision", f"{at}embeddings.cls_token", hidden)
    parts.add("vision", f"{at}embeddings.position_embeddings", count + 1, hidden)
    bias = v.boolean("attention_bias", "qkv_bias")
    block = Block(
        attention=INTERN.attention,
        names=INTERN.names,
        attention_bias=bias,
        o_bias=True,
        norms=INTERN.norms,
        scales=INTERN.scales,
        qk_norms=(),
    )
    blocks(parts, f"{at}encoder.layer.{{layer}}.", hidden, width, depth(v, 24), block)
    if v.boolean("use_qk_norm"):
        for name in ("q_norm", "k_norm"):
            norm(parts, f"{at}encoder.layer.{{layer}}.attention.{name}", hidden, layers=depth(v, 24), bias=False)
    ratio = parts.config.number("downsample_ratio", default=0.5)
    inputs = int(hidden / ratio**2)
    norm(parts, "multi_modal_projector.layer_norm", inputs)
    matrix(parts, "multi_modal_projector.linear_1", text, inputs)
    matrix(parts, "multi_modal_projector.linear_2", text, text)
