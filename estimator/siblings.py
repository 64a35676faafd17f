"""Quantized repositories that serve their base model's rows by what they store.

A repository is a sibling of the model that its card names as `base_model` when it is a quantization and holds about as
many parameters (fine-tunes and adapters name a base model too, but have a precision of their own or another size).
"""

import re

import polars as pl

from fitmart.estimator.frames import schema

SIBLING_SCHEMA = schema(
    base_model_id=pl.String,
    precision_id=pl.String,
    sibling_model_id=pl.String,
    stored_bytes=pl.Int64,
)
STORED_FILE_SCHEMA = schema(model_id=pl.String, base_model=pl.String, precision_id=pl.String, stored_bytes=pl.Int64)

SAME_SIZE = 0.02  # padded widths and copies of a tied head stay below it
PLAUSIBLE = 0.3  # of the derived bytes: a recipe may keep more or less, another model does not come as near
_GGUF_NAME = re.compile(
    r"[-._](?P<ud>UD-)?(?P<type>(?:IQ|TQ|Q)\d(?:_[A-Z0-9]+)*|MXFP4(?:_MOE)?|BF16|F16|F32)"
    r"(?:-\d{5}-of-\d{5})?\.gguf$",
    re.IGNORECASE,
)


def gguf_precision_of(file_name: str) -> str | None:
    """The precision that a GGUF file's name states: `x-UD-Q4_K_XL-00001-of-00002.gguf` → gguf-ud-q4_k_xl."""
    found = _GGUF_NAME.search(file_name)
    return f"gguf-{'ud-' if found['ud'] else ''}{found['type'].lower()}" if found else None


def siblings(models: pl.DataFrame, footprints: pl.DataFrame, stored_files: pl.DataFrame | None = None) -> pl.DataFrame:
    """SIBLING_SCHEMA, at most one row a base model and precision, of those in `footprints`.

    `models`: model_id, base_model, native_precision, quant_method, params_total, stored_bytes, downloads.
    `footprints`: FOOTPRINT_SCHEMA of the base models. `stored_files`: STORED_FILE_SCHEMA, for repositories of several
    precisions (GGUF). Of several siblings the base model's own publisher's is taken, then the most downloaded.
    """
    sized = models.select("model_id", "params_total")
    bases = sized.rename({"model_id": "base_model", "params_total": "base_params"})
    quantized = (
        models.filter(pl.col("quant_method").is_not_null() & pl.col("stored_bytes").is_not_null())
        .join(bases, on="base_model", how="inner")
        .filter((pl.col("params_total") / pl.col("base_params") - 1).abs() <= SAME_SIZE)
        .select("model_id", "base_model", pl.col("native_precision").alias("precision_id"), "stored_bytes")
    )
    files = STORED_FILE_SCHEMA.to_frame() if stored_files is None else stored_files
    derived = footprints.filter(pl.col("file_bytes").is_not_null()).select(
        pl.col("model_id").alias("base_model"), "precision_id", "file_bytes"
    )
    is_own = pl.col("model_id").str.split("/").list.first() == pl.col("base_model").str.split("/").list.first()
    return (
        pl.concat([quantized, files.select(quantized.columns)])
        .filter(pl.col("model_id") != pl.col("base_model"))
        .join(derived, on=["base_model", "precision_id"], how="inner")
        .filter((pl.col("stored_bytes") / pl.col("file_bytes") - 1).abs() <= PLAUSIBLE)
        .join(models.select("model_id", "downloads"), on="model_id", how="left")
        .with_columns(is_own=is_own, downloads=pl.col("downloads").fill_null(0))
        .sort("is_own", "downloads", "model_id", descending=[True, True, False])
        .unique(["base_model", "precision_id"], keep="first", maintain_order=True)
        .sort("base_model", "precision_id")
        .select(
            pl.col("base_model").alias("base_model_id"),
            "precision_id",
            pl.col("model_id").alias("sibling_model_id"),
            "stored_bytes",
        )
    )


def with_siblings(footprints: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """`footprints` with the stored bytes of siblings (SIBLING_SCHEMA) as file_bytes, basis `stored`, no band."""
    served = found.select(pl.col("base_model_id").alias("model_id"), "precision_id", _stored="stored_bytes")
    is_served = pl.col("_stored").is_not_null()
    columns = ("file_bytes", "file_bytes_low", "file_bytes_high")
    return (
        footprints.join(served, on=["model_id", "precision_id"], how="left", validate="m:1", maintain_order="left")
        .with_columns(
            *(pl.coalesce("_stored", column).alias(column) for column in columns),
            basis=pl.when(is_served).then(pl.lit("stored")).otherwise("basis"),
        )
        .drop("_stored")
    )
