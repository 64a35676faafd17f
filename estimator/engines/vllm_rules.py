"""vLLM's rules by version, as tables; and one wide row of them for each (version, engine core) asked for.

The tables are seeds, one rule a row with its source: `vllm_rule` (scalars), `vllm_batch_default` (batch and sequences
by device), `vllm_runner` (who runs on model runner 2), `vllm_overhead` (bytes beside weights and KV), `vllm_vision`
(the largest image of a family) and `vllm_band` (how far the overhead has been off). A span is since_version ≤ v <
until_version; a blank end is open.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from fitmart.estimator.engines.versions import parse_version
from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import conform, schema

RULE_SCHEMA = schema(
    parameter=pl.String, engine_core=pl.String, since_version=pl.String, until_version=pl.String, value=pl.Float64
)
BATCH_SCHEMA = schema(
    parameter=pl.String,
    since_version=pl.String,
    until_version=pl.String,
    min_memory_bytes=pl.Int64,
    name_pattern=pl.String,  # regular expression on the lower-case GPU name
    name_excluded=pl.String,
    usage=pl.String,
    value=pl.Int64,
)
RUNNER_SCHEMA = schema(
    since_version=pl.String,
    until_version=pl.String,
    architecture=pl.String,
    is_moe_allowed=pl.Boolean,
    is_recurrent_allowed=pl.Boolean,
    is_quantized_allowed=pl.Boolean,
)
OVERHEAD_SCHEMA = schema(
    parameter=pl.String,
    engine_core=pl.String,
    since_version=pl.String,
    until_version=pl.String,
    min_tensor_parallel=pl.Int64,
    min_capability=pl.Float64,
    value_bytes=pl.Int64,
)
VISION_SCHEMA = schema(
    model_type=pl.String,
    largest_item_tokens=pl.Int64,  # of one image, as the processor allows it
    patches_per_token=pl.Int64,
    hidden_copies=pl.Int64,  # hidden states of a patch alive at the tower's peak
)
BAND_SCHEMA = schema(
    band=pl.String, low_share=pl.Float64, high_share=pl.Float64, low_bytes=pl.Int64, high_bytes=pl.Int64
)

_TABLES = {
    "vllm_rule": RULE_SCHEMA,
    "vllm_batch_default": BATCH_SCHEMA,
    "vllm_runner": RUNNER_SCHEMA,
    "vllm_overhead": OVERHEAD_SCHEMA,
    "vllm_vision": VISION_SCHEMA,
    "vllm_band": BAND_SCHEMA,
}
_OPEN = 10**12


class VllmRuleError(FitmartError):
    """The rule tables lack a rule for a version, or hold two."""


@dataclass(frozen=True, slots=True)
class VllmRules:
    """The tables with their spans as numbers (`since`, `until`), and the versions they speak of."""

    scalars: pl.DataFrame
    batches: pl.DataFrame
    runners: pl.DataFrame
    overheads: pl.DataFrame
    visions: pl.DataFrame
    bands: pl.DataFrame
    oldest: int
    newest: int

    @classmethod
    def of(cls, rules: Mapping[str, pl.DataFrame]) -> "VllmRules":
        """From the seeds by name; columns beyond the schemas above (notes, sources) are ignored."""
        missing = sorted(set(_TABLES) - set(rules))
        if missing:
            raise VllmRuleError(f"vLLM rules: table {missing[0]} is missing")
        tables = {name: conform(rules[name], want, stage=name) for name, want in _TABLES.items()}
        spanned = {name: _with_span(t) for name, t in tables.items() if "since_version" in t.columns}
        since = spanned["vllm_rule"]["since"]
        return cls(
            scalars=spanned["vllm_rule"],
            batches=spanned["vllm_batch_default"],
            runners=spanned["vllm_runner"],
            overheads=spanned["vllm_overhead"],
            visions=tables["vllm_vision"],
            bands=tables["vllm_band"],
            oldest=int(since.to_numpy().min()),
            newest=int(since.to_numpy().max()),
        )


def _with_span(table: pl.DataFrame) -> pl.DataFrame:
    """`since_version`, `until_version` → `since`, `until` (version keys)."""
    keys = {v: parse_version(v) for c in ("since_version", "until_version") for v in table[c].drop_nulls().unique()}
    return table.with_columns(
        since=pl.col("since_version").replace_strict(keys, default=0, return_dtype=pl.Int64),
        until=pl.col("until_version").replace_strict(keys, default=_OPEN, return_dtype=pl.Int64),
    ).drop("since_version", "until_version")


def holds() -> pl.Expr:
    """Whether a joined rule's span and core cover the row's `version_key` and `engine_core`."""
    inside = (pl.col("since") <= pl.col("version_key")) & (pl.col("version_key") < pl.col("until"))
    return inside & (pl.col("rule_core").is_null() | (pl.col("rule_core") == pl.col("engine_core")))


def scalar_rules(rules: VllmRules, eras: pl.DataFrame) -> pl.DataFrame:
    """One row per distinct (version_key, engine_core) of `eras`, one column per parameter [Float64]."""
    keys = eras.select("version_key", "engine_core").unique()
    table = rules.scalars.rename({"engine_core": "rule_core"})
    found = keys.join(table, how="cross").filter(holds())
    index = ["version_key", "engine_core"]
    if found.select(*index, "parameter").is_duplicated().any():
        raise VllmRuleError("vLLM rules: two values of one parameter for one version")
    wide = found.pivot(on="parameter", index=index, values="value")
    parameters = rules.scalars["parameter"].unique().sort()
    for name in parameters:
        if name not in wide.columns or wide[name].null_count():
            raise VllmRuleError(f"vLLM rules: no value of {name} for some version")
    return wide.select(*index, *parameters)
