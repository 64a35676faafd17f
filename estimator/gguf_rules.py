"""The tables that say how llama.cpp converts and quantizes a model, and the era that a request falls in.

Tables (seeds of the same names, each row with its source): `gguf_name` (checkpoint name → GGUF role), `gguf_effect`
(models and builds treated apart), `gguf_file_type` (precision → llama.cpp file type), `gguf_rule` (the type of a
tensor: the first row that applies), `gguf_fallback` (where a row is no multiple of the block), `gguf_vocabulary` (text
sizes).
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
FILE_TYPE_SCHEMA = schema(
    precision_id=pl.String,
    file_type=pl.String,
    base_type=pl.String,
    head_type=pl.String,  # --output-tensor-type
    embedding_type=pl.String,  # --token-embedding-type
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
    "gguf_file_type": FILE_TYPE_SCHEMA,
    "gguf_rule": RULE_SCHEMA,
    "gguf_fallback": FALLBACK_SCHEMA,
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


class GgufRuleError(FitmartError):
    """A GGUF rule table is missing."""


def gguf_tables(rules: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables, checked; a missing one raises GgufRuleError."""
    missing = sorted(_TABLES.keys() - rules.keys())
    if missing:
        raise GgufRuleError(f"no rule table {', '.join(missing)} (warehouse/seeds)")
    return {name: conform(rules[name], want, stage=name) for name, want in _TABLES.items()}


def with_build(requests: pl.DataFrame, builds: pl.DataFrame) -> pl.DataFrame:
    """`requests` with `build`, and `has_imatrix`: as asked, else whether files of that time were made with one."""
    versions = requests["engine_version"].unique().to_list()
    read = pl.DataFrame(
        {"engine_version": versions, "build": [parse_build(v, builds) for v in versions]},
        schema={"engine_version": pl.String, "build": pl.Int64},
    )
    return requests.join(
        read, on="engine_version", how="left", nulls_equal=True, validate="m:1", maintain_order="left"
    ).with_columns(has_imatrix=pl.col("imatrix").fill_null(pl.col("build") >= _IMATRIX_SINCE))


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
