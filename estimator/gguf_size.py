"""The size of a GGUF file: its tensors, their alignment and the metadata before them.

Source: the GGUF format (ggml/docs/gguf.md). Tensors begin at multiples of 32 bytes; the header holds a description of
each tensor and the vocabulary's text, whose mean lengths were measured on published files whose size is known to the
byte.
"""

from collections.abc import Mapping

import polars as pl

from fitmart.estimator.formats import with_bytes
from fitmart.estimator.frames import FOOTPRINT_SCHEMA
from fitmart.estimator.gguf_rules import gguf_tables, requested
from fitmart.estimator.gguf_types import BLOCKS, HAND_MADE, REQUEST, typed_tensors

ALIGNMENT = 32
LOW_BITS = 4
_TENSOR_INFO_BYTES = 62  # name, dimensions, type, offset
_KEY_VALUE_BYTES = 8_000  # architecture, tokenizer settings, chat template
_TOKEN_BYTES = 8 + 4  # length of the text, type
_SCORE_BYTES = 4
_LENGTH_BYTES = 8
_PROJECTOR_FORMAT = "fp16"

_PART = {
    "embedding": "embedding_bytes",
    "attention": "attention_bytes",
    "mlp": "mlp_bytes",
    "experts": "experts_bytes",
    "norm": "norm_bytes",
    "router": "norm_bytes",
    "lm_head": "lm_head_bytes",
}


def gguf_footprint(
    models: pl.DataFrame,
    tensors: pl.DataFrame,
    wanted: pl.DataFrame,
    *,
    rules: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """FOOTPRINT_SCHEMA without `error`, one row for each distinct row of `wanted` that has tensors.

    `wanted`: model_id, precision_id, engine_version, imatrix, all known and of container gguf. basis: derived where
    llama.cpp's rules decide, typical where publishers do; the band (80 %) is as wide as their files differ.
    """
    tables = gguf_tables(rules)
    requests = requested(wanted.select(REQUEST).unique(maintain_order=True), models, tables)
    typed = typed_tensors(requests, models, tensors, tables)
    is_loaded = pl.col("component") != "mtp"
    padding = -pl.col("layer_bytes") % ALIGNMENT * pl.col("tensor_count")
    sums = typed.group_by(REQUEST).agg(
        weights_total_bytes=pl.col("total_bytes").filter(is_loaded).sum(),
        data_bytes=(pl.col("total_bytes") + padding).sum(),
        tensor_count=pl.col("tensor_count").sum(),
        **{
            part: pl.col("total_bytes").filter(pl.col("component").replace_strict(_PART, default=None) == part).sum()
            for part in dict.fromkeys(_PART.values())
        },
    )
    header = pl.col("header_bytes") + _TENSOR_INFO_BYTES * pl.col("tensor_count")
    sized = (
        sums.join(_header_bytes(models, tables["gguf_vocabulary"]), on="model_id", how="left", validate="m:1")
        .join(_projector_bytes(tensors), on="model_id", how="left", validate="m:1")
        .with_columns(file_bytes=pl.col("data_bytes") + header, vision_bytes=pl.col("vision_bytes").fill_null(0))
        .join(_bands(requests, models, tables["gguf_band"]), on=REQUEST, how="left", nulls_equal=True, validate="1:1")
        .with_columns(
            file_bytes_low=(pl.col("file_bytes") * pl.col("low")).cast(pl.Int64),
            file_bytes_high=(pl.col("file_bytes") * pl.col("high")).cast(pl.Int64),
        )
    )
    return sized.select(name for name in FOOTPRINT_SCHEMA if name != "error")


def _header_bytes(models: pl.DataFrame, vocabularies: pl.DataFrame) -> pl.DataFrame:
    """model_id, header_bytes: key-value pairs, vocabulary and merges, without the tensors' descriptions."""
    vocab = pl.col("vocab_size")
    kinds = (
        models.select("model_type", "vocab_size")
        .unique()
        .join(vocabularies.with_row_index("kind"), how="cross")
        .filter(
            pl.col("model_type").str.contains(pl.format("^(?:{})$", "model_types")),
            pl.col("from_tokens").is_null() | (vocab >= pl.col("from_tokens")),
            pl.col("below_tokens").is_null() | (vocab < pl.col("below_tokens")),
        )
        .sort("kind")
        .unique(["model_type", "vocab_size"], keep="first", maintain_order=True)
    )
    token = _TOKEN_BYTES + pl.col("token_text_bytes") + _SCORE_BYTES * pl.col("has_scores").cast(pl.Int64)
    merges = pl.coalesce("merges", "vocab_size") * (_LENGTH_BYTES + pl.col("merge_text_bytes"))
    sized = kinds.select(
        "model_type",
        "vocab_size",
        header_bytes=(_KEY_VALUE_BYTES + vocab * token + merges).cast(pl.Int64),
    )
    return (
        models.select("model_id", "model_type", "vocab_size")
        .join(sized, on=["model_type", "vocab_size"], how="left", validate="m:1")
        .select("model_id", "header_bytes")
    )


def _bands(requests: pl.DataFrame, models: pl.DataFrame, bands: pl.DataFrame) -> pl.DataFrame:
    """REQUEST, basis, and low, high: the factors of the band."""
    bits = BLOCKS.select("bits_per_weight", base_type="ggml_type")
    is_moe = models.select("model_id", is_moe=pl.col("experts").fill_null(0) > 1)
    return (
        requests.join(bits, on="base_type", how="left", validate="m:1")
        .join(is_moe, on="model_id", how="left", validate="m:1")
        .with_columns(is_low_bit=pl.col("bits_per_weight") < LOW_BITS)
        .join(bands, on=["maker", "is_moe", "is_low_bit"], how="left", validate="m:1")
        .select(
            *REQUEST,
            pl.col("low", "high").fill_null(1.0),
            basis=pl.when(pl.col("maker").is_in(HAND_MADE)).then(pl.lit("typical")).otherwise(pl.lit("derived")),
        )
    )


def _projector_bytes(tensors: pl.DataFrame) -> pl.DataFrame:
    """model_id, vision_bytes: the towers' file (mmproj), 16 bits."""
    towers = tensors.filter(pl.col("component").is_in(["vision", "audio"]) & pl.col("is_in_memory"))
    sized = with_bytes(towers.with_columns(format=pl.lit(_PROJECTOR_FORMAT)))
    count = pl.col("layer_count") * pl.col("copies")
    return sized.group_by("model_id").agg(vision_bytes=(pl.col("bytes") * count).sum())
