"""The ggml type of every tensor of a GGUF file, as llama-quantize chooses it.

Source: llama.cpp's src/llama-quant.cpp by era, restated row by row in the seed `gguf_rule`; block sizes from `gguf`.
"""

from collections.abc import Mapping

import polars as pl
from gguf import GGML_QUANT_SIZES

from fitmart.estimator.formats import with_bytes
from fitmart.estimator.frames import GGUF_TENSOR_SCHEMA, conform
from fitmart.estimator.gguf_layout import CASE, gguf_layout
from fitmart.estimator.gguf_rules import FLAGS, FLOATS, LAYER_BITS, gguf_tables, in_force, requested
from fitmart.estimator.tensor_formats import asked
from fitmart.estimator.units import BITS_PER_BYTE

REQUEST = ["model_id", "precision_id", "engine_version", "imatrix"]
HAND_MADE = ("dynamic", "own")
_BASE = "base"
_KEY = ["file_type", "base_type", "rule_role", "position", "build", *FLAGS]

BLOCKS = pl.DataFrame(
    [(kind.name, elements, size * BITS_PER_BYTE / elements) for kind, (elements, size) in GGML_QUANT_SIZES.items()],
    schema={"ggml_type": pl.String, "block": pl.Int64, "bits_per_weight": pl.Float64},
    orient="row",
)


