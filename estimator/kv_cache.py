"""What one sequence keeps, from the architecture alone: bytes at a context, and the pieces they are linear in.

A cache holds elements_per_token × (min(T, window) // tokens_per_entry) + fixed_elements in each of its layers. Keys
and values take the KV precision (they may differ: "q8_0/q4_0" is keys/values); recurrent and convolution states stay
16-bit in every engine's minimum. Engines reserve more (blocks, padding, fp32 states): see the engine modules.
"""

import polars as pl
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import conform, schema

STATE_BYTES = 2
# (bytes, for so many elements); nvfp4: 4 bits and an 8-bit scale per 16
_PLAIN = {"bf16": (2, 1), "f16": (2, 1), "f32": (4, 1), "fp8": (1, 1), "int8": (1, 1), "nvfp4": (9, 16)}
_GGML = ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
KV_PRECISIONS = (*_PLAIN, *_GGML)
# Other words for them in the engines' own options.
KV_ALIASES = {
    **dict.fromkeys(("fp16", "float16", "half"), "f16"),
    **dict.fromkeys(("fp32", "float32", "float"), "f32"),
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "fp8_inc"), "fp8"),
    "bfloat16": "bf16",
}

WANTED_SCHEMA = schema(model_id=pl.String, context_tokens=pl.Int64, kv_precision=pl.String)


class KvPrecisionError(FitmartError):
    """A KV cache precision that no engine has."""


