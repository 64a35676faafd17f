"""Config against headers, and quantized repositories in their base models' rows."""

from dataclasses import replace

import polars as pl
import pytest

from fitmart.estimator.anatomy import Tensor
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.frames import FOOTPRINT_SCHEMA
from fitmart.estimator.model_check import MODEL_CHECK_SCHEMA, expected_stored_bytes, model_check, unread_headers
from fitmart.estimator.siblings import (
    SIBLING_SCHEMA,
    STORED_FILE_SCHEMA,
    gguf_precision_of,
    siblings,
    with_siblings,
)

CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000, "tie_word_embeddings": False,
    "dtype": "bfloat16",
}  # fmt: skip
# 2 × (64² × 2 + 2 × 32 × 64 + 3 × 64 × 128 + 2 × 64) + 64 + 2 × 64,000
PARAMS = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128 + 2 * 64) + 64 + 2 * 64_000


def of_config(**fields):
    return parse_config("acme/llm", CONFIG | fields)


def of_header(*extra: Tensor, without: str = "-", stored: int = 2 * PARAMS):
    anatomy = of_config()
    tensors = tuple(t for t in anatomy.tensors if without not in t.name) + extra
    return replace(anatomy, tensors=tensors, facts=replace(anatomy.facts, anatomy_basis="header", stored_bytes=stored))


def disagreements(frame: pl.DataFrame) -> dict[str, str]:
    assert frame.schema == MODEL_CHECK_SCHEMA
    return dict(frame.filter(~pl.col("is_equal")).select("check_name", "explanation").iter_rows())


def test_what_agrees_is_equal_and_needs_no_explanation():
    frame = model_check(of_config(), of_header())
    assert disagreements(frame) == {}
    assert frame["explanation"].null_count() == frame.height
    rows = {r["check_name"]: (r["config_value"], r["header_value"]) for r in frame.iter_rows(named=True)}
    assert rows["params_total"] == (PARAMS, PARAMS)
    assert rows["stored_bytes"] == (2 * PARAMS, 2 * PARAMS)
    assert rows["params.embedding"] == (64_000, 64_000)


def test_a_stored_copy_of_a_tied_head_is_named():
    """Qwen3-0.6B's file holds its tied output matrix once more."""
    found = disagreements(model_check(of_config(tie_word_embeddings=True), of_header()))
    assert found["stored_params"] == "the files hold 64,000 parameters more: an output matrix"
    assert found["tensors_only_in_header"] == "lm_head.weight"
    assert found["params.lm_head"] == "the files hold +64,000 parameters in lm_head"
    assert found["stored_bytes"].startswith("the files hold +")


@pytest.mark.parametrize(
    ("tensor", "cause"),
    [
        (Tensor(component="mtp", name="mtp.fc.weight", rows=64, columns=128, is_in_memory=False), "prediction layers"),
        (Tensor(component="attention", name="rotary_emb.inv_freq", rows=8, is_in_memory=False), "buffers"),
        (Tensor(component="vision", name="visual.merger.weight", rows=8, columns=8), "vision and audio towers"),
    ],
)
def test_one_cause_that_explains_the_whole_difference_is_named(tensor, cause):
    found = disagreements(model_check(of_config(), of_header(tensor)))
    assert found["stored_params"] == f"the files hold {tensor.params:,} parameters more: {cause}"


def test_a_missing_matrix_is_named():
    found = disagreements(model_check(of_config(), of_header(without="lm_head", stored=2 * (PARAMS - 64_000))))
    assert found["params_total"] == "the files hold 64,000 parameters fewer: an output matrix"
    assert found["tensors_only_in_config"] == "lm_head.weight"


