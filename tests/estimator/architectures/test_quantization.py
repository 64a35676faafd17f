"""Stored formats of each dialect, module by module."""

from collections import Counter
from typing import Any

import pytest
from published_configs import config

from fitmart.estimator.anatomy import Anatomy, AnatomyError
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.architectures.module_patterns import ModulePatterns
from fitmart.estimator.formats import FORMATS

QWEN, MOE, R1 = "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-R1"


def quantized(model_id: str, quantization: dict[str, Any] | None, side: dict[str, Any] | None = None) -> Anatomy:
    plain = config(model_id)
    plain.pop("quantization_config", None)
    changed = plain if quantization is None else {**plain, "quantization_config": quantization}
    return parse_config(model_id, changed, quant_config=side)


def formats(model: Anatomy) -> dict[str, set[str | None]]:
    """Formats of the matrices of each component."""
    found: dict[str, set[str | None]] = {}
    for t in model.tensors:
        if t.columns > 1:
            found.setdefault(t.component, set()).add(t.stored_format)
    return found


def group(bits: int, **weights: Any) -> dict[str, Any]:
    scheme = {"num_bits": bits, "type": "int", "symmetric": True, "strategy": "group", "group_size": 128, **weights}
    return {"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"], "weights": scheme}}}


DIALECTS = [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block128", "fp8-block"),
    ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8-tensor", "fp8"),
    ({"quant_method": "fbgemm_fp8"}, "fp8-channel", "fp8"),
    ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, "int4-g128-asym", "awq-int4"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, "gptq4-g128-sym", "gptq-int4"),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": True}, "gptq8-channel-sym", "gptq-int8"),
    (
        {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False, "desc_act": True},
        "gptq4-g32-asym-actorder",
        "gptq-int4",
    ),
    ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}, "gptq4-g128-sym", "gptq-int4"),
    (
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
        "nf4-g64-dq",
        "bnb-nf4",
    ),
    ({"load_in_4bit": True}, "nf4-g64", "bnb-nf4-single"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8-bnb", "bnb-int8"),
    (group(4), "int4-g128-sym", "ct-w4a16"),
    (group(4, symmetric=False), "int4-g128-asym", "ct-w4a16-asym"),
    (group(4, group_size=32), "int4-g32-sym", "ct-w4a16-g32"),
    (group(8, strategy="channel", group_size=None), "int8-channel", "int8"),
    (group(8, type="float", strategy="channel", group_size=None), "fp8-channel", "fp8"),
    (group(8, type="float", strategy="tensor", group_size=None), "fp8-tensor", "fp8"),
    (group(8, type="float", strategy="block", group_size=None), "fp8-block128", "fp8-block"),
    (group(4, type="float", group_size=16), "nvfp4-g16", "nvfp4"),
    (group(4, type="float", group_size=32), "mxfp4", "mxfp4"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4-g16", "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8-tensor", "fp8"),
    ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, "torchao-int4-g128", "torchao-int4"),
]


@pytest.mark.parametrize(("quantization", "format_id", "precision"), DIALECTS)
def test_dialect(quantization: dict[str, Any], format_id: str, precision: str) -> None:
    model = quantized(QWEN, quantization)
    assert formats(model) == {
        "embedding": {None},
        "attention": {format_id},
        "mlp": {format_id},
        "lm_head": {None},
    }
    assert model.facts.native_precision == precision
    assert format_id in set(FORMATS["format_id"])


def test_not_quantized() -> None:
    facts = quantized(QWEN, None).facts
    assert (facts.native_precision, facts.quant_method, facts.kv_cache_scheme) == ("bf16", None, None)


def test_vectors_and_biases_keep_their_dtype() -> None:
    model = quantized(QWEN, {"quant_method": "awq", "bits": 4, "group_size": 128})
    assert all(t.stored_format is None for t in model.tensors if t.columns == 1)


def test_parameters_do_not_depend_on_packing() -> None:
    packed = quantized(QWEN, {"quant_method": "gptq", "bits": 4, "group_size": 128})
    assert sum(t.params for t in packed.tensors) == 7615616512


def test_routers_stay_and_ignored_layers_are_split_off() -> None:
    ignored = ["lm_head", "model.layers.0.mlp.gate", "model.layers.3.self_attn.q_proj", "model.layers.4.self_attn*"]
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ignored}
    model = quantized(MOE, fp8)
    kept = {
        t.name.split(".")[-2]: t.layers
        for t in model.tensors
        if "self_attn" in t.name and not t.stored_format and t.columns > 1
    }
    assert kept == {"q_proj": (3, 4), "k_proj": (4,), "v_proj": (4,), "o_proj": (4,)}
    assert formats(model)["router"] == {None}
    assert sum(t.params for t in model.tensors) == 30532122624


def test_gpt_oss_quantizes_experts_only() -> None:
    model = parse_config("x", config("openai/gpt-oss-20b"))
    assert formats(model)["experts"] == {"mxfp4"}
    assert formats(model)["attention"] == {None}
    assert model.facts.native_precision == "mxfp4"


