"""The towers of Gemma 3n (MobileNet-V5, USM audio) and Gemma 4."""

from itertools import count

from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.towers import Block, blocks, depth, matrix, norm

GEMMA4 = Block(
    names=("q_proj.linear", "k_proj.linear", "v_proj.linear", "o_proj.linear"),
    attention_bias=False,
    mlp_names=("gate_proj.linear", "up_proj.linear", "down_proj.linear"),
    mlp_bias=False,
    norms=("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"),
    norm_bias=False,
    qk_norms=("q_norm", "k_norm"),
)


def gemma4_vision(parts: Parts, v: Config, text: int) -> None:
    """A ViT whose positions are two tables (x and y), projected by one matrix."""
    hidden, width = v.integer("hidden_size", default=768), v.integer("intermediate_size", default=3072)
    dim, heads = v.integer("head_dim", default=64), v.integer("num_attention_heads", default=12)
    patch, at = v.integer("patch_size", default=16), "model.vision_tower."
    positions = v.integer("position_embedding_size", default=10240)
    parts.add("vision", f"{at}patch_embedder.position_embedding_table", 2 * positions, hidden)
    matrix(parts, f"{at}patch_embedder.input_proj", hidden, 3 * patch**2, bias=False)
    at_layer = f"{at}encoder.layers.{{layer}}."
    blocks(parts, at_layer, hidden, width, depth(v, 16), GEMMA4, head_dim=dim, queries=heads * dim)
    if v.boolean("standardize"):
        for name in ("std_bias", "std_scale"):
            parts.buffer("vision", at + name, hidden)
    matrix(parts, "model.embed_vision.embedding_projection", text, hidden, bias=False)


