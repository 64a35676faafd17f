"""The tables that say how llama.cpp converts and quantizes a model, and the era that a request falls in.

Tables (seeds of the same names, each row with its source): `gguf_name` (checkpoint name → GGUF role), `gguf_effect`
(models and builds treated apart), `gguf_architecture` (since when files of a model type exist), `gguf_file_type`
(precision → llama.cpp file type), `gguf_rule` (a tensor's type: the first row that applies), `gguf_fallback` (where a
row is no multiple of the block), `gguf_vocabulary` (text sizes). For files whose publisher chose types by hand:
`gguf_recipe` (types fitted to published sizes) and `gguf_band` (80 % of published files lie within).
"""

from collections.abc import Mapping

import polars as pl

from fitmart.estimator.engines.llamacpp_rules import BUILD_SCHEMA, MODEL_RULE_SCHEMA, parse_build
from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import conform, schema

NAME_SCHEMA = schema(
    pattern=pl.String,  # regular expression on the name behind the layer, or on the whole name outside the layers
    roles=pl.String,  # GGUF tensors it becomes, '|'-separated
    split=pl.String,  # how the rows are shared among them
    kept_as=pl.String,  # a type that quantization leaves alone
)
EFFECT_SCHEMA = schema(
    effect=pl.String,
    model_types=pl.String,  # regular expression
    since_build=pl.Int64,
    until_build=pl.Int64,  # exclusive
    layers=pl.Int64,
    has_imatrix=pl.Boolean,
)
ARCHITECTURE_SCHEMA = schema(
    model_types=pl.String,  # regular expression
    files_since_build=pl.Int64,  # public files were made with this build or a later one
)
FILE_TYPE_SCHEMA = schema(
    precision_id=pl.String,
    file_type=pl.String,
    base_type=pl.String,
    head_type=pl.String,  # --output-tensor-type
    embedding_type=pl.String,  # --token-embedding-type
    maker=pl.String,  # dynamic: Unsloth's choice for each tensor; null: llama-quantize
)
FLAGS = ("is_gqa4", "is_moe", "is_moe4", "is_moe8", "is_70b", "is_falcon", "is_ragged", "has_imatrix")
RULE_SCHEMA = schema(
    rule=pl.Int64,  # the lowest that applies decides
    file_types=pl.String,  # '|'-separated; *: all
    roles=pl.String,
    since_build=pl.Int64,
    until_build=pl.Int64,
    **dict.fromkeys(FLAGS, pl.Boolean),  # null: either
    layers=pl.String,  # a bit of LAYER_BITS; null: all layers
    ggml_type=pl.String,  # base: the file type's own
)
FALLBACK_SCHEMA = schema(ggml_type=pl.String, fallback_type=pl.String)
RECIPE_SCHEMA = schema(precision_ids=pl.String, is_moe=pl.Boolean, roles=pl.String, ggml_type=pl.String)
BAND_SCHEMA = schema(
    maker=pl.String,  # dynamic, own, mixture
    is_moe=pl.Boolean,
    is_low_bit=pl.Boolean,  # base type below 4 bits
    low=pl.Float64,  # times file_bytes
    high=pl.Float64,
)
VOCABULARY_SCHEMA = schema(
    model_types=pl.String,  # regular expression
    from_tokens=pl.Int64,
    below_tokens=pl.Int64,
    token_text_bytes=pl.Float64,  # mean
    has_scores=pl.Boolean,
    merges=pl.Int64,  # null: as many as tokens
    merge_text_bytes=pl.Float64,
)
_TABLES = {
    "gguf_name": NAME_SCHEMA,
    "gguf_effect": EFFECT_SCHEMA,
    "gguf_architecture": ARCHITECTURE_SCHEMA,
    "gguf_file_type": FILE_TYPE_SCHEMA,
    "gguf_rule": RULE_SCHEMA,
    "gguf_fallback": FALLBACK_SCHEMA,
    "gguf_recipe": RECIPE_SCHEMA,
    "gguf_band": BAND_SCHEMA,
    "gguf_vocabulary": VOCABULARY_SCHEMA,
    "llamacpp_build": BUILD_SCHEMA,
    "llamacpp_model_rule": MODEL_RULE_SCHEMA,
}

# Where a layer lies, as bits; i is the layer's index, n their number, all divisions whole.
LAYER_BITS = {
    "first_2": 1,  # i < 2
    "first_4": 2,  # i < 4
    "first_sixteenth": 4,  # i < n/16
    "first_eighth": 8,  # i < n/8
    "middle": 16,  # n/8 <= i < 7n/8
    "more": 32,  # i < n/8, or i >= 7n/8, or every third between: use_more_bits()
    "counted_eighth": 64,  # i < n/8 with i counted by appearance, also in a mixture of experts
}

# Importance matrices came into use with the types that need them, in January 2024.
_IMATRIX_SINCE = 1850
# Publishers began to choose types of mixtures of experts by hand in April 2025, and of most models in 2026.
_MIXTURE_RECIPES_SINCE = 5080
_OWN_RECIPES_SINCE = 7600
FLOATS = ("F32", "F16", "BF16")