def kv_element_bytes(kv_precision: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """((key bytes, per key elements), (value bytes, per value elements)) of a KV precision id.

    ggml types count their block scales (q8_0: 34 bytes for 32 elements); `K/V` names keys and values apart.
    """
    key, _, value = kv_precision.partition("/")
    return _element_bytes(key, kv_precision), _element_bytes(value or key, kv_precision)


def _element_bytes(name: str, whole: str) -> tuple[int, int]:
    name = KV_ALIASES.get(name, name)
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _GGML:
        elements, size = GGML_QUANT_SIZES[GGMLQuantizationType[name.upper()]]
        return size, elements
    known = ", ".join(KV_PRECISIONS)
    raise KvPrecisionError(f"unknown KV cache precision {whole!r}; known: {known}, or keys/values as K/V")


def precision_frame(kv_precisions: pl.Series) -> pl.DataFrame:
    """One row a distinct id: kv_precision, key_bytes, key_per, value_bytes, value_per (bytes for so many elements)."""
    rows = []
    for name in kv_precisions.unique().drop_nulls().sort().to_list():
        (key, key_per), (value, value_per) = kv_element_bytes(name)
        rows.append((name, key, key_per, value, value_per))
    columns = schema(
        kv_precision=pl.String, key_bytes=pl.Int64, key_per=pl.Int64, value_bytes=pl.Int64, value_per=pl.Int64
    )
    return pl.DataFrame(rows, schema=columns, orient="row")


def _value_share() -> pl.Expr:
    """Elements a token that are values; latents, index keys and the rest count as keys."""
    return pl.col("kv_heads") * pl.col("value_dim")


def kv_elements(caches: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """Elements one sequence keeps, by (model_id, context_tokens): key_elements, value_elements, state_elements.

    `caches`: CACHE_SCHEMA. `wanted`: model_id, context_tokens. Models without a cache (encoders) keep nothing.
    """
    pairs = wanted.select("model_id", "context_tokens").unique()
    held = pl.min_horizontal("context_tokens", pl.col("window_tokens").fill_null(pl.col("context_tokens")))
    entries = held // pl.col("tokens_per_entry") * pl.col("layer_count")
    summed = (
        pairs.join(caches, on="model_id", how="inner")
        .group_by("model_id", "context_tokens")
        .agg(
            key_elements=((pl.col("elements_per_token") - _value_share()) * entries).sum(),
            value_elements=(_value_share() * entries).sum(),
            state_elements=(pl.col("fixed_elements") * pl.col("layer_count")).sum(),
        )
    )
    filled = pairs.join(summed, on=["model_id", "context_tokens"], how="left")
    return filled.with_columns(pl.col("key_elements", "value_elements", "state_elements").fill_null(0))


def kv_minimum_bytes(caches: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """`wanted` (model_id, context_tokens, kv_precision; any further columns) with `minimum_bytes`, in its own order.

    The least an engine could hold for one sequence of that length: attention, indexer and states. Raises
    KvPrecisionError for an unknown precision.
    """
    conform(wanted.select(WANTED_SCHEMA.names()), WANTED_SCHEMA, stage="kv_minimum_bytes")
    elements = kv_elements(caches, wanted)
    precisions = precision_frame(wanted["kv_precision"])
    return (
        wanted.join(elements, on=["model_id", "context_tokens"], how="left", maintain_order="left")
        .join(precisions, on="kv_precision", how="left", maintain_order="left")
        .with_columns(
            minimum_bytes=pl.col("key_elements") * pl.col("key_bytes") // pl.col("key_per")
            + pl.col("value_elements") * pl.col("value_bytes") // pl.col("value_per")
            + pl.col("state_elements") * STATE_BYTES
        )
        .drop("key_elements", "value_elements", "state_elements", "key_bytes", "key_per", "value_bytes", "value_per")
    )


# ---- pieces: contexts between which a sequence grows linearly ------------------------------------------------------ #


def segments(caches: pl.DataFrame) -> pl.DataFrame:
    """Per model the context intervals in which its elements grow linearly, sorted.

    Columns: model_id, from_tokens (0, then each window), key_base and value_base (elements at from_tokens), key_slope
    and value_slope (elements a further token), state_elements. Compressed entries count at their mean rate.
    """
    rate = pl.col("layer_count") / pl.col("tokens_per_entry")
    parts = caches.select(
        "model_id",
        "window_tokens",
        key=(pl.col("elements_per_token") - _value_share()) * rate,
        value=_value_share() * rate,
        state=pl.col("fixed_elements") * pl.col("layer_count"),
    )
    starts = pl.concat(
        [
            parts.select("model_id", from_tokens=pl.lit(0, dtype=pl.Int64)),
            parts.filter(pl.col("window_tokens").is_not_null()).select("model_id", from_tokens="window_tokens"),
        ]
    ).unique()
    capped = pl.min_horizontal("from_tokens", pl.col("window_tokens").fill_null(pl.col("from_tokens")))
    grows = (pl.col("window_tokens").is_null() | (pl.col("window_tokens") > pl.col("from_tokens"))).cast(pl.Float64)
    return (
        starts.join(parts, on="model_id", how="inner")
        .group_by("model_id", "from_tokens")
        .agg(
            key_base=(pl.col("key") * capped).sum(),
            value_base=(pl.col("value") * capped).sum(),
            key_slope=(pl.col("key") * grows).sum(),
            value_slope=(pl.col("value") * grows).sum(),
            state_elements=pl.col("state").sum(),
        )
        .sort("model_id", "from_tokens")
    )


def segment_bytes(pieces: pl.DataFrame, kv_precisions: pl.Series) -> pl.DataFrame:
    """`segments` in bytes, once for each precision: base_bytes (states included) and bytes_per_token, Float64.

    Sorted by model_id, kv_precision, base_bytes: ready for asof joins on from_tokens or on base_bytes.
    """
    key = pl.col("key_bytes") / pl.col("key_per")
    value = pl.col("value_bytes") / pl.col("value_per")
    return (
        pieces.join(precision_frame(kv_precisions), how="cross")
        .select(
            "model_id",
            "kv_precision",
            "from_tokens",
            base_bytes=pl.col("key_base") * key + pl.col("value_base") * value + pl.col("state_elements") * STATE_BYTES,
            bytes_per_token=pl.col("key_slope") * key + pl.col("value_slope") * value,
        )
        .sort("model_id", "kv_precision", "from_tokens")
    )


def longest_context(caches: pl.DataFrame, budgets: pl.DataFrame) -> pl.DataFrame:
    """`budgets` (model_id, kv_precision, budget_bytes; any further columns) with `context_tokens`, in its own order.

    The longest sequence whose minimum fits the budget: null where nothing bounds it (no cache, or only states and
    windows), -1 where even an empty one does not fit.
    """
    pieces = segment_bytes(segments(caches), budgets["kv_precision"]).with_columns(
        at_bytes=pl.col("base_bytes").ceil().cast(pl.Int64)
    )
    keys = ["model_id", "kv_precision"]
    found = (
        budgets.with_row_index("_row")
        .sort("budget_bytes")
        .join_asof(
            pieces.sort("at_bytes"),
            left_on="budget_bytes",
            right_on="at_bytes",
            by=keys,
            check_sortedness=False,
        )
    )
    room = (pl.col("budget_bytes") - pl.col("base_bytes")) / pl.col("bytes_per_token")
    tokens = pl.col("from_tokens") + room.floor().cast(pl.Int64, strict=False)
    return (
        found.with_columns(
            context_tokens=pl.when(pl.col("base_bytes").is_null())
            .then(pl.when(pl.col("model_id").is_in(pieces["model_id"].implode())).then(-1).otherwise(None))
            .when(pl.col("bytes_per_token") > 0)
            .then(tokens)
            .otherwise(None)
            .cast(pl.Int64)
        )
        .sort("_row")
        .drop("_row", "from_tokens", "base_bytes", "bytes_per_token", "at_bytes")
    )
