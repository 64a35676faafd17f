"""vLLM's memory for a deployment: utilization × device memory − weights − activation − non-torch − graphs = KV cache.

Versions 0.5 to the newest in the rules, engines V0 and V1, model runners 1 and 2.
"""

from collections.abc import Mapping

import polars as pl

from fitmart.estimator.engines.vllm_activation import with_activation
from fitmart.estimator.engines.vllm_kv import with_pool
from fitmart.estimator.engines.vllm_pages import LAYOUT_KEY, cutlass_mla, page_layout
from fitmart.estimator.engines.vllm_refusals import refusal
from fitmart.estimator.engines.vllm_rules import VllmRules
from fitmart.estimator.engines.vllm_settings import with_settings
from fitmart.estimator.frames import ENGINE_MEMORY_SCHEMA, conform


def vllm_memory(
    deployments: pl.DataFrame,
    models: pl.DataFrame,
    tensors: pl.DataFrame,
    caches: pl.DataFrame,
    shards: pl.DataFrame,
    rules: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """Deployments → ENGINE_MEMORY_SCHEMA, one row out per row in, in the same order.

    deployments: DEPLOYMENT_SCHEMA and of the GPU vendor, gpu_name, compute_capability, torch_memory_bytes,
    is_unified_memory. models, tensors, caches: the frames of `anatomy.to_frames`. shards: row, weights_bytes (the
    fullest GPU's share). rules: the `vllm_*` seeds by name.

    users: sequences of context_tokens that fit at once, over all replicas, not capped by max_num_seqs; a model without
    caches takes max_num_seqs. Without device memory the sizes in bytes that do not need it are still given.
    """
    tables = VllmRules.of(rules)
    rows = with_settings(deployments, models, caches, tables).with_columns(is_cutlass_mla=cutlass_mla())
    rows = rows.join(
        page_layout(rows, caches), on=list(LAYOUT_KEY), how="left", nulls_equal=True, maintain_order="left"
    )
    rows = rows.join(shards.select("row", "weights_bytes"), on="row", how="left", maintain_order="left", validate="1:1")
    rows = with_activation(rows, tensors, tables)
    return conform(_with_memory(_with_band(rows, tables)), ENGINE_MEMORY_SCHEMA, stage="vllm")


def _with_band(rows: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """overhead_low_bytes, overhead_high_bytes: how far the overhead has been off, by kind of boot."""
    kind = (
        pl.when(pl.col("encoder_bytes") > 0)
        .then(pl.lit("vision"))
        .when((pl.col("engine_core") == "v0") & (pl.col("tensor_parallel") > 1))
        .then(pl.lit("v0_parallel"))
        .when(pl.col("tensor_parallel") > 1)
        .then(pl.lit("parallel"))
        .otherwise(pl.lit("single"))
    )
    overhead = pl.sum_horizontal("activation_bytes", "non_torch_bytes", "cuda_graph_bytes", ignore_nulls=False)
    rows = rows.with_columns(band=kind, overhead_bytes=overhead).join(
        rules.bands, on="band", how="left", maintain_order="left", validate="m:1"
    )
    least = pl.col("overhead_bytes") * (1 - pl.col("low_share")) - pl.col("low_bytes")
    most = pl.col("overhead_bytes") * (1 + pl.col("high_share")) + pl.col("high_bytes")
    return rows.with_columns(
        overhead_low_bytes=least.clip(lower_bound=0).cast(pl.Int64), overhead_high_bytes=most.cast(pl.Int64)
    )


def _with_memory(rows: pl.DataFrame) -> pl.DataFrame:
    """From the parts to the cache, and what is needed and taken on all GPUs."""
    left = pl.col("budget_bytes") - pl.col("weights_bytes")
    rows = with_pool(
        rows.with_columns(
            kv_available_bytes=left - pl.col("overhead_bytes"),
            kv_available_bytes_low=left - pl.col("overhead_high_bytes"),
            kv_available_bytes_high=left - pl.col("overhead_low_bytes"),
        )
    )
    fixed = pl.col("weights_bytes") + pl.col("sequence_kv_bytes")
    gpus = pl.col("gpu_count")
    # Graphs were captured outside the budget before they were reserved in it.
    outside = pl.col("graph_estimate_bytes") - pl.col("cuda_graph_bytes")
    return rows.with_columns(
        kv_cache_bytes=pl.col("blocks") * pl.col("kv_block_bytes") * gpus,
        required_bytes=(fixed + pl.col("overhead_bytes")) * gpus,
        required_bytes_low=(fixed + pl.col("overhead_low_bytes")) * gpus,
        required_bytes_high=(fixed + pl.col("overhead_high_bytes")) * gpus,
        taken_bytes=(pl.col("budget_bytes") + outside) * gpus,
        compute_buffer_bytes=pl.lit(None, pl.Int64),
        limited_by=refusal(),
    )