class GgufRuleError(FitmartError):
    """A GGUF rule table is missing."""


def gguf_tables(rules: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables, checked; a missing one raises GgufRuleError."""
    missing = sorted(_TABLES.keys() - rules.keys())
    if missing:
        raise GgufRuleError(f"no rule table {', '.join(missing)} (warehouse/seeds)")
    return {name: conform(rules[name], want, stage=name) for name, want in _TABLES.items()}


def requested(requests: pl.DataFrame, models: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """`requests` (model_id, precision_id, engine_version, imatrix) with what decides the types of their tensors.

    build: that of the version, and no older than the first files of the architecture. has_imatrix: as asked, else
    whether files of that time were made with one. maker: who chose the types: llama-quantize (null), Unsloth (dynamic),
    publishers with recipes of their own, as is usual for models of 2026 (own), or often so (mixture: experts since
    2025, whose center stays llama-quantize's). And the columns of `gguf_file_type`.
    """
    versions = requests["engine_version"].unique().to_list()
    builds = [parse_build(version, tables["llamacpp_build"]) for version in versions]
    read = pl.DataFrame(
        {"engine_version": versions, "build": builds}, schema={"engine_version": pl.String, "build": pl.Int64}
    )
    since = pl.col("files_since_build").fill_null(0)
    is_by_rule = pl.col("base_type").is_in(FLOATS) | (pl.col("file_type") == "Q8_0")
    is_moe = pl.col("experts").fill_null(0) > 1
    return (
        requests.join(read, on="engine_version", how="left", nulls_equal=True, validate="m:1")
        .join(_architectures(models, tables["gguf_architecture"]), on="model_id", how="left", validate="m:1")
        .join(tables["gguf_file_type"], on="precision_id", how="inner", validate="m:1")
        .with_columns(
            build=pl.max_horizontal("build", since),
            maker=pl.when(pl.col("maker").is_not_null())
            .then("maker")
            .when(is_by_rule)
            .then(None)
            .when(since >= _OWN_RECIPES_SINCE)
            .then(pl.lit("own"))
            .when(is_moe & (since >= _MIXTURE_RECIPES_SINCE))
            .then(pl.lit("mixture")),
        )
        .with_columns(has_imatrix=pl.col("imatrix").fill_null(pl.col("build") >= _IMATRIX_SINCE))
        .drop("files_since_build", "experts")
    )


def _architectures(models: pl.DataFrame, architectures: pl.DataFrame) -> pl.DataFrame:
    """model_id, experts, files_since_build (null: not known)."""
    known = (
        models.select("model_type")
        .unique()
        .join(architectures, how="cross")
        .filter(pl.col("model_type").str.contains(pl.format("^(?:{})$", "model_types")))
        .group_by("model_type")
        .agg(pl.col("files_since_build").max())
    )
    return (
        models.select("model_id", "model_type", "experts")
        .join(known, on="model_type", how="left", validate="m:1")
        .drop("model_type")
    )


def unsplit_models(model_rules: pl.DataFrame) -> pl.Expr:
    """Whether the public files of a model are older than the split of MLA's second projection (`model_id`)."""
    patterns = model_rules.filter(pl.col("parameter") == "has_unsplit_file")["model_pattern"].drop_nulls()
    return pl.any_horizontal(pl.lit(False), *(pl.col("model_id").str.contains(pattern) for pattern in patterns))


def in_force(since: str = "since_build", until: str = "until_build") -> pl.Expr:
    """Whether a rule's span of builds holds the row's `build`."""
    build = pl.col("build")
    return (pl.col(since).is_null() | (build >= pl.col(since))) & (pl.col(until).is_null() | (build < pl.col(until)))


def with_effects(cases: pl.DataFrame, effects: pl.DataFrame) -> pl.DataFrame:
    """`cases` (model_type, layers, build, has_imatrix) with one Boolean column for each effect."""
    key = ["model_type", "layers", "build", "has_imatrix"]
    wanted = effects.rename({"layers": "only_layers", "has_imatrix": "only_imatrix"})
    applies = (
        cases.select(key)
        .unique()
        .join(wanted, how="cross")
        .filter(
            pl.col("model_type").str.contains(pl.format("^(?:{})$", "model_types")),
            in_force(),
            pl.col("only_layers").is_null() | (pl.col("only_layers") == pl.col("layers")),
            pl.col("only_imatrix").is_null() | (pl.col("only_imatrix") == pl.col("has_imatrix")),
        )
        .group_by(key)
        .agg(pl.col("effect").unique().alias("applied"))
    )
    names = effects["effect"].unique(maintain_order=True)
    return (
        cases.join(applies, on=key, how="left", validate="m:1", maintain_order="left")
        .with_columns(pl.col("applied").list.contains(name).fill_null(False).alias(name) for name in names)
        .drop("applied")
    )
