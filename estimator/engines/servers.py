"""SGLang and TensorRT-LLM: what they set aside by rule, the rest of the device for weights and KV.

SGLang leaves a reserve that grows with its prefill chunk, CUDA graphs and ranks (srt/server_args.py); TensorRT-LLM
takes a share of what is free after weights and activations (its memory reference). The numbers are `server_rule`.
"""

from collections.abc import Mapping

import polars as pl

from fitmart.estimator.engines.grid_sums import UNSTATED_CONTEXT, usable_memory
from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import ENGINE_MEMORY_SCHEMA, conform, schema
from fitmart.estimator.kv_cache import kv_minimum_bytes, longest_context

RULE_SCHEMA = schema(engine_id=pl.String, parameter=pl.String, min_memory_bytes=pl.Int64, value=pl.Float64)
# How far the reserve may be off: no boots of these engines were at hand, so the band is the reserve itself.
BAND_LOW, BAND_HIGH = 0.5, 1.5
# Words of --kv-cache-dtype (SGLang) and of KvCacheConfig.dtype (TensorRT-LLM), as KV precisions.
_KV_PRECISIONS = {"sglang": ("bf16", "f16", "fp8", "nvfp4"), "tensorrt-llm": ("bf16", "f16", "fp8", "int8", "nvfp4")}
_NOT_OURS = ("engine_version_used", "cuda_graph_bytes", "compute_buffer_bytes", "non_torch_bytes")


class ServerRuleError(FitmartError):
    """The table `server_rule` is missing, or lacks a parameter of an engine."""


