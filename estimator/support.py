"""Which engine runs which precision on which GPU, and since and until which version."""

import polars as pl

from fitmart.estimator.engines.versions import version_key

# From what serves best to what is not known: where two rows speak of one case, the first of these holds.
STATES = ("native", "weight_only", "emulated", "plugin", "unsupported", "unknown")
# The kinds of file that an engine loads (precision.csv: container); checkpoints are `hf`.
READS = {
    "vllm": ("hf", "gguf"),
    "sglang": ("hf", "gguf"),
    "tensorrt-llm": ("hf",),
    "llama.cpp": ("gguf",),
    "mlx": ("mlx", "hf"),
}
_NEVER = 2**62


def expand(engine_support: pl.DataFrame, gpus: pl.DataFrame) -> pl.DataFrame:
    """The seed's rows, one for each GPU they speak of.

    engine_support: gpu_ids joined by `|`, `*` for every GPU, `*AMD` for every one of a vendor.
    Returns engine_id, gpu_id, support_id (a precision, or the family of it), support, since_key, until_key (exclusive).
    """
    rows = engine_support.select(
        "engine_id", "support", pl.col("precision_id").alias("support_id"),
        pl.col("gpu_ids").str.split("|").alias("gpu_id"),
        version_key(pl.col("since_version")).fill_null(0).alias("since_key"),
        _until(pl.col("until_version")).alias("until_key"),
    ).explode("gpu_id", empty_as_null=True)  # fmt: skip
    named = rows.filter(~pl.col("gpu_id").str.starts_with("*"))
    star = (
        rows.filter(pl.col("gpu_id").str.starts_with("*"))
        .with_columns(vendor=pl.col("gpu_id").str.slice(1))
        .drop("gpu_id")
    )
    of_vendor = star.filter(pl.col("vendor") != "").join(gpus.select("vendor", "gpu_id"), on="vendor")
    of_all = star.filter(pl.col("vendor") == "").drop("vendor").join(gpus.select("gpu_id"), how="cross")
    columns = ["engine_id", "gpu_id", "support_id", "support", "since_key", "until_key"]
    return pl.concat([f.select(columns) for f in (named, of_vendor, of_all)])


def _until(text: pl.Expr) -> pl.Expr:
    """`0.19.x` and `0.28.0`: the first version for which the row no longer holds."""
    last_of_minor = text.str.ends_with(".x")
    key = version_key(text.str.strip_suffix(".x"))
    next_minor = version_key(text.str.replace(r"\.x$", ".9999")) + 1
    return pl.when(text.is_null()).then(_NEVER).when(last_of_minor).then(next_minor).otherwise(key)


def support_ids(precision_ids: pl.Series, known: pl.Series) -> pl.DataFrame:
    """precision_id → support_id: itself or the longest family of it (`gguf-q4_k_m` → `gguf`); else null."""
    families = set(known.unique())

    def family(precision_id: str) -> str | None:
        words = precision_id.split("-")
        names = ("-".join(words[:n]) for n in range(len(words), 0, -1))
        return next((name for name in names if name in families), None)

    ids = precision_ids.unique().drop_nulls().to_list()
    return pl.DataFrame(
        {"precision_id": ids, "support_id": [family(i) for i in ids]},
        schema={"precision_id": pl.String, "support_id": pl.String},
    )


def is_readable(precisions: pl.DataFrame) -> pl.Expr:
    """Whether engine_id loads files of precision_id at all, on whatever device."""
    container = pl.col("precision_id").replace_strict(
        precisions["precision_id"], precisions["container"], default=None, return_dtype=pl.String
    )
    return pl.any_horizontal(
        (pl.col("engine_id") == engine) & container.is_in(kinds) for engine, kinds in READS.items()
    )


def with_support(rows: pl.DataFrame, support: pl.DataFrame, precisions: pl.DataFrame) -> pl.DataFrame:
    """Add `support` (one of STATES) to rows of engine_id, gpu_id, precision_id, stored_precision_id (what `native` is)
    and engine_version_used.

    support: as `expand` gives it. Without a GPU nothing is known against it: native.
    """
    key = ["engine_id", "gpu_id", "stored_precision_id", "engine_version_used"]
    cases = rows.select(key).unique()
    ids = support_ids(cases["stored_precision_id"], support["support_id"]).rename(
        {"precision_id": "stored_precision_id"}
    )
    version = version_key(pl.col("engine_version_used")).fill_null(_NEVER - 1)
    found = (
        cases.join(ids, on="stored_precision_id", how="left")
        .join(support, on=["engine_id", "gpu_id", "support_id"], how="inner")
        .filter((pl.col("since_key") <= version) & (version < pl.col("until_key")))
        .group_by(key)
        .agg(pl.col("support").cast(pl.Enum(STATES)).min().cast(pl.String))
    )
    joined = rows.join(found, on=key, how="left", nulls_equal=True, maintain_order="left", validate="m:1")
    return joined.with_columns(
        support=pl.when(~is_readable(precisions))
        .then(pl.lit("unsupported"))
        .when(pl.col("gpu_id").is_null())
        .then(pl.lit("native"))
        .otherwise(pl.col("support").fill_null("unknown"))
    )