def test_bytes_allow_a_thousandth_for_scales_that_no_config_states():
    assert disagreements(model_check(of_config(), of_header(stored=2 * PARAMS + PARAMS // 1000))) == {}
    assert list(disagreements(model_check(of_config(), of_header(stored=PARAMS)))) == ["stored_bytes"]


def test_names_of_another_container_are_not_compared():
    header = of_header()
    renamed = replace(header, tensors=tuple(replace(t, name=f"blk.{i}") for i, t in enumerate(header.tensors)))
    renamed = replace(renamed, facts=replace(header.facts, native_precision="gguf-q4_k_m", stored_bytes=PARAMS))
    assert disagreements(model_check(of_config(), renamed)) == {}


def test_expected_bytes_are_those_of_each_format():
    """A matrix of 64 × 64 in 128-blocks of fp8: one byte each and one float32; vectors and embeddings 16 bit."""
    quantized = of_config(quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
    matrices = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128)
    assert expected_stored_bytes(quantized) == 2 * (PARAMS - matrices) + matrices + 2 * 7 * 4


def test_headers_that_cannot_be_read_are_a_row():
    assert disagreements(unread_headers("acme/llm", "why")) == {"headers": "why"}


# ---- siblings ------------------------------------------------------------------------------------------------------

MODELS = pl.DataFrame(
    [
        ("acme/llm", None, "bf16", None, 1000, None, 9),
        ("acme/llm-AWQ", "acme/llm", "awq-int4", "awq", 1000, 560, 1),
        ("other/llm-AWQ", "acme/llm", "awq-int4", "awq", 1000, 561, 99),
        ("one/llm-FP8", "acme/llm", "fp8", "fp8", 1003, 1010, 5),
        ("two/llm-FP8", "acme/llm", "fp8", "fp8", 1003, 1020, 6),
        ("acme/tune", "acme/llm", "bf16", None, 1000, 2000, 7),
        ("acme/draft-FP8", "acme/llm", "int8", "fp8", 100, 100, 7),
        ("odd/llm-GPTQ", "acme/llm", "gptq-int4", "gptq", 1000, 3000, 7),
        ("gone/llm-AWQ", "acme/none", "awq-int4", "awq", 1000, 560, 1),
    ],
    schema={
        "model_id": pl.String, "base_model": pl.String, "native_precision": pl.String, "quant_method": pl.String,
        "params_total": pl.Int64, "stored_bytes": pl.Int64, "downloads": pl.Int64,
    },
    orient="row",
)  # fmt: skip
SIZES = {"bf16": 2000, "awq-int4": 550, "fp8": 1000, "int8": 1000, "gptq-int4": 550, "gguf-q4_k_m": 600}
FOOTPRINTS = pl.DataFrame(
    [
        {"model_id": "acme/llm", "precision_id": p, "file_bytes": n, "file_bytes_low": n, "file_bytes_high": n}
        | {"basis": "derived", "weights_total_bytes": n}
        for p, n in SIZES.items()
    ],
    schema=FOOTPRINT_SCHEMA,
)


def test_a_publishers_own_sibling_comes_first_then_the_most_downloaded():
    found = siblings(MODELS, FOOTPRINTS)
    assert found.schema == SIBLING_SCHEMA
    assert found.rows() == [
        ("acme/llm", "awq-int4", "acme/llm-AWQ", 560),
        ("acme/llm", "fp8", "two/llm-FP8", 1020),
    ]  # no fine-tune, no smaller model, nothing that is five times too large, no unknown base


def test_files_of_a_gguf_repository_serve_too():
    files = pl.DataFrame([("q/llm-GGUF", "acme/llm", "gguf-q4_k_m", 610)], schema=STORED_FILE_SCHEMA, orient="row")
    assert ("acme/llm", "gguf-q4_k_m", "q/llm-GGUF", 610) in siblings(MODELS, FOOTPRINTS, files).rows()


def test_stored_bytes_take_the_place_of_derived_ones():
    served = with_siblings(FOOTPRINTS, siblings(MODELS, FOOTPRINTS))
    assert served.schema == FOOTPRINT_SCHEMA
    by_precision = {r["precision_id"]: r for r in served.iter_rows(named=True)}
    awq, plain = by_precision["awq-int4"], by_precision["bf16"]
    assert (awq["file_bytes"], awq["file_bytes_low"], awq["file_bytes_high"], awq["basis"]) == (560, 560, 560, "stored")
    assert (plain["file_bytes"], plain["basis"]) == (2000, "derived")


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("Qwen2.5-72B-Instruct-Q4_K_M-00001-of-00002.gguf", "gguf-q4_k_m"),
        ("qwen2.5-7b-instruct-q5_0.gguf", "gguf-q5_0"),
        ("Llama-3.3-70B-UD-Q4_K_XL.gguf", "gguf-ud-q4_k_xl"),
        ("model.IQ2_XXS.gguf", "gguf-iq2_xxs"),
        ("gpt-oss-20b-MXFP4.gguf", "gguf-mxfp4"),
        ("x-BF16.gguf", "gguf-bf16"),
        ("ggml-vocab.gguf", None),
    ],
)
def test_the_precision_of_a_gguf_file_is_in_its_name(name, precision):
    assert gguf_precision_of(name) == precision