def test_kimi_int4_is_for_experts_through_expressions() -> None:
    found = formats(parse_config("x", config("moonshotai/Kimi-K2.5")))
    assert found["experts"] == {"int4-g32-sym"}
    assert found["attention"] == found["mlp"] == found["vision"] == {None}


def test_v4_experts_have_their_own_dtype() -> None:
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    model = quantized("deepseek-ai/DeepSeek-V4-Flash", fp8)
    assert formats(model)["experts"] == {"mxfp4"}
    assert formats(model)["mlp"] == {"fp8-block128"}
    assert model.facts.native_precision == "mxfp4"


def test_prediction_layers_of_fp8_checkpoints() -> None:
    model = quantized(R1, {"quant_method": "fp8", "weight_block_size": [128, 128]})
    mtp = {t.name.split(".")[-2]: t.stored_format for t in model.tensors if t.component == "mtp" and t.columns > 1}
    assert mtp["eh_proj"] is mtp["embed_tokens"] is mtp["head"] is mtp["gate"] is None
    assert mtp["q_b_proj"] == mtp["down_proj"] == "fp8-block128"


SIDE = {
    "producer": {"name": "modelopt"},
    "quantization": {
        "quant_algo": "NVFP4",
        "kv_cache_quant_algo": "FP8",
        "group_size": 16,
        "exclude_modules": ["lm_head", "model.layers.0*", "model.layers.1.*", "model.layers.61*", "*.shared_experts*"],
    },
}


def test_modelopt_side_file() -> None:
    model = quantized(R1, None, SIDE)
    facts = model.facts
    assert (facts.quant_method, facts.native_precision, facts.kv_cache_scheme) == ("modelopt", "nvfp4", "fp8")
    kept = Counter[int]()
    for t in model.tensors:
        if t.component in ("attention", "experts") and t.columns > 1 and t.stored_format is None:
            kept.update(t.layers)
    assert set(kept) == {0, 1}
    assert formats(model)["mtp"] == {None}
    shared = {t.stored_format for t in model.tensors if "shared_experts" in t.name}
    assert shared == {None}


def test_modelopt_mixture_goes_by_its_list() -> None:
    listed = {
        f"model.layers.{i}.mlp.experts.{e}.{n}_proj": {"quant_algo": "NVFP4"}
        for i in range(48)
        for e in (0, 1)
        for n in ("gate", "up", "down")
    }
    listed |= {f"model.layers.{i}.self_attn.q_proj": {"quant_algo": "FP8"} for i in range(48)}
    side = {"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": listed}}
    model = quantized(MOE, None, side)
    assert formats(model)["experts"] == {"nvfp4-g16"}
    assert formats(model)["attention"] == {"fp8-tensor", None}
    assert model.facts.native_precision == "nvfp4"  # what most parameters have


@pytest.mark.parametrize(
    ("quantization", "want"),
    [
        ({"quant_method": "vptq"}, "unknown quantization method 'vptq'"),
        ({"quant_method": "modelopt", "quant_algo": "INT3_NEW"}, "unknown quant_algo 'INT3_NEW'"),
        ({"quant_method": "compressed-tensors"}, "no config_groups"),
        ({"quant_method": "awq", "group_size": "all"}, "group_size is 'all'"),
        ("awq", "quantization_config is 'awq', not an object"),
    ],
)
def test_unknown_dialect(quantization: Any, want: str) -> None:
    with pytest.raises(AnatomyError, match="x"):
        quantized(QWEN, {"quant_method": "xxx"})
    with pytest.raises(AnatomyError) as raised:
        quantized(QWEN, quantization)
    assert want in str(raised.value)


@pytest.mark.parametrize(
    ("pattern", "tensor", "layers"),
    [
        ("gate", "model.layers.{layer}.block_sparse_moe.gate.weight", {0, 1, 10}),
        ("gate", "model.layers.{layer}.mlp.gate_proj.weight", set()),
        ("model.layers.1*", "model.layers.{layer}.mlp.up_proj.weight", {1, 10}),
        ("model.layers.1.*", "model.layers.{layer}.mlp.up_proj.weight", {1}),
        ("model.layers.*.self_attn", "model.layers.{layer}.self_attn.q_proj.weight", {0, 1, 10}),
        ("re:.*layers\\.(0|1)\\.mlp.*", "model.layers.{layer}.mlp.up_proj.weight", {0, 1}),
        ("re:.*shared_experts.*", "model.layers.{layer}.mlp.shared_experts.up_proj.weight", {0, 1, 10}),
        ("language_model.model.layers.10.self_attn*", "model.layers.{layer}.self_attn.q_proj.weight", {10}),
        ("model.layers.1.mlp.experts.0.w1", "model.layers.{layer}.mlp.experts.{expert}.w1.weight", {1}),
        ("model.layers.1.self_attn.q_proj", "vision_tower.layers.{layer}.self_attn.q_proj.weight", set()),
        ("mtp*", "mtp.layers.{layer}.mlp.up_proj.weight", {0, 1, 10}),
    ],
)
def test_patterns(pattern: str, tensor: str, layers: set[int]) -> None:
    assert ModulePatterns([pattern]).layers(tensor, (0, 1, 10)) == layers
