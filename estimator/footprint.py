"""The bytes of a model's weights at each precision: in memory and on disk, whole and one GPU's share."""

from collections.abc import Mapping

import polars as pl

from fitmart.estimator.formats import with_bytes
from fitmart.estimator.frames import FOOTPRINT_SCHEMA, conform
from fitmart.estimator.gguf_size import gguf_footprint
from fitmart.estimator.shards import weight_shards
from fitmart.estimator.tensor_formats import asked, tensor_formats

__all__ = ["footprint", "weight_shards"]

_KEY = ["model_id", "precision_id", "engine_version", "imatrix"]
_PART = {
    "embedding": "embedding_bytes",
    "attention": "attention_bytes",
    "mlp": "mlp_bytes",
    "experts": "experts_bytes",
    "norm": "norm_bytes",
    "router": "norm_bytes",
    "lm_head": "lm_head_bytes",
    "vision": "vision_bytes",
    "audio": "vision_bytes",
}
PARTS = tuple(dict.fromkeys(_PART.values()))
FIGURES = [name for name in FOOTPRINT_SCHEMA if name != "error"]
# How the anatomy was found says how well the bytes are known.
_BASIS = {"header": "stored", "config": "derived", "assumed": "assumed"}


def every_grid_precision(models: pl.DataFrame, precisions: pl.DataFrame) -> pl.DataFrame:
    """The requests of the grid: each model at each precision with `is_in_grid`."""
    return models.select("model_id").join(precisions.filter("is_in_grid").select("precision_id"), how="cross")


def footprint(
    models: pl.DataFrame,
    tensors: pl.DataFrame,
    precisions: pl.DataFrame,
    wanted: pl.DataFrame | None = None,
    *,
    rules: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """FOOTPRINT_SCHEMA, one row for each row of `wanted` and in its order.

    `wanted`: model_id, precision_id and optionally engine_version, imatrix; default: the grid's precisions of every
    model. A pair that has no figure carries the reason in `error`; an unknown storage format in `tensors` or
    `precisions` raises UnknownFormatError.
    """
    requests = every_grid_precision(models, precisions) if wanted is None else wanted
    for name in ("engine_version", "imatrix"):
        if name not in requests.columns:
            requests = requests.with_columns(pl.lit(None, dtype=FOOTPRINT_SCHEMA[name]).alias(name))
    requests = asked(requests.select(_KEY), models, precisions)
    distinct = requests.unique(maintain_order=True)
    answerable = distinct.filter(pl.col("error").is_null())
    is_gguf = pl.col("container") == "gguf"
    figures = pl.concat(
        [
            _plain_footprint(answerable.filter(~is_gguf), tensors, precisions),
            gguf_footprint(models, tensors, answerable.filter(is_gguf), rules=rules),
        ]
    )
    answers = requests.select(*_KEY, "error").join(
        figures, on=_KEY, how="left", nulls_equal=True, validate="m:1", maintain_order="left"
    )
    return conform(answers, FOOTPRINT_SCHEMA, stage="footprint")


def _plain_footprint(requests: pl.DataFrame, tensors: pl.DataFrame, precisions: pl.DataFrame) -> pl.DataFrame:
    """Every tensor in the format that its role has at the precision (checkpoints, MLX, EXL)."""
    pieces = tensor_formats(requests, tensors, precisions)
    count = pl.col("layer_count") * pl.col("copies")
    sized = with_bytes(with_bytes(pieces), format_id="memory_format", into="loaded").with_columns(
        bytes=pl.col("bytes") * count,
        loaded=pl.when(pl.col("is_in_memory") & (pl.col("component") != "mtp"))
        .then(pl.col("loaded") * count)
        .otherwise(0),
        part=pl.col("component").replace_strict(_PART, default=None),
    )
    is_on_disk = pl.when("is_whole_file").then("is_stored").otherwise(pl.col("loaded") > 0)
    parts = {part: pl.col("loaded").filter(pl.col("part") == part).sum() for part in PARTS}
    return (
        sized.group_by(_KEY)
        .agg(
            pl.col("loaded").sum().alias("weights_total_bytes"),
            pl.col("bytes").filter(is_on_disk).sum().alias("file_bytes"),
            pl.col("anatomy_basis").first().replace_strict(_BASIS, default="derived").alias("basis"),
            **parts,
        )
        .with_columns(file_bytes_low="file_bytes", file_bytes_high="file_bytes")
        .select(FIGURES)
    )
