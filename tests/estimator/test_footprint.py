"""Whole models at each precision. Sizes are those of the repositories and files on huggingface.co."""

import polars as pl
import pytest
from weight_models import (
    AWQ_72B,
    DEEPSEEK,
    GPT_OSS,
    LLAMA_8B,
    MODELS,
    PRECISIONS,
    QWEN_3B,
    QWEN_30B,
    QWEN_72B,
    RULES,
    requests,
    size,
)

from fitmart.estimator.footprint import PARTS, footprint
from fitmart.estimator.formats import FORMATS, UnknownFormatError
from fitmart.estimator.frames import FOOTPRINT_SCHEMA

GIB = 2**30


@pytest.mark.parametrize(
    ("model_id", "file_bytes"),
    [
        (QWEN_72B, 145_412_407_296),  # total_size of model.safetensors.index.json
        (LLAMA_8B, 16_060_522_496),
        (QWEN_3B, 6_171_877_376),
        (QWEN_30B, 61_064_245_248),
        (GPT_OSS, 13_761_264_768),
    ],
)
def test_repository_as_stored(model_id: str, file_bytes: int) -> None:
    assert size(model_id, "native")["file_bytes"] == file_bytes


def test_block_scales_and_mtp_of_deepseek() -> None:
    # The index says 688,586,727,753 bytes, MTP layer included; in memory it is left out (14 billion parameters).
    row = size(DEEPSEEK, "native")
    assert row["file_bytes"] == pytest.approx(688_586_727_753, rel=1e-4)
    assert row["file_bytes"] - row["weights_total_bytes"] > 11e9


@pytest.mark.parametrize(
    ("precision_id", "gib", "tolerance"),
    [
        ("bf16", 135.43, 1e-4),
        ("fp8", 70.02, 1e-3),  # embedding and head at 16 bits, the rest a byte: 70.03 without scales
        ("mlx-8bit", 71.95, 1e-3),  # 8.5 bits a weight
        ("gguf-q4_k_m", 44.16, 1e-3),
    ],
)
def test_qwen_72b(precision_id: str, gib: float, tolerance: float) -> None:
    assert size(QWEN_72B, precision_id)["weights_total_bytes"] / GIB == pytest.approx(gib, rel=tolerance)


def test_quantized_repository_has_only_its_own_precision() -> None:
    own, named = size(AWQ_72B, "native"), size(AWQ_72B, "awq-int4")
    assert own["weights_total_bytes"] == named["weights_total_bytes"]
    # published: 41.6 GB in shards; the width is padded to 29,696
    assert own["file_bytes"] == pytest.approx(41.6e9, rel=1e-3)
    refused = size(AWQ_72B, "gguf-q4_k_m")
    assert refused["error"] == (
        "Qwen/Qwen2.5-72B-Instruct-AWQ is already quantized (awq): ask for gguf-q4_k_m of its base model"
    )
    assert refused["weights_total_bytes"] is None


def test_quantized_repository_at_16_bit_has_its_own_shape() -> None:
    # the padded width makes 72,957,861,888 parameters of 72,706,203,648
    assert size(AWQ_72B, "bf16")["weights_total_bytes"] == 2 * 72_957_861_888


def test_native_fp8_model_can_be_converted() -> None:
    assert size(DEEPSEEK, "bf16")["weights_total_bytes"] == 2 * 671_026_404_352


@pytest.mark.parametrize(
    ("model_id", "precision_id", "message"),
    [("nobody/nothing", "bf16", "unknown model nobody/nothing"), (QWEN_3B, "int5", "unknown precision int5")],
)
def test_unknown_is_a_row_with_its_reason(model_id: str, precision_id: str, message: str) -> None:
    assert size(model_id, precision_id)["error"] == message


def test_answers_come_in_the_order_asked() -> None:
    asked = requests(
        (QWEN_3B, "gguf-q8_0", None, None),
        (QWEN_72B, "bf16", None, None),
        (QWEN_3B, "gguf-q8_0", "b4500", None),
        (QWEN_3B, "gguf-q8_0", None, None),
    )
    answers = footprint(MODELS.models, MODELS.tensors, PRECISIONS, asked, rules=RULES)
    assert answers.schema == FOOTPRINT_SCHEMA
    assert answers.select(asked.columns).equals(asked)


def test_parts_add_up_on_the_whole_grid() -> None:
    rows = footprint(MODELS.models, MODELS.tensors, PRECISIONS, rules=RULES).filter(pl.col("error").is_null())
    assert rows.height > 100
    assert (rows.select(pl.sum_horizontal(PARTS)).to_series() == rows["weights_total_bytes"]).all()
    assert (rows["file_bytes_low"] <= rows["file_bytes"]).all()
    assert (rows["file_bytes"] <= rows["file_bytes_high"]).all()


def test_unknown_stored_format_is_named() -> None:
    tensors = MODELS.tensors.with_columns(stored_format=pl.lit("int5-g7"))
    with pytest.raises(UnknownFormatError, match="int5-g7"):
        footprint(MODELS.models, tensors, PRECISIONS, requests((QWEN_3B, "native", None, None)), rules=RULES)


def test_every_precision_names_known_formats() -> None:
    columns = [name for name in PRECISIONS.columns if name.endswith("_format")]
    named = set(PRECISIONS.select(columns).unpivot()["value"]) - {"native"}
    assert named <= set(FORMATS["format_id"])


def test_grid_holds_the_precisions_that_pages_compare() -> None:
    grid = set(PRECISIONS.filter("is_in_grid")["precision_id"])
    gguf = {"bf16", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "iq4_xs", "q3_k_m", "ud-q2_k_xl"}
    assert {"native", "bf16", "fp8", "int8", "awq-int4", "nvfp4", "mlx-4bit", "mlx-8bit"} <= grid
    assert {f"gguf-{name}" for name in gguf} <= grid