def server_memory(
    deployments: pl.DataFrame,
    models: pl.DataFrame,
    caches: pl.DataFrame,
    shards: pl.DataFrame,
    rules: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """ENGINE_MEMORY_SCHEMA, one row for each of `deployments` (of one engine), by `row`.

    deployments: DEPLOYMENT_SCHEMA and of the GPU memory_bytes, torch_memory_bytes, is_unified_memory,
    addressable_share. shards: row, weights_bytes. rules: the seed `server_rule` by name. `activation_bytes` is the
    whole reserve. Heads are cut by tensor parallelism down to one a GPU; latents are on every GPU.
    """
    if "server_rule" not in rules:
        raise ServerRuleError("no rule table server_rule (warehouse/seeds)")
    facts = models.select(
        "model_id", "kv_heads", "attention_kind", "attention_heads", "max_context_tokens", "extended_context_tokens"
    )
    rows = (
        deployments.with_columns(budget_bytes=usable_memory(deployments))
        .join(shards.select("row", "weights_bytes"), on="row", how="left", validate="1:1")
        .join(facts, on="model_id", how="left", validate="m:1")
    )
    rows = _with_rules(rows, conform(rules["server_rule"], RULE_SCHEMA, stage="server_rule"))
    heads = pl.when(pl.col("attention_kind") == "mla").then(1).otherwise(pl.col("kv_heads")).fill_null(1).clip(1)
    rows = rows.with_columns(
        activation_bytes=_reserve(),
        # KV heads on one GPU over those of the model
        share=(1 / pl.min_horizontal(pl.col("tensor_parallel"), heads)),
        context_tokens=pl.coalesce("context_tokens", "max_context_tokens", pl.lit(UNSTATED_CONTEXT, pl.Int64)),
        kv_precision=pl.col("kv_cache_dtype").fill_null("bf16"),
    )
    return conform(_with_memory(_with_sequence(rows, caches), caches), ENGINE_MEMORY_SCHEMA, stage="servers")


def _with_rules(rows: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """One column a parameter: the row of the table with the largest memory that the device reaches."""
    tiers = table["min_memory_bytes"].unique().sort()
    wide = (
        pl.DataFrame({"tier": tiers})
        .join(table, how="cross")
        .filter(pl.col("min_memory_bytes") <= pl.col("tier"))
        .sort("min_memory_bytes")
        .group_by("engine_id", "tier", "parameter", maintain_order=True)
        .last()
        .pivot(on="parameter", index=["engine_id", "tier"], values="value")
    )
    tier = pl.max_horizontal(
        pl.when(pl.col("budget_bytes").fill_null(0) >= t).then(pl.lit(t, pl.Int64)) for t in tiers.to_list()
    )
    joined = rows.with_columns(tier=tier).join(wide, on=["engine_id", "tier"], how="left", validate="m:1")
    if joined["free_share"].null_count():
        raise ServerRuleError(f"server_rule: nothing for {joined['engine_id'][0]}")
    return joined


def _reserve() -> pl.Expr:
    """Bytes of one device that are neither weights nor KV."""
    ranks = pl.col("tensor_parallel") * pl.col("pipeline_parallel").fill_null(1)
    asked = (
        pl.col("reserve_base_bytes")
        + pl.col("reserve_per_chunk_token_bytes") * pl.coalesce("max_num_batched_tokens", "chunk_tokens")
        + pl.col("reserve_per_graph_sequence_bytes") * pl.coalesce("max_num_seqs", "graph_sequences")
        + pl.col("reserve_per_rank_bytes") * ranks
    )
    by_rule = pl.max_horizontal(asked, "reserve_least_bytes")
    stated = pl.col("budget_bytes") * (1 - pl.col("gpu_memory_utilization"))
    return pl.coalesce(stated, by_rule).cast(pl.Int64)


def _with_sequence(rows: pl.DataFrame, caches: pl.DataFrame) -> pl.DataFrame:
    """sequence_kv_bytes: one sequence on one GPU, in whole pages."""
    page = pl.col("page_tokens").cast(pl.Int64)
    rows = rows.with_columns(paged=(pl.col("context_tokens") + page - 1) // page * page)
    wanted = rows.select("model_id", "kv_precision", context_tokens="paged").unique()
    least = kv_minimum_bytes(caches, wanted).rename({"context_tokens": "paged"})
    joined = rows.join(least, on=["model_id", "kv_precision", "paged"], how="left", validate="m:1")
    return joined.with_columns(sequence_kv_bytes=(pl.col("minimum_bytes") * pl.col("share")).ceil().cast(pl.Int64))


def _with_memory(rows: pl.DataFrame, caches: pl.DataFrame) -> pl.DataFrame:
    def left(reserve: float) -> pl.Expr:
        free = pl.col("budget_bytes") - pl.col("weights_bytes") - pl.col("activation_bytes") * reserve
        return (free * pl.col("free_share")).cast(pl.Int64)

    rows = rows.with_columns(
        kv_available_bytes=left(1.0), kv_available_bytes_low=left(BAND_HIGH), kv_available_bytes_high=left(BAND_LOW)
    )
    budgets = rows.select(
        "row", "model_id", "kv_precision", budget_bytes=(pl.col("kv_available_bytes") / pl.col("share")).cast(pl.Int64)
    )
    longest = longest_context(caches, budgets).select("row", longest="context_tokens")
    limit = pl.coalesce("extended_context_tokens", "max_context_tokens")
    held, sequence = pl.col("kv_available_bytes").clip(0), pl.col("sequence_kv_bytes")
    parts = pl.col("weights_bytes") + sequence
    # A model without caches takes as many as the graphs are made for.
    without = (
        pl.when(pl.col("kv_available_bytes") >= 0)
        .then(pl.coalesce("max_num_seqs", "graph_sequences").clip(1))
        .otherwise(0)
    )
    at_once = pl.when(held.is_not_null()).then(pl.when(sequence > 0).then(held // sequence).otherwise(without))
    has_kv_precision = pl.any_horizontal(
        (pl.col("engine_id") == engine) & pl.col("kv_precision").is_in(known)
        for engine, known in _KV_PRECISIONS.items()
    )
    heads_do_not_divide = pl.col("attention_heads") % pl.col("tensor_parallel") != 0
    return (
        rows.join(longest, on="row", how="left", validate="1:1")
        .with_columns(pl.lit(None, ENGINE_MEMORY_SCHEMA[name]).alias(name) for name in _NOT_OURS)
        .with_columns(
            kv_block_bytes=pl.lit(1, pl.Int64),
            kv_tokens=pl.when(sequence > 0).then((held / sequence * pl.col("context_tokens")).floor().cast(pl.Int64)),
            kv_cache_bytes=held * pl.col("gpu_count"),
            users=at_once.cast(pl.Int64) * pl.col("data_parallel").fill_null(1),
            fit_context_tokens=pl.when(held.is_not_null()).then(pl.min_horizontal(pl.col("longest").clip(0), limit)),
            required_bytes=(parts + pl.col("activation_bytes")) * pl.col("gpu_count"),
            required_bytes_low=_rounded(parts + pl.col("activation_bytes") * BAND_LOW) * pl.col("gpu_count"),
            required_bytes_high=_rounded(parts + pl.col("activation_bytes") * BAND_HIGH) * pl.col("gpu_count"),
            taken_bytes=(pl.col("weights_bytes") + pl.col("activation_bytes") + held) * pl.col("gpu_count"),
            limited_by=pl.when(~has_kv_precision)
            .then(pl.lit("unsupported"))
            .when(heads_do_not_divide)
            .then(pl.lit("tp_divisibility")),
        )
    )


def _rounded(value: pl.Expr) -> pl.Expr:
    return value.round(0).cast(pl.Int64)
