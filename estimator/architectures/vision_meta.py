"""The towers of Llama 4 and Llama 3.2 Vision."""

from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.parts import Parts
from fitmart.estimator.architectures.towers import Block, blocks, depth, matrix, norm, patch_columns, patches

LLAMA4 = Block(names=("q_proj", "k_proj", "v_proj", "o_proj"), norms=("input_layernorm", "post_attention_layernorm"))
MLLAMA = Block(
    names=("q_proj", "k_proj", "v_proj", "o_proj"),
    attention_bias=False,
    norms=("input_layernorm", "post_attention_layernorm"),
)
ASPECT_RATIOS = {1: 1, 2: 3, 3: 5, 4: 8}  # arrangements of up to n tiles


def llama4_vision(parts: Parts, v: Config, text: int) -> None:
    """A ViT with a class token, a pixel-shuffle adapter and one projection."""
    hidden, width = v.integer("hidden_size", default=768), v.integer("intermediate_size", default=5632)
    at, ratio = "vision_model.", v.number("pixel_shuffle_ratio", default=0.5)
    parts.add("vision", f"{at}class_embedding", hidden)
    parts.add("vision", f"{at}positional_embedding_vlm", patches(v, image=448) + 1, hidden)
    matrix(parts, f"{at}patch_embedding.linear", hidden, patch_columns(v), bias=False)
    for name in ("layernorm_pre", "layernorm_post"):
        norm(parts, at + name, hidden)
    blocks(parts, f"{at}model.layers.{{layer}}.", hidden, width, depth(v, 34), LLAMA4)
    inner, out = v.integer("projector_input_dim", default=4096), v.integer("projector_output_dim", default=4096)
    matrix(parts, f"{at}vision_adapter.mlp.fc1", inner, int(hidden / ratio**2), bias=False)
    matrix(parts, f"{at}vision_adapter.mlp.fc2", out, inner, bias=False)
    matrix(parts, "multi_modal_projector.linear_1", text, v.integer("vision_output_dim", default=4096), bias=False)


def mllama_vision(parts: Parts, v: Config, text: int) -> None:
    """Local and gated global layers; positions for each arrangement of tiles."""
    hidden, width = v.integer("hidden_size", default=1280), v.integer("intermediate_size", default=5120)
    tiles, count, at = v.integer("max_num_tiles", default=4), patches(v, image=448) + 1, "vision_model."
    shapes = ASPECT_RATIOS.get(tiles, 2 * tiles) + 1
    parts.add("vision", f"{at}class_embedding", hidden)
    matrix(parts, f"{at}patch_embedding", hidden, patch_columns(v), bias=False)
    parts.add("vision", f"{at}gated_positional_embedding.gate", 1)
    parts.add("vision", f"{at}gated_positional_embedding.embedding", count, hidden)
    parts.add("vision", f"{at}gated_positional_embedding.tile_embedding.weight", shapes, tiles * count * hidden)
    for name in ("pre_tile_positional_embedding", "post_tile_positional_embedding"):
        parts.add("vision", f"{at}{name}.gate", 1)
        parts.add("vision", f"{at}{name}.embedding.weight", shapes, tiles * hidden)
    for name in ("layernorm_pre", "layernorm_post"):
        norm(parts, at + name, hidden)
    blocks(parts, f"{at}transformer.layers.{{layer}}.", hidden, width, depth(v, 32), MLLAMA)
    gated = tuple(range(v.integer("num_global_layers", default=8)))
    blocks(parts, f"{at}global_transformer.layers.{{layer}}.", hidden, width, gated, MLLAMA)
    for name in ("gate_attn", "gate_ffn"):
        parts.add("vision", f"{at}global_transformer.layers.{{layer}}.{name}", 1, layers=gated)
    matrix(parts, "multi_modal_projector", text, v.integer("vision_output_dim", default=7680))
