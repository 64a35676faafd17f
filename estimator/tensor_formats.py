"""Which storage format each tensor of a model has at a precision."""

import polars as pl

from fitmart.estimator.formats import FORMATS

# Matrices of these components follow the precision's column of that name; anything else is `other`.
_FORMAT_COLUMN = {
    "attention": "linear_format",
    "mlp": "linear_format",
    "experts": "experts_format",
    "embedding": "embedding_format",
    "lm_head": "lm_head_format",
}
_KERNEL = r"conv_?1d|conv\.conv\."  # convolution kernels, not the projections around them
_UNQUANTIZED = ("native", "fp32", "bf16", "fp16")
# Quantizations that somebody made of another repository: it cannot be quantized again. (A model published in fp8, mxfp4
# or packed int4 in the first place is converted by the field's tools.) Unquantized, it has the shape of its base model.
_DERIVED_METHODS = (
    "awq",
    "gptq",
    "bitsandbytes",
    "auto-round",
    "aqlm",
    "hqq",
    "quip",
    "vptq",
    "exl2",
    "exl3",
    "modelopt",
)


def asked(wanted: pl.DataFrame, models: pl.DataFrame, precisions: pl.DataFrame) -> pl.DataFrame:
    """`wanted` (model_id, precision_id, …) with container, native_dtype, is_native, is_packed_source and `error`.

    error: the model or the precision is unknown, or the repository is itself a quantization and the precision another.
    """
    facts = models.select("model_id", "native_dtype", "native_precision", "quant_method", "anatomy_basis")
    known = wanted.join(facts, on="model_id", how="left", validate="m:1", maintain_order="left").join(
        precisions.select("precision_id", "container"),
        on="precision_id",
        how="left",
        validate="m:1",
        maintain_order="left",
    )
    is_native = (pl.col("precision_id") == "native") | (pl.col("precision_id") == pl.col("native_precision"))
    is_derived = pl.col("quant_method").str.to_lowercase().is_in(_DERIVED_METHODS).fill_null(False)
    return known.with_columns(
        is_native=is_native.fill_null(False),
        error=pl.when(pl.col("native_dtype").is_null())
        .then(pl.format("unknown model {}", "model_id"))
        .when(pl.col("container").is_null())
        .then(pl.format("unknown precision {}", "precision_id"))
        .when(is_derived & ~is_native & ~pl.col("precision_id").is_in(_UNQUANTIZED))
        .then(
            pl.format(
                "{} is already quantized ({}): ask for {} of its base model",
                "model_id",
                "quant_method",
                "precision_id",
            )
        ),
    )


def tensor_formats(requests: pl.DataFrame, tensors: pl.DataFrame, precisions: pl.DataFrame) -> pl.DataFrame:
    """The tensors of each request (rows of `asked` without error) with `format` and `memory_format`, one row each.

    `format` is that of the file, `memory_format` that after loading. Vectors, convolution kernels, norms, routers and
    towers are `other`. `native` means the tensor's stored format, else the model's dtype.
    """
    chosen = requests.join(precisions.drop("container"), on="precision_id", how="left", validate="m:1")
    rows = chosen.join(tensors, on="model_id", how="inner")
    is_matrix = (pl.col("columns") > 1) & ~pl.col("tensor").str.contains(_KERNEL)
    format_id = pl.col("other_format")
    for component, column in _FORMAT_COLUMN.items():
        format_id = pl.when(is_matrix & (pl.col("component") == component)).then(pl.col(column)).otherwise(format_id)
    stored = pl.coalesce("stored_format", "native_dtype")
    memory = FORMATS.select(pl.col("format_id").alias("format"), "memory_format")
    return (
        rows.with_columns(
            format=pl.when(pl.col("is_native"))
            .then(stored)
            .otherwise(pl.when(format_id == "native").then(stored).otherwise(format_id)),
            is_whole_file=pl.col("linear_format").is_in(_UNQUANTIZED) | pl.col("is_native"),
        )
        .join(memory, on="format", how="left", validate="m:1")
        .with_columns(pl.col("memory_format").fill_null(pl.col("format")))
    )