def gemma4_audio(parts: Parts, a: Config, text: int) -> None:
    """A conformer: two feed-forwards around attention and a light convolution."""
    hidden, at = a.integer("hidden_size", default=1024), "model.audio_tower."
    layers, heads = depth(a, 12), a.integer("num_attention_heads", default=8)
    channels = a.integers("subsampling_conv_channels", length=2, low=1) or [128, 32]
    _audio(parts, f"{at}subsample_conv_projection.layer0.conv.weight", channels[0], 9)
    _audio(parts, f"{at}subsample_conv_projection.layer0.norm.weight", channels[0])
    _audio(parts, f"{at}subsample_conv_projection.layer1.conv.weight", channels[1], channels[0] * 9)
    _audio(parts, f"{at}subsample_conv_projection.layer1.norm.weight", channels[1])
    _audio(parts, f"{at}subsample_conv_projection.input_proj_linear.weight", hidden, channels[1] * 32)
    layer = f"{at}layers.{{layer}}."
    for part in ("feed_forward1", "feed_forward2"):
        _audio(parts, f"{layer}{part}.ffw_layer_1.linear.weight", 4 * hidden, hidden, layers)
        _audio(parts, f"{layer}{part}.ffw_layer_2.linear.weight", hidden, 4 * hidden, layers)
        for name in ("pre_layer_norm", "post_layer_norm"):
            _audio(parts, f"{layer}{part}.{name}.weight", hidden, 1, layers)
    for name in ("q_proj.linear", "k_proj.linear", "v_proj.linear", "post.linear", "relative_k_proj"):
        _audio(parts, f"{layer}self_attn.{name}.weight", hidden, hidden, layers)
    _audio(parts, f"{layer}self_attn.per_dim_scale", hidden // heads, 1, layers)
    _audio(parts, f"{layer}lconv1d.linear_start.linear.weight", 2 * hidden, hidden, layers)
    _audio(parts, f"{layer}lconv1d.linear_end.linear.weight", hidden, hidden, layers)
    kernel = a.integer("conv_kernel_size", default=5)
    _audio(parts, f"{layer}lconv1d.depthwise_conv1d.weight", hidden, kernel, layers)
    for name in ("lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_pre_attn", "norm_post_attn", "norm_out"):
        _audio(parts, f"{layer}{name}.weight", hidden, 1, layers)
    out = a.integer("output_proj_dims", default=1536)
    _audio(parts, f"{at}output_proj.weight", out, hidden)
    _audio(parts, f"{at}output_proj.bias", out)
    _audio(parts, "model.embed_audio.embedding_projection.weight", text, out)


def _audio(parts: Parts, name: str, rows: int, columns: int = 1, layers: Layers = ()) -> None:
    parts.add("audio", name, rows, columns, layers=layers)


def gemma3n_audio(parts: Parts, a: Config, text: int) -> None:
    """Gemma 3n's conformer and the embedder of its soft tokens."""
    hidden, at = a.integer("hidden_size", default=1536), "model.audio_tower."
    layers = tuple(range(a.integer("conf_num_hidden_layers", default=12)))
    heads, kernel = a.integer("conf_num_attention_heads", default=8), a.integer("conf_conv_kernel_size", default=5)
    channels = a.integers("sscp_conv_channel_size", length=2, low=1) or [128, 32]
    features = a.integer("input_feat_size", default=128)
    sub = f"{at}subsample_conv_projection."
    _audio(parts, f"{sub}conv_0.conv.weight", channels[0], 9)
    _audio(parts, f"{sub}conv_0.norm.weight", channels[0])
    _audio(parts, f"{sub}conv_1.conv.weight", channels[1], channels[0] * 9)
    _audio(parts, f"{sub}conv_1.norm.weight", channels[1])
    _audio(parts, f"{sub}input_proj_linear.weight", hidden, channels[1] * features // 4)
    layer = f"{at}conformer.{{layer}}."
    for part in ("ffw_layer_start", "ffw_layer_end"):
        _audio(parts, f"{layer}{part}.ffw_layer_1.weight", 4 * hidden, hidden, layers)
        _audio(parts, f"{layer}{part}.ffw_layer_2.weight", hidden, 4 * hidden, layers)
        for name in ("pre_layer_norm", "post_layer_norm"):
            _audio(parts, f"{layer}{part}.{name}.weight", hidden, 1, layers)
    for name in ("attn.relative_position_embedding.pos_proj", "attn.q_proj", "attn.k_proj", "attn.v_proj", "post"):
        _audio(parts, f"{layer}attention.{name}.weight", hidden, hidden, layers)
    _audio(parts, f"{layer}attention.attn.per_dim_scale", hidden // heads, 1, layers)
    _audio(parts, f"{layer}lconv1d.linear_start.weight", 2 * hidden, hidden, layers)
    _audio(parts, f"{layer}lconv1d.linear_end.weight", hidden, hidden, layers)
    _audio(parts, f"{layer}lconv1d.depthwise_conv1d.weight", hidden, kernel, layers)
    for name in (
        "attention.pre_attn_norm",
        "attention.post_norm",
        "lconv1d.pre_layer_norm",
        "lconv1d.conv_norm",
        "norm",
    ):
        _audio(parts, f"{layer}{name}.weight", hidden, 1, layers)
    vocab = a.integer("vocab_size", default=128)
    _audio(parts, "model.embed_audio.embedding.weight", vocab, hidden)
    for name in ("hard_embedding_norm", "soft_embedding_norm"):
        _audio(parts, f"model.embed_audio.{name}.weight", hidden)
    _audio(parts, "model.embed_audio.embedding_projection.weight", text, hidden)


# ---- MobileNet-V5 (300M encoder): a fixed network of four stages --------------------------------------------------- #

MOBILENET = "model.vision_tower.timm_model."


def gemma3n_vision(parts: Parts, v: Config, text: int) -> None:
    """MobileNet-V5's stem, stages and multi-scale fusion (timm's mobilenetv5_300m_enc), and the soft-token embedder."""
    _conv(parts, f"{MOBILENET}conv_stem.conv", 64, 3 * 9, bias=True)
    _conv(parts, f"{MOBILENET}conv_stem.bn", 64)
    counters = [count(), count(), count(), count()]

    def at(stage: int) -> str:
        return f"{MOBILENET}blocks.{stage}.{next(counters[stage])}."

    for inputs, wide, outputs in ((64, 256, 128), (128, 512, 128), (128, 512, 128)):
        _edge(parts, at(0), inputs, wide, outputs)
    _bottleneck(parts, at(1), 128, 768, 256, 3, 5)
    for side in (5, 3, 5, 3):
        _bottleneck(parts, at(1), 256, 1024, 256, side, 0)
    _bottleneck(parts, at(2), 256, 1536, 640, 5, 5)
    for _ in range(7):
        _bottleneck(parts, at(2), 640, 2560, 640, 5, 0)
    _bottleneck(parts, at(2), 640, 640, 640, 0, 0)
    for _ in range(14):
        _attention(parts, at(2), 640, heads=12, dim=64, has_downsampling=True)
        _bottleneck(parts, at(2), 640, 1280, 640, 0, 0)
    _bottleneck(parts, at(3), 640, 3840, 1280, 5, 5)
    for _ in range(19):
        _attention(parts, at(3), 1280, heads=16, dim=96, has_downsampling=False)
        _bottleneck(parts, at(3), 1280, 2560, 1280, 0, 0)
    fusion, hidden = f"{MOBILENET}msfa.", v.integer("hidden_size", default=2048)
    _conv(parts, f"{fusion}ffn.pw_exp.conv", 3840, 1920)
    _conv(parts, f"{fusion}ffn.pw_exp.bn", 3840)
    _conv(parts, f"{fusion}ffn.pw_proj.conv", 2048, 3840)
    _conv(parts, f"{fusion}ffn.pw_proj.bn", 2048)
    _conv(parts, f"{fusion}norm", 2048)
    parts.add("vision", "model.embed_vision.embedding.weight", v.integer("vocab_size", default=128), hidden)
    for name in ("hard_embedding_norm", "soft_embedding_norm"):
        norm(parts, f"model.embed_vision.{name}", hidden, bias=False)
    matrix(parts, "model.embed_vision.embedding_projection", text, hidden, bias=False)


def _conv(parts: Parts, name: str, rows: int, columns: int = 1, *, bias: bool = False) -> None:
    parts.linear("vision", name, rows, columns, bias=bias)


def _edge(parts: Parts, at: str, inputs: int, wide: int, outputs: int) -> None:
    _conv(parts, f"{at}conv_exp", wide, inputs * 9)
    _conv(parts, f"{at}bn1", wide)
    _conv(parts, f"{at}conv_pwl", outputs, wide)
    _conv(parts, f"{at}bn2", outputs)


def _bottleneck(parts: Parts, at: str, inputs: int, wide: int, outputs: int, start: int, middle: int) -> None:
    """Universal inverted bottleneck: optional depthwise kernels of side `start` and `middle` (0: none)."""
    if start:
        _conv(parts, f"{at}dw_start.conv", inputs, start**2)
        _conv(parts, f"{at}dw_start.bn", inputs)
    _conv(parts, f"{at}pw_exp.conv", wide, inputs)
    _conv(parts, f"{at}pw_exp.bn", wide)
    if middle:
        _conv(parts, f"{at}dw_mid.conv", wide, middle**2)
        _conv(parts, f"{at}dw_mid.bn", wide)
    _conv(parts, f"{at}pw_proj.conv", outputs, wide)
    _conv(parts, f"{at}pw_proj.bn", outputs)
    parts.add("vision", f"{at}layer_scale.gamma", outputs)


def _attention(parts: Parts, at: str, width: int, *, heads: int, dim: int, has_downsampling: bool) -> None:
    """Multi-query attention with one key and value head, sampled down where asked."""
    _conv(parts, f"{at}norm", width)
    _conv(parts, f"{at}attn.query.proj", heads * dim, width)
    for name in ("key", "value"):
        if has_downsampling:
            _conv(parts, f"{at}attn.{name}.down_conv", width, 9)
            _conv(parts, f"{at}attn.{name}.norm", width)
        _conv(parts, f"{at}attn.{name}.proj", dim, width)
    _conv(parts, f"{at}attn.output.proj", width, heads * dim)
    parts.add("vision", f"{at}layer_scale.gamma", width)