def gguf_tensors(
    models: pl.DataFrame,
    tensors: pl.DataFrame,
    precisions: pl.DataFrame,
    wanted: pl.DataFrame,
    *,
    rules: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """GGUF_TENSOR_SCHEMA of each distinct row of `wanted` (model_id, precision_id, engine_version, imatrix).

    A blank engine_version is the newest; a blank imatrix is what files of that time were made with. Rows that are no
    GGUF, or that `footprint` answers with an error, have no tensors. Types that a publisher chose by hand are typical
    ones (`gguf_recipe`).
    """
    tables = gguf_tables(rules)
    requests = asked(wanted.select(REQUEST).unique(maintain_order=True), models, precisions)
    requests = requests.filter((pl.col("container") == "gguf") & pl.col("error").is_null())
    requests = requested(requests.select(REQUEST), models, tables)
    return conform(typed_tensors(requests, models, tensors, tables), GGUF_TENSOR_SCHEMA, stage="gguf_tensors")


def typed_tensors(
    requests: pl.DataFrame, models: pl.DataFrame, tensors: pl.DataFrame, tables: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """Columns of GGUF_TENSOR_SCHEMA and `tensor_count`; `requests` as `requested` gives them."""
    flagged, layout = gguf_layout(models, tensors, requests.select(CASE).unique(), tables)
    rows = (
        requests.join(
            flagged.select(*CASE, *(f for f in FLAGS if f not in ("is_ragged", "has_imatrix"))), on=CASE, how="left"
        )
        .join(layout, on=CASE, how="inner")
        .join(BLOCKS.select("block", base_type="ggml_type"), on="base_type", how="left", validate="m:1")
        .with_columns(is_ragged=pl.col("columns") % pl.col("block") != 0)
        .drop("block")
    )
    typed = _with_type(rows, tables).with_columns(format=pl.format("ggml-{}", pl.col("ggml_type").str.to_lowercase()))
    count = pl.col("layer_ids").list.len().clip(1)
    sized = with_bytes(
        typed.with_columns(stacked=pl.col("rows") * pl.col("copies")), rows="stacked", into="layer_bytes"
    )
    return sized.with_columns(total_bytes=pl.col("layer_bytes") * count, tensor_count=count.cast(pl.Int64))


def _with_type(rows: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """`rows` with ggml_type: what is kept, what the file type overrides, the rule, and the fallback of ragged rows."""
    is_float = pl.col("base_type").is_in(FLOATS)
    override = (
        pl.when(pl.col("role").is_in(["output", "token_embd"]) & (pl.col("rule_role") == "output"))
        .then("head_type")
        .when(pl.col("role") == "token_embd")
        .then("embedding_type")
    )
    is_kept_float = pl.col("kept_as") == "F16"  # as the converter wrote it: 16 bits, F32 in an F32 file
    kept = (
        pl.when(is_kept_float & is_float)
        .then("base_type")
        .when(is_kept_float)
        .then(pl.lit("BF16"))
        .otherwise("kept_as")
    )
    rows = _with_recipe(rows, tables["gguf_recipe"]).with_columns(
        chosen=pl.coalesce(kept, pl.when(is_float).then("base_type"), "by_hand", override)
    )
    ruled = _rule_types(rows.filter(pl.col("chosen").is_null()).select(_KEY).unique(), tables["gguf_rule"])
    typed = rows.join(ruled, on=_KEY, how="left", validate="m:1").with_columns(
        ggml_type=pl.coalesce("chosen", "ruled", "base_type")
    )
    for column in ("fallback_type", None):
        typed = _with_fallback(typed, tables["gguf_fallback"], column)
    return typed


def _with_recipe(rows: pl.DataFrame, recipes: pl.DataFrame) -> pl.DataFrame:
    """`rows` with by_hand: the type that publishers usually give a tensor, where they choose for themselves."""
    split = recipes.with_columns(pl.col("precision_ids", "roles").str.split("|"))
    choices = split.explode("precision_ids").explode("roles").rename({"ggml_type": "by_hand"})
    is_tied_head = (pl.col("role") == "token_embd") & (pl.col("rule_role") == "output")
    return (
        rows.with_columns(recipe_role=pl.when(is_tied_head).then(pl.lit("output")).otherwise("role"))
        .join(
            choices,
            left_on=["precision_id", "is_moe", "recipe_role"],
            right_on=["precision_ids", "is_moe", "roles"],
            how="left",
            validate="m:1",
        )
        .with_columns(by_hand=pl.when(pl.col("maker").is_in(HAND_MADE)).then("by_hand"))
        .drop("recipe_role")
    )


def _rule_types(keys: pl.DataFrame, rules: pl.DataFrame) -> pl.DataFrame:
    """_KEY, ruled: the type of the first rule that applies; no row where none does."""
    split = pl.col("file_types", "roles").str.split("|")
    ruled = rules.with_columns(split).explode("file_types").explode("roles")
    ruled = ruled.with_columns(bit=pl.col("layers").replace_strict(LAYER_BITS, default=None, return_dtype=pl.Int64))
    ruled = ruled.rename({flag: f"only_{flag}" for flag in FLAGS})
    matched = pl.concat(
        [
            keys.join(ruled, left_on=["file_type", "rule_role"], right_on=["file_types", "roles"], how="inner"),
            keys.join(
                ruled.filter(pl.col("file_types") == "*").drop("file_types"), left_on="rule_role", right_on="roles"
            ),
        ]
    )
    flags = [pl.col(f"only_{flag}").is_null() | (pl.col(f"only_{flag}") == pl.col(flag)) for flag in FLAGS]
    is_here = pl.col("bit").is_null() | (pl.col("position") & pl.col("bit") != 0)
    return (
        matched.filter(in_force(), is_here, *flags)
        .sort("rule")
        .unique(_KEY, keep="first", maintain_order=True)
        .select(
            *_KEY,
            ruled=pl.when(pl.col("ggml_type") == _BASE).then("base_type").otherwise("ggml_type"),
        )
    )


def _with_fallback(rows: pl.DataFrame, fallbacks: pl.DataFrame, column: str | None) -> pl.DataFrame:
    """The fallback where ggml_type's block does not divide the row length; `column` None: F16, which always fits."""
    known = rows.join(BLOCKS.select("ggml_type", "block"), on="ggml_type", how="left", validate="m:1")
    is_whole = pl.col("columns") % pl.col("block") == 0
    if column is None:
        return known.with_columns(ggml_type=pl.when(is_whole).then("ggml_type").otherwise(pl.lit("F16"))).drop("block")
    return (
        known.join(fallbacks, on="ggml_type", how="left", validate="m:1")
        .with_columns(ggml_type=pl.when(is_whole).then("ggml_type").otherwise(pl.coalesce(column, "ggml_type")))
        .drop("block", column)
    )
