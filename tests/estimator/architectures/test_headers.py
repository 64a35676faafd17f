"""Headers → anatomy: shapes as published, packed by hand as each writer packs them."""

import json
from math import prod

import polars as pl
import pytest

from fitmart.estimator.anatomy import count_params
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.architectures.headers import anatomy_from_headers, stored_bytes, tensors_from_headers
from fitmart.estimator.architectures.headers_names import component_of, fold
from fitmart.estimator.architectures.headers_records import Header, HeaderError, StoredTensor
from fitmart.estimator.architectures.headers_safetensors import (
    DTYPE_BITS,
    header_length,
    parse_index,
    parse_safetensors,
)
from fitmart.estimator.formats import with_bytes


def stored(name: str, dtype: str, *shape: int) -> StoredTensor:
    return StoredTensor(name, dtype, shape, prod(shape) * DTYPE_BITS[dtype] // 8)


def header(*tensors: StoredTensor) -> Header:
    return Header(container="safetensors", tensors=tensors)


Q = "model.layers.0.self_attn.q_proj"
# One 4096 × 11008 matrix (11008 outputs, 4096 inputs) in groups of 128, as each writer lays it out.
PACKED = {
    "awq": (
        "int4-g128-asym",
        [
            stored(f"{Q}.qweight", "I32", 4096, 1376),
            stored(f"{Q}.qzeros", "I32", 32, 1376),
            stored(f"{Q}.scales", "F16", 32, 11008),
        ],
    ),
    "gptq": (
        "gptq4-g128-sym",
        [
            stored(f"{Q}.qweight", "I32", 512, 11008),
            stored(f"{Q}.qzeros", "I32", 32, 1376),
            stored(f"{Q}.scales", "F16", 32, 11008),
            stored(f"{Q}.g_idx", "I32", 4096),
        ],
    ),
    "gptq 8 bit": (
        "gptq8-channel-sym",
        [
            stored(f"{Q}.qweight", "I32", 1024, 11008),
            stored(f"{Q}.qzeros", "I32", 1, 2752),
            stored(f"{Q}.scales", "F16", 1, 11008),
            stored(f"{Q}.g_idx", "I32", 4096),
        ],
    ),
    "compressed-tensors int4": (
        "int4-g128-sym",
        [
            stored(f"{Q}.weight_packed", "I32", 11008, 512),
            stored(f"{Q}.weight_scale", "BF16", 11008, 32),
            stored(f"{Q}.weight_shape", "I64", 2),
        ],
    ),
    "compressed-tensors int8": (
        "int8-channel-sym",
        [
            stored(f"{Q}.weight_packed", "I32", 11008, 1024),
            stored(f"{Q}.weight_scale", "BF16", 11008, 1),
            stored(f"{Q}.weight_shape", "I64", 2),
        ],
    ),
    "compressed-tensors nvfp4": (
        "nvfp4-g16",
        [
            stored(f"{Q}.weight_packed", "U8", 11008, 2048),
            stored(f"{Q}.weight_scale", "F8_E4M3", 11008, 256),
            stored(f"{Q}.weight_global_scale", "F32", 1),
            stored(f"{Q}.input_global_scale", "F32", 1),
        ],
    ),
    "modelopt nvfp4": (
        "nvfp4-g16",
        [
            stored(f"{Q}.weight", "U8", 11008, 2048),
            stored(f"{Q}.weight_scale", "F8_E4M3", 11008, 256),
            stored(f"{Q}.weight_scale_2", "F32"),
            stored(f"{Q}.input_scale", "F32"),
        ],
    ),
    "deepseek-v4 experts": (
        "mxfp4",
        [stored(f"{Q}.weight", "I8", 11008, 2048), stored(f"{Q}.scale", "F8_E8M0", 11008, 128)],
    ),
    "bitsandbytes": (
        "nf4-g64-dq",
        [
            stored(f"{Q}.weight", "U8", 4096 * 11008 // 2, 1),
            stored(f"{Q}.weight.absmax", "U8", 4096 * 11008 // 64),
            stored(f"{Q}.weight.quant_map", "F32", 16),
            stored(f"{Q}.weight.nested_absmax", "F32", 4096 * 11008 // 64 // 256),
            stored(f"{Q}.weight.nested_quant_map", "F32", 256),
            stored(f"{Q}.weight.quant_state.bitsandbytes__nf4", "U8", 180),
        ],
    ),
    "bitsandbytes int8": (
        "int8-bnb",
        [
            stored(f"{Q}.weight", "I8", 11008, 4096),
            stored(f"{Q}.SCB", "F32", 11008),
            stored(f"{Q}.weight_format", "U8"),
        ],
    ),
    "fp8 blocks": (
        "fp8-block128",
        [stored(f"{Q}.weight", "F8_E4M3", 11008, 4096), stored(f"{Q}.weight_scale_inv", "F32", 86, 32)],
    ),
    "fp8 rows": (
        "fp8-channel",
        [stored(f"{Q}.weight", "F8_E4M3", 11008, 4096), stored(f"{Q}.weight_scale", "F32", 11008, 1)],
    ),
    "fp8 tensor": (
        "fp8-tensor",
        [
            stored(f"{Q}.weight", "F8_E4M3", 11008, 4096),
            stored(f"{Q}.weight_scale", "F32"),
            stored(f"{Q}.input_scale", "F32"),
        ],
    ),
    "int8 rows": (
        "int8-channel",
        [stored(f"{Q}.weight", "I8", 11008, 4096), stored(f"{Q}.weight_scale", "F32", 11008, 1)],
    ),
    "mlx": (
        "mlx4-g64",
        [
            stored(f"{Q}.weight", "U32", 11008, 512),
            stored(f"{Q}.scales", "BF16", 11008, 64),
            stored(f"{Q}.biases", "BF16", 11008, 64),
        ],
    ),
    "exl3": (
        "exl3-4",
        [
            stored(f"{Q}.trellis", "I16", 256, 688, 64),
            stored(f"{Q}.suh", "F16", 4096),
            stored(f"{Q}.svh", "F16", 11008),
        ],
    ),
    "exl2": (
        "exl2-4.05",
        [
            stored(f"{Q}.q_weight", "I32", 512, 11008),
            stored(f"{Q}.q_invperm", "I32", 4096),
            stored(f"{Q}.q_scale", "I32", 32, 1376),
            stored(f"{Q}.q_scale_max", "F16", 32),
            stored(f"{Q}.q_groups", "I16", 64),
        ],
    ),
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_matrices_are_unpacked_and_their_scales_are_no_parameters(name):
    stored_format, tensors = PACKED[name]
    (tensor,) = tensors_from_headers([header(*tensors)])
    assert (tensor.params, tensor.stored_format) == (4096 * 11008, stored_format)
    assert tensor.name == "model.layers.{layer}.self_attn.q_proj.weight"
    assert (tensor.component, tensor.layers) == ("attention", (0,))
    if name != "bitsandbytes":  # whose shape is in the values
        assert (tensor.rows, tensor.columns) == (11008, 4096)
    # The format's own arithmetic agrees with the bytes that are there; ExLlamaV2's is a mean in steps of 0.05 bits.
    frame = pl.DataFrame({"rows": [tensor.rows], "columns": [tensor.columns], "format": [tensor.stored_format]})
    assert with_bytes(frame)["bytes"][0] == pytest.approx(
        stored_bytes([header(*tensors)]), rel=0.01 if name == "exl2" else 1e-4
    )


def test_gpt_oss_experts_are_32_matrices_of_four_bits():
    """gpt-oss-20b: 32 experts, 2880 wide, 2880 → 5760; 90 groups of 32 values in 16 bytes."""
    at = "model.layers.3.mlp.experts.gate_up_proj"
    tensors = tensors_from_headers(
        [header(stored(f"{at}_blocks", "U8", 32, 5760, 90, 16), stored(f"{at}_scales", "U8", 32, 5760, 90))]
    )
    (experts,) = tensors
    assert (experts.rows, experts.columns, experts.copies) == (5760, 2880, 32)
    assert (experts.component, experts.stored_format) == ("experts", "mxfp4")


def test_scales_of_the_kv_cache_are_no_parameters_and_gemmas_router_scale_is_one():
    tensors = tensors_from_headers(
        [
            header(
                stored("model.layers.0.self_attn.k_scale", "F32"),
                stored("model.layers.0.self_attn.k_proj.k_scale", "F32"),
                stored("model.layers.0.router.scale", "BF16", 2816),
            )
        ]
    )
    assert [(t.name, t.component, t.params) for t in tensors] == [("model.layers.{layer}.router.scale", "router", 2816)]


def test_layers_stored_otherwise_are_rows_of_their_own():
    """Recipes keep the first layers in BF16."""
    tensors = tensors_from_headers(
        [
            header(
                *(stored(f"model.layers.{i}.mlp.down_proj.weight", "BF16", 256, 512) for i in (0, 1)),
                *(stored(f"model.layers.{i}.mlp.down_proj.weight", "F8_E4M3", 256, 512) for i in (2, 3, 4)),
                *(stored(f"model.layers.{i}.mlp.down_proj.weight_scale_inv", "F32", 2, 4) for i in (2, 3, 4)),
            )
        ]
    )
    assert [(t.layers, t.stored_format) for t in tensors] == [((0, 1), "bf16"), ((2, 3, 4), "fp8-block128")]


@pytest.mark.parametrize(
    ("name", "folded", "component"),
    [
        ("layers.3.mlp.experts.17.up_proj.weight", "layers.{layer}.mlp.experts.{expert}.up_proj.weight", "experts"),
        ("transformer.h.0.attn.c_attn.weight", "transformer.h.{layer}.attn.c_attn.weight", "attention"),
        ("model.visual.blocks.31.mlp.linear_fc1.bias", "model.visual.blocks.{layer}.mlp.linear_fc1.bias", "vision"),
        ("visual.merger.mlp.0.weight", "visual.merger.mlp.0.weight", "vision"),
        ("vision_tower.timm_model.blocks.0.1.bn1.bias", "vision_tower.timm_model.blocks.0.1.bn1.bias", "vision"),
        ("mtp.layers.0.mlp.gate.weight", "mtp.layers.{layer}.mlp.gate.weight", "mtp"),
        ("model.layers.5.mlp.gate.weight", "model.layers.{layer}.mlp.gate.weight", "router"),
        ("layers.5.mlp.shared_experts.up_proj.weight", "layers.{layer}.mlp.shared_experts.up_proj.weight", "mlp"),
        ("blk.11.ffn_down_exps.weight", "blk.{layer}.ffn_down_exps.weight", "experts"),
        ("blk.11.ffn_gate_inp.weight", "blk.{layer}.ffn_gate_inp.weight", "router"),
        ("blk.0.attn_norm.weight", "blk.{layer}.attn_norm.weight", "norm"),
        ("token_embd.weight", "token_embd.weight", "embedding"),
        ("output.weight", "output.weight", "lm_head"),
        ("output_norm.weight", "output_norm.weight", "norm"),
    ],
)
def test_names_are_folded_and_classified(name, folded, component):
    assert fold(name)[0] == folded
    assert component_of(folded) == component


# ---- with a config -------------------------------------------------------------------------------------------------

QWEN3_06B = {
    "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
    "tie_word_embeddings": True, "max_position_embeddings": 40960, "dtype": "bfloat16",
}  # fmt: skip


def qwen3_header() -> Header:
    def layer(i: int) -> list[StoredTensor]:
        at = f"model.layers.{i}."
        return [
            stored(f"{at}self_attn.q_proj.weight", "BF16", 2048, 1024),
            stored(f"{at}self_attn.k_proj.weight", "BF16", 1024, 1024),
            stored(f"{at}self_attn.v_proj.weight", "BF16", 1024, 1024),
            stored(f"{at}self_attn.o_proj.weight", "BF16", 1024, 2048),
            stored(f"{at}self_attn.q_norm.weight", "BF16", 128),
            stored(f"{at}self_attn.k_norm.weight", "BF16", 128),
            stored(f"{at}mlp.gate_proj.weight", "BF16", 3072, 1024),
            stored(f"{at}mlp.up_proj.weight", "BF16", 3072, 1024),
            stored(f"{at}mlp.down_proj.weight", "BF16", 1024, 3072),
            stored(f"{at}input_layernorm.weight", "BF16", 1024),
            stored(f"{at}post_attention_layernorm.weight", "BF16", 1024),
        ]

    return header(
        stored("lm_head.weight", "BF16", 151936, 1024),
        stored("model.embed_tokens.weight", "BF16", 151936, 1024),
        *(tensor for i in range(28) for tensor in layer(i)),
        stored("model.norm.weight", "BF16", 1024),
    )


def test_qwen3_06b_has_its_published_totals_and_its_stored_head():
    """The Hub publishes 751,632,384 parameters and a file of 1,503,300,328 bytes: header and head copy included."""
    anatomy = anatomy_from_headers("Qwen/Qwen3-0.6B", [qwen3_header()], QWEN3_06B)
    counts = count_params(anatomy)
    assert (counts["params_total"], counts["stored_params"]) == (596_049_920, 751_632_384)
    assert anatomy.facts.anatomy_basis == "header"
    assert anatomy.facts.stored_bytes == 2 * 751_632_384 < 1_503_300_328
    assert anatomy.caches == parse_config("Qwen/Qwen3-0.6B", QWEN3_06B).caches


def test_the_headers_count_wins_over_the_configs():
    """Qwen2.5-72B's AWQ repository is padded to 29,696 columns; a config that says 29,568 does not change its file."""
    config = QWEN3_06B | {"intermediate_size": 3000}
    anatomy = anatomy_from_headers("x", [qwen3_header()], config)
    assert count_params(anatomy)["params_total"] == 596_049_920


def test_transposed_and_stacked_tensors_take_the_axes_of_their_role():
    """GPT-2 stores c_attn as inputs × outputs (768 × 2304)."""
    config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 1, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
    tensors = [stored("h.0.attn.c_attn.weight", "F32", 768, 2304), stored("wte.weight", "F32", 50257, 768)]
    anatomy = anatomy_from_headers("gpt2", [header(*tensors)], config)
    matrix = anatomy.tensors[0]
    assert (matrix.rows, matrix.columns, matrix.tp_axis) == (2304, 768, "rows")


def test_layers_behind_the_last_are_prediction_layers():
    config = QWEN3_06B | {"num_hidden_layers": 1}
    tensors = [stored(f"model.layers.{i}.mlp.up_proj.weight", "BF16", 3072, 1024) for i in (0, 1)]
    anatomy = anatomy_from_headers("x", [header(*tensors)], config)
    assert [(t.component, t.is_in_memory) for t in anatomy.tensors] == [("mlp", True), ("mtp", False)]


def test_gptq_symmetry_comes_from_the_config():
    config = QWEN3_06B | {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": False}}
    tensors = [
        stored(f"{Q}.qweight", "I32", 128, 2048),
        stored(f"{Q}.qzeros", "I32", 8, 256),
        stored(f"{Q}.scales", "F16", 8, 2048),
        stored(f"{Q}.g_idx", "I32", 1024),
    ]
    anatomy = anatomy_from_headers("x", [header(*tensors)], config)
    assert anatomy.tensors[0].stored_format == "gptq4-g128-asym"


# ---- what is wrong -------------------------------------------------------------------------------------------------


def test_safetensors_without_a_config_say_what_they_hold():
    with pytest.raises(HeaderError, match=r"holds 2,097,152 parameters in 4,194,304 bytes; without config\.json"):
        anatomy_from_headers("x", [header(stored(f"{Q}.weight", "BF16", 2048, 1024))], None)


def test_parts_that_contradict_each_other_are_named():
    broken = header(stored(f"{Q}.qweight", "I32", 512, 11008), stored(f"{Q}.scales", "F16", 11008))
    with pytest.raises(HeaderError, match=r"self_attn\.q_proj: cannot be unpacked from qweight \[512, 11008\]"):
        tensors_from_headers([broken])


def test_a_tensor_stored_twice_is_no_checkpoint():
    one = header(stored("lm_head.weight", "BF16", 8, 8))
    with pytest.raises(HeaderError, match=r"lm_head\.weight is stored twice"):
        tensors_from_headers([one, one])


TENSOR = {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not JSON"),
        (b"[]", "not an object"),
        (json.dumps({"a": 3}), "a is not described by an object"),
        (json.dumps({"a": TENSOR | {"dtype": "Q9"}}), "unknown dtype 'Q9'"),
        (json.dumps({"a": TENSOR | {"shape": [2, -3]}}), "lacks a dtype, a shape"),
        (json.dumps({"a": TENSOR | {"shape": [2, 4]}}), r"BF16 \[2, 4\] cannot take 12 bytes"),
        (json.dumps({"a": TENSOR | {"data_offsets": [0, 12, 13]}}), "lacks"),
    ],
)
def test_broken_safetensors_headers_are_one_line(content, reason):
    with pytest.raises(HeaderError, match=f"^f: .*{reason}") as caught:
        parse_safetensors(content, file="f")
    assert "\n" not in str(caught.value)


def test_a_file_shorter_than_its_tensors_is_cut_short():
    parsed = parse_safetensors(json.dumps({"__metadata__": {"format": "pt"}, "a": TENSOR}), file="f", data_bytes=12)
    assert parsed.tensors == (StoredTensor("a", "BF16", (2, 3), 12),)
    assert parsed.metadata == {"format": "pt"}
    with pytest.raises(HeaderError, match="cut short: its tensors take 12 bytes, 11 are there"):
        parse_safetensors(json.dumps({"a": TENSOR}), file="f", data_bytes=11)


@pytest.mark.parametrize("start", [b"", b"1234567", b"\xff" * 8, b"\0" * 8])
def test_a_length_that_is_none(start):
    with pytest.raises(HeaderError, match="safetensors file"):
        header_length(start, file="f")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"weight_map": {"a": 1}}'])
def test_broken_indexes_are_one_line(content):
    with pytest.raises(HeaderError, match=r"^i: "):
        parse_index(content, file="i")


def test_an_index_lists_its_shards():
    index = parse_index('{"metadata": {"total_size": 12}, "weight_map": {"a": "2", "b": "1", "c": "2"}}', file="i")
    assert (index.shards, index.total_bytes) == (("1", "2"), 12)
