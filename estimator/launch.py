"""How a configuration is started: the engine's command with the flags that the estimate assumed.

The commands are templates (warehouse/seeds/launch_template.csv); the macro launch() fills in the same ones.
"""

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

KINDS = ("command", "docker")
# Precisions that the model's own repository is served at.
_OWN = ("native", "bf16", "fp16", "fp32")
NO_REPOSITORY = '"$REPOSITORY"'  # to be set: a quantization of the model that the catalog does not know
NO_ROPE_THETA = "'\"$ROPE_THETA\"'"


def launch_lines(
    configuration: Mapping[str, Any],
    *,
    users: int,
    facts: Mapping[str, Any],
    templates: pl.DataFrame,
    defaults: Mapping[str, str],
    repositories: Mapping[str, str],
) -> dict[str, str]:
    """The command and, where there is an image, the docker line of one configuration; empty: nobody wrote a template.

    configuration: engine_id, precision_id, gpu_count, context_tokens, kv_cache_dtype, vendor, engine_version_used.
    facts: model_id, max_context_tokens, extended_context_tokens of the model. templates: the seed. defaults: the
    engine's words that the estimate assumed (utilization). repositories: precision_id → a repository that holds the
    model at it.
    """
    own = templates.filter(pl.col("engine_id") == configuration["engine_id"])
    precision, model = configuration["precision_id"], str(facts["model_id"])
    repository = model if precision in _OWN else repositories.get(precision)
    needs_flags = repository is None or configuration["engine_id"] == "mlx"
    flags = _text(own, "flags", precision) if needs_flags else ""
    name = model.rsplit("/", 1)[-1]
    context = configuration["context_tokens"]
    words = {
        "model": model,
        "repository": repository or (model if flags else NO_REPOSITORY),
        "file": f"{name}-{precision.removeprefix('gguf-').upper()}.gguf",
        "name": f"{name}-{precision}",
        "gpus": configuration["gpu_count"],
        "all_context": context * users,
        "context": context,
        "users": users,
        "kv": _text(own, "kv_8" if configuration["kv_cache_dtype"] == "fp8" else "kv_16"),
        "flags": flags + _extension(own, facts, context),
        "utilization": defaults.get("gpu_memory_utilization", ""),
        "version": configuration["engine_version_used"] or "",
    }
    told = {}
    for kind in KINDS:
        line = _text(own, kind, vendor=configuration["vendor"])
        for word, value in words.items():
            line = line.replace(f"{{{word}}}", str(value))
        if line:
            told[kind] = line
    return told


def _extension(templates: pl.DataFrame, facts: Mapping[str, Any], context: int) -> str:
    """What a context beyond the configured one adds: its documented scaling has to be asked for."""
    limit = facts["max_context_tokens"]
    if not limit or context <= limit:
        return ""
    words = {"factor": f"{math.ceil(facts['extended_context_tokens'] / limit)}.0", "original": limit}
    line = _text(templates, "extended").replace("{rope_theta}", NO_ROPE_THETA)
    for word, value in words.items():
        line = line.replace(f"{{{word}}}", str(value))
    return line


def _text(templates: pl.DataFrame, kind: str, precision_id: str | None = None, vendor: str | None = None) -> str:
    """The template of that kind, for any precision or vendor or for that one; empty where there is none."""
    found = templates.filter(
        pl.col("kind") == kind,
        pl.col("precision_id").is_null() | pl.col("precision_id").eq_missing(pl.lit(precision_id)),
        pl.col("vendor").is_null() | pl.col("vendor").eq_missing(pl.lit(vendor)),
    )
    return str(found["template"][0]) if found.height else ""
