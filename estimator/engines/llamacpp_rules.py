"""llama.cpp's rules by build, as tables, and the reading of an engine version as a build.

The tables are seeds, one fact a row with its source: `llamacpp_rule` (defaults and layouts since a build),
`llamacpp_build` (which build came out when), `llamacpp_cache_type` (names of KV types), `llamacpp_overhead` (device
memory outside llama.cpp's own buffers) and `llamacpp_model_rule` (models that llama.cpp treats in its own way).
"""

import re
from collections.abc import Mapping
from datetime import date
from itertools import pairwise

import polars as pl

from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import conform, schema

RULE_SCHEMA = schema(parameter=pl.String, usage=pl.String, since_build=pl.Int64, value=pl.Int64)
BUILD_SCHEMA = schema(build=pl.Int64, released_on=pl.Date)
CACHE_TYPE_SCHEMA = schema(kv_cache_dtype=pl.String, ggml_type=pl.String)
OVERHEAD_SCHEMA = schema(
    part=pl.String,  # context, display
    vendor=pl.String,  # blank: any vendor without a row of its own
    gpu_pattern=pl.String,  # regular expression on gpu_id; blank: any
    low_bytes=pl.Int64,
    value_bytes=pl.Int64,
    high_bytes=pl.Int64,
)
MODEL_RULE_SCHEMA = schema(parameter=pl.String, model_type=pl.String, model_pattern=pl.String)

_TABLES = {
    "llamacpp_rule": RULE_SCHEMA,
    "llamacpp_build": BUILD_SCHEMA,
    "llamacpp_cache_type": CACHE_TYPE_SCHEMA,
    "llamacpp_overhead": OVERHEAD_SCHEMA,
    "llamacpp_model_rule": MODEL_RULE_SCHEMA,
}

_BUILD = re.compile(r"^\s*b?(\d{1,5})\s*$")
_DATE = re.compile(r"^\s*(\d{4})-(\d{2})(?:-(\d{2}))?\s*$")
_MID_MONTH = 15  # a month without a day


class LlamacppRuleError(FitmartError):
    """A llama.cpp rule table is missing."""


def rule_tables(rules: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The five tables, checked; a missing one raises LlamacppRuleError."""
    missing = sorted(_TABLES.keys() - rules.keys())
    if missing:
        raise LlamacppRuleError(f"no rule table {', '.join(missing)} (warehouse/seeds)")
    return {name: conform(rules[name], want, stage=name) for name, want in _TABLES.items()}


def parse_build(text: str | None, builds: pl.DataFrame) -> int:
    """`b4500`, `4500`, `2025-01-20` or `2025-01` → the build; blank or unreadable → the newest of `builds`.

    A date between two dated builds takes its share of the way; one before the first or after the last takes that one.
    """
    known = builds.select("build", "released_on").sort("released_on").rows()
    newest = int(known[-1][0])
    if match := _BUILD.match(text or ""):
        return int(match[1])
    match = _DATE.match(text or "")
    if match is None:
        return newest
    try:
        asked = date(int(match[1]), int(match[2]), int(match[3] or _MID_MONTH))
    except ValueError:
        return newest
    if asked <= known[0][1]:
        return int(known[0][0])
    for (build, on), (next_build, next_on) in pairwise(known):
        if asked <= next_on:
            return int(build + (next_build - build) * (asked - on).days // (next_on - on).days)
    return newest


def eras(asked: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row for each distinct engine_version, usage of `asked`, with the build and the rules in force.

    Columns: engine_version, usage, build, engine_version_used, and one Int64 a parameter of `llamacpp_rule`. A rule for
    that usage goes before one for any. A blank usage is `server`.
    """
    rows = []
    for version, usage in asked.select("engine_version", "usage").unique().rows():
        build = parse_build(version, tables["llamacpp_build"])
        in_force = (
            tables["llamacpp_rule"]
            .filter(
                pl.col("since_build") <= build, pl.col("usage").is_null() | (pl.col("usage") == (usage or "server"))
            )
            .sort("since_build", pl.col("usage").is_not_null())
        )
        values = dict(in_force.select("parameter", "value").iter_rows())
        rows.append({"engine_version": version, "usage": usage, "build": build} | values)
    parameters = tables["llamacpp_rule"]["parameter"].unique(maintain_order=True)
    shape = {"engine_version": pl.String, "usage": pl.String, "build": pl.Int64} | dict.fromkeys(parameters, pl.Int64)
    return pl.DataFrame(rows, schema=shape).with_columns(engine_version_used=pl.format("b{}", "build"))


def overheads(gpus: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """gpu_id, vendor, overhead_bytes with `_low`, `_high`: what a device loses outside llama.cpp's buffers.

    `gpus`: distinct gpu_id, vendor. A vendor's own row replaces the general one of the same part.
    """
    rules = tables["llamacpp_overhead"].with_row_index("rule")
    reach = (
        gpus.select("gpu_id", "vendor")
        .unique()
        .join(rules.rename({"vendor": "rule_vendor"}), how="cross")
        .filter(
            pl.col("rule_vendor").is_null() | (pl.col("rule_vendor") == pl.col("vendor")),
            pl.col("gpu_pattern").is_null() | pl.col("gpu_id").str.contains(pl.col("gpu_pattern")),
        )
        .sort(pl.col("rule_vendor").is_null(), "rule")
        .unique(["gpu_id", "vendor", "part"], keep="first", maintain_order=True)
    )
    return reach.group_by("gpu_id", "vendor").agg(
        overhead_bytes=pl.col("value_bytes").sum(),
        overhead_bytes_low=pl.col("low_bytes").sum(),
        overhead_bytes_high=pl.col("high_bytes").sum(),
    )
