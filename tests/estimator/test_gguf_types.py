"""Each tensor's type, by the rules as llama.cpp's source states them."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weight_models import (
    DEEPSEEK,
    GPT_OSS,
    LLAMA_2_7B,
    LLAMA_8B,
    MIXTRAL,
    MODELS,
    PRECISIONS,
    QWEN_3B,
    QWEN_30B,
    QWEN_72B,
    RULES,
    types,
)

from fitmart.estimator.frames import GGUF_TENSOR_SCHEMA
from fitmart.estimator.gguf_rules import FLAGS, LAYER_BITS, GgufRuleError, gguf_tables, with_effects
from fitmart.estimator.gguf_types import BLOCKS


def of_role(tensors: pl.DataFrame, role: str) -> dict[str, list[int]]:
    """ggml type → layers."""
    found: dict[str, list[int]] = {}
    for ggml_type, layers in tensors.filter(pl.col("role") == role).select("ggml_type", "layer_ids").iter_rows():
        found[ggml_type] = sorted(found.get(ggml_type, []) + layers)
    return found


def one_type(tensors: pl.DataFrame, role: str) -> str:
    (found,) = of_role(tensors, role)
    return found


# use_more_bits(i, 32): the first eighth, the last eighth, and every third between
MORE_OF_32 = [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]


def test_schema() -> None:
    assert types(LLAMA_8B, "gguf-q4_k_m").schema == GGUF_TENSOR_SCHEMA


def test_q4_k_m_gives_half_of_the_layers_more_bits() -> None:
    tensors = types(LLAMA_8B, "gguf-q4_k_m")
    for role in ("attn_v", "ffn_down"):
        assert of_role(tensors, role)["Q6_K"] == MORE_OF_32
        assert of_role(tensors, role)["Q4_K"] == [i for i in range(32) if i not in MORE_OF_32]
    assert {one_type(tensors, role) for role in ("attn_q", "attn_k", "attn_output", "ffn_gate", "ffn_up")} == {"Q4_K"}
    assert one_type(tensors, "output") == "Q6_K"
    assert one_type(tensors, "token_embd") == "Q4_K"
    assert one_type(tensors, "input_layernorm") == "F32"


@pytest.mark.parametrize(
    ("precision_id", "role", "ggml_type"),
    [
        ("gguf-q2_k", "attn_v", "Q4_K"),  # four query heads a KV head
        ("gguf-q2_k", "ffn_down", "Q3_K"),
        ("gguf-q3_k_l", "attn_v", "Q5_K"),
        ("gguf-q3_k_m", "attn_output", "Q4_K"),
        ("gguf-iq4_xs", "attn_v", "Q5_K"),
        ("gguf-iq2_xxs", "output", "Q5_K"),
        ("gguf-iq2_m", "token_embd", "IQ3_S"),
        ("gguf-iq3_xxs", "attn_k", "IQ2_S"),
        ("gguf-iq1_s", "attn_output", "IQ2_XXS"),
        ("gguf-q8_0", "output", "Q8_0"),
        ("gguf-q4_0", "output", "Q6_K"),
        ("gguf-q6_k_l", "output", "Q8_0"),
        ("gguf-q6_k_l", "token_embd", "Q8_0"),
        ("gguf-bf16", "ffn_up", "BF16"),
        ("gguf-f16", "output", "F16"),
    ],
)
def test_one_type_for_all_layers(precision_id: str, role: str, ggml_type: str) -> None:
    assert one_type(types(LLAMA_8B, precision_id), role) == ggml_type


@pytest.mark.parametrize(
    ("version", "layers"), [("b1600", [0, 1, 2, 3]), ("2024-06", [0, 1, 2, 3]), (None, [0, 1, 2, 3])]
)
def test_q4_k_s_favours_the_first_layers(version: str | None, layers: list[int]) -> None:
    assert of_role(types(LLAMA_2_7B, "gguf-q4_k_s", version), "ffn_down")["Q5_K"] == layers


def test_2023_rules_differ() -> None:
    old, new = types(LLAMA_2_7B, "gguf-q2_k", "b1600"), types(LLAMA_2_7B, "gguf-q2_k", "b2500")
    assert one_type(old, "ffn_gate") == "Q3_K"
    assert one_type(new, "ffn_gate") == "Q2_K"


@pytest.mark.parametrize(("imatrix", "found"), [(True, {"Q4_0", "Q4_1"}), (False, {"Q4_0"}), (None, {"Q4_0", "Q4_1"})])
def test_importance_matrix_raises_the_first_eighth(imatrix: bool | None, found: set[str]) -> None:
    assert set(of_role(types(LLAMA_8B, "gguf-q4_0", None, imatrix), "ffn_down")) == found


def test_wide_rows_that_no_block_divides_fall_back() -> None:
    # 29,568 = 115.5 × 256: ffn_down cannot be Q4_K or Q6_K
    tensors = types(QWEN_72B, "gguf-q4_k_m")
    assert set(of_role(tensors, "ffn_down")) == {"Q5_0", "Q8_0"}
    assert of_role(types(QWEN_72B, "gguf-iq4_xs"), "ffn_down").keys() == {"IQ4_NL"}


def test_70b_values_get_five_bits() -> None:
    # use_more_bits(i, 80): 10 + 10 of the ends and 20 between
    values = of_role(types(QWEN_72B, "gguf-q4_k_m"), "attn_v")
    assert len(values["Q6_K"]) == 40
    assert len(values["Q5_K"]) == 40


def test_eight_experts_keep_attention_at_eight_bits() -> None:
    tensors = types(MIXTRAL, "gguf-q4_k_m", "2024-06")
    assert (one_type(tensors, "attn_k"), one_type(tensors, "attn_v")) == ("Q8_0", "Q8_0")
    assert one_type(tensors, "attn_output") == "Q5_K"
    assert one_type(types(MIXTRAL, "gguf-q4_k_m", "b1650"), "ffn_down_exps") == "Q4_K"


def test_experts_are_stacked_by_layer_number() -> None:
    down = types(QWEN_30B, "gguf-q4_k_m", "b4500").filter(pl.col("role") == "ffn_down_exps")
    assert down["copies"].unique().to_list() == [128]
    assert down.filter(pl.col("ggml_type") == "Q6_K")["layer_ids"].list.len().sum() == 24
    assert (down["layer_bytes"] * down["layer_ids"].list.len() == down["total_bytes"]).all()


@pytest.mark.parametrize("precision_id", ["gguf-f16", "gguf-q4_k_m", "gguf-mxfp4_moe"])
def test_gpt_oss_keeps_its_experts(precision_id: str) -> None:
    assert one_type(types(GPT_OSS, precision_id), "ffn_up_exps") == "MXFP4"


def test_fused_expert_matrices_are_halved() -> None:
    tensors = types(GPT_OSS, "gguf-mxfp4_moe")
    shapes = tensors.filter(pl.col("role").is_in(["ffn_gate_exps", "ffn_up_exps"])).select("rows", "columns").unique()
    assert shapes.rows() == [(2880, 2880)]


def test_latent_projection_is_split_since_april_2025() -> None:
    old, new = types(DEEPSEEK, "gguf-q4_k_m", "2025-01"), types(DEEPSEEK, "gguf-q4_k_m", "2025-07")
    assert "attn_kv_b" in old["role"].to_list()
    keys = new.filter(pl.col("role") == "attn_k_b").select("rows", "columns", "copies").row(0)
    values = new.filter(pl.col("role") == "attn_v_b").select("rows", "columns", "copies").row(0)
    assert (keys, values) == ((512, 128, 128), (128, 512, 128))
    assert one_type(new, "attn_k_b") == "Q5_0"  # 128 is no multiple of 256


def test_prediction_layers_are_left_out() -> None:
    assert "mtp" not in types(DEEPSEEK, "gguf-q4_k_m")["component"].to_list()


def test_tied_embedding_is_ruled_as_the_head() -> None:
    tensors = types(QWEN_3B, "gguf-q4_k_m", "b4500", True)
    assert "output" not in tensors["role"].to_list()
    assert one_type(tensors, "token_embd") == "Q6_K"
    assert one_type(types(QWEN_3B, "gguf-iq2_xs", "b4500", True), "token_embd") == "Q5_K"


def test_other_containers_have_no_tensors() -> None:
    assert types(QWEN_3B, "bf16").is_empty()
    assert types("nobody/nothing", "gguf-q8_0").is_empty()


def test_every_gguf_precision_has_a_file_type() -> None:
    gguf = PRECISIONS.filter(pl.col("container") == "gguf")["precision_id"]
    assert set(gguf) == set(RULES["gguf_file_type"]["precision_id"])


def test_tables_name_only_what_exists() -> None:
    tables = gguf_tables(RULES)
    known = {"base", *BLOCKS["ggml_type"]}
    assert set(tables["gguf_rule"]["ggml_type"]) <= known
    assert set(tables["gguf_rule"]["layers"].drop_nulls()) <= LAYER_BITS.keys()
    assert set(tables["gguf_recipe"]["ggml_type"]) <= known
    assert set(tables["gguf_fallback"]["fallback_type"]) <= known
    named = {role for roles in tables["gguf_name"]["roles"] for role in roles.split("|")}
    ruled = {
        role for roles in (*tables["gguf_rule"]["roles"], *tables["gguf_recipe"]["roles"]) for role in roles.split("|")
    }
    assert ruled <= named | {"ffn_gate_up_exps"}
    assert not set(FLAGS) & set(tables["gguf_effect"]["effect"]) - {"is_70b", "is_falcon"}


def test_missing_table_is_named() -> None:
    with pytest.raises(GgufRuleError, match="gguf_rule"):
        gguf_tables({name: table for name, table in RULES.items() if name != "gguf_rule"})


def test_effects_hold_between_their_builds() -> None:
    cases = pl.DataFrame(
        {"model_type": ["phi", "phi"], "layers": [32, 32], "build": [1600, 2500], "has_imatrix": [False] * 2}
    )
    assert with_effects(cases, gguf_tables(RULES)["gguf_effect"])["has_fused_qkv"].to_list() == [True, False]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([LLAMA_8B, MIXTRAL, QWEN_30B, GPT_OSS, DEEPSEEK, QWEN_72B, QWEN_3B]),
    st.sampled_from(RULES["gguf_file_type"]["precision_id"].to_list()),
    st.sampled_from(["b1600", "b2500", "b4500", "2025-06", "b8400", None, "unreadable"]),
    st.sampled_from([True, False, None]),
)
def test_types_cover_the_model_and_divide_their_rows(
    model_id: str, precision_id: str, version: str | None, imatrix: bool | None
) -> None:
    tensors = types(model_id, precision_id, version, imatrix).join(BLOCKS, on="ggml_type", how="left")
    assert (tensors["columns"] % tensors["block"] == 0).all()
    layers = pl.col("layer_ids").list.len().clip(1)
    params = tensors.select((pl.col("rows") * pl.col("columns") * pl.col("copies") * layers).sum()).item()
    total = MODELS.models.filter(pl.col("model_id") == model_id)["params_total"].item()
    copied = tensors.filter(pl.col("role") == "output")  # a tied head that some files hold again
    extra = copied.select((pl.col("rows") * pl.col("columns")).sum()).item() if model_id == QWEN_3B else 0
    assert params - (extra or 0) == total
