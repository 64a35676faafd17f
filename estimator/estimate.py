"""One path from a configuration to its answer: the grid, the scenarios, the command line and the tests call this."""

from collections.abc import Callable

import polars as pl

from fitmart.estimator.engines.llamacpp import llamacpp_devices, llamacpp_memory
from fitmart.estimator.engines.mlx import mlx_memory
from fitmart.estimator.engines.servers import server_memory
from fitmart.estimator.engines.versions import version_key
from fitmart.estimator.engines.vllm import vllm_memory
from fitmart.estimator.fit import with_verdict
from fitmart.estimator.footprint import footprint
from fitmart.estimator.frames import DEPLOYMENT_SCHEMA, conform
from fitmart.estimator.gguf_types import gguf_tensors
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.shards import weight_shards
from fitmart.estimator.support import with_support

_FOOTPRINT_KEY = ["model_id", "precision_id", "engine_version", "imatrix"]
# What the engines' rules ask of a GPU.
_ENGINE_GPU = (
    "gpu_id", "name", "vendor", "compute_capability", "memory_bytes", "torch_memory_bytes", "is_unified_memory",
    "addressable_share",
)  # fmt: skip
_SHARD_KEY = ["model_id", "precision_id", "tensor_parallel", "pipeline_parallel", "expert_parallel"]


def with_gpu(deployments: pl.DataFrame, gpus: pl.DataFrame) -> pl.DataFrame:
    """Deployments and what is known of their GPU; all null where none is named."""
    devices = gpus.rename({"name": "gpu_name"})
    return deployments.join(devices, on="gpu_id", how="left", maintain_order="left", validate="m:1")


def in_devices(deployments: pl.DataFrame, gpus: pl.DataFrame) -> pl.DataFrame:
    """Deployments as an engine sees them: a card of several devices is so many GPUs, each with its own memory."""
    cards = gpus.filter(pl.col("device_count") > 1).select(
        "gpu_id", "device_count", one=pl.coalesce("torch_memory_bytes", "memory_bytes") // pl.col("device_count")
    )
    rows = deployments.join(cards, on="gpu_id", how="left", maintain_order="left", validate="m:1")
    is_split = pl.col("device_count").is_not_null() & pl.col("device_memory_bytes").is_null()
    times = pl.when(is_split).then("device_count").otherwise(1)
    return rows.with_columns(
        pl.col("gpu_count", "tensor_parallel") * times, device_memory_bytes=pl.coalesce("device_memory_bytes", "one")
    ).select(deployments.columns)


def engine_memory(deployments: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """ENGINE_MEMORY_SCHEMA, one row for each deployment (DEPLOYMENT_SCHEMA), each by its own engine's rules.

    `deployments` count devices (`in_devices`)."""
    devices = reference.gpus.select(_ENGINE_GPU)
    rows = with_gpu(conform(deployments, DEPLOYMENT_SCHEMA, stage="estimate"), devices)
    parts = [
        _ENGINES[str(engine)](part, models, reference)
        for (engine,), part in rows.partition_by("engine_id", as_dict=True, maintain_order=True).items()
    ]
    return pl.concat(parts)


def _with_version(rows: pl.DataFrame, reference: Reference) -> pl.DataFrame:
    """engine_version_used of the engines whose rules have no eras: the version asked for, else the newest known."""
    newest = dict(reference.rules["engine"].select("engine_id", "version").drop_nulls().iter_rows())
    asked = pl.when(version_key(pl.col("engine_version")).is_not_null()).then("engine_version")
    known = pl.col("engine_id").replace_strict(newest, default=None, return_dtype=pl.String)
    return rows.with_columns(engine_version_used=pl.coalesce("engine_version_used", asked, known))


def _shards(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """row, weights_bytes: the fullest GPU's share; of a GGUF an equal share."""
    asked = rows.select("row", "model_id", "precision_id", "tensor_parallel", "pipeline_parallel").with_columns(
        expert_parallel=pl.lit(1, pl.Int64)
    )
    wanted = asked.select(_SHARD_KEY).unique()
    shares = weight_shards(models.models, models.tensors, reference.precisions, wanted)
    sized = asked.join(shares, on=_SHARD_KEY, how="left", validate="m:1").select("row", "weights_bytes")
    gguf = rows.join(
        reference.precisions.filter(container="gguf").select("precision_id"), on="precision_id", how="semi"
    )
    if gguf.is_empty():
        return sized
    # Servers keep a GGUF's blocks as they are and cut every matrix by rank.
    whole = gguf.join(footprints(gguf, models, reference), on=_FOOTPRINT_KEY, how="left", nulls_equal=True)
    equal = (pl.col("weights_total_bytes") / (pl.col("tensor_parallel") * pl.col("pipeline_parallel"))).ceil()
    of_file = whole.select("row", share=equal.cast(pl.Int64))
    return sized.join(of_file, on="row", how="left", validate="1:1").select(
        "row", weights_bytes=pl.coalesce("weights_bytes", "share")
    )


def _vllm(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    shards = _shards(rows, models, reference)
    return vllm_memory(rows, models.models, models.tensors, models.caches, shards, reference.rules)


def _server(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    return server_memory(rows, models.models, models.caches, _shards(rows, models, reference), reference.rules)


def _llamacpp(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    return llamacpp_memory(rows, models.models, models.caches, _gguf_tensors(rows, models, reference), reference.rules)


def _gguf_tensors(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    wanted = rows.select(_FOOTPRINT_KEY).unique()
    return gguf_tensors(models.models, models.tensors, reference.precisions, wanted, rules=reference.rules)


def llamacpp_device_buffers(deployments: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """row, device, weights_bytes, kv_cache_bytes of llama.cpp deployments (DEPLOYMENT_SCHEMA), device by device."""
    rows = with_gpu(in_devices(deployments, reference.gpus), reference.gpus)
    tensors = _gguf_tensors(rows, models, reference)
    return llamacpp_devices(rows, models.models, models.caches, tensors, reference.rules)


def _mlx(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    return mlx_memory(rows, models.models, models.caches, _shards(rows, models, reference), reference.rules)


_ENGINES: dict[str, Callable[[pl.DataFrame, Models, Reference], pl.DataFrame]] = {
    "vllm": _vllm,
    "sglang": _server,
    "tensorrt-llm": _server,
    "llama.cpp": _llamacpp,
    "mlx": _mlx,
}
ENGINES = tuple(_ENGINES)


def footprints(deployments: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """The footprint of each distinct model, precision, engine version and imatrix of `deployments`."""
    wanted = deployments.select(_FOOTPRINT_KEY).unique(maintain_order=True)
    return footprint(models.models, models.tensors, reference.precisions, wanted, rules=reference.rules)


def judge(deployments: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """Memory, support, verdict and reason of each deployment (DEPLOYMENT_SCHEMA), in the same order.

    Every model_id is in `models`, every precision_id and gpu_id in `reference` (or null). Adds ENGINE_MEMORY_SCHEMA,
    `support`, `verdict`, `limited_by` and `headroom_bytes`; without joins that only other figures need: for the grid.
    """
    limits = models.models.select(
        "model_id",
        "native_precision",
        extended_context_tokens=pl.coalesce("extended_context_tokens", "max_context_tokens"),
    )
    seen = in_devices(deployments, reference.gpus)
    memory = engine_memory(seen, models, reference)
    rows = seen.join(memory, on="row", how="left", validate="1:1", maintain_order="left").join(
        limits, on="model_id", how="left", validate="m:1", maintain_order="left"
    )
    is_native = pl.col("precision_id") == "native"
    rows = rows.with_columns(stored_precision_id=pl.when(is_native).then("native_precision").otherwise("precision_id"))
    judged = with_verdict(with_support(_with_version(rows, reference), reference.support, reference.precisions))
    as_asked = deployments.select("gpu_count", "tensor_parallel", "device_memory_bytes").get_columns()
    return judged.with_columns(as_asked).drop("native_precision", "stored_precision_id", "extended_context_tokens")


def with_facts(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """Judged rows and all that is known of their GPU, their model and the footprint of their weights.

    `error`: why the weights have no size.
    """
    sizes = footprints(rows, models, reference)
    return (
        with_gpu(rows, reference.gpus)
        .join(models.models, on="model_id", how="left", validate="m:1", maintain_order="left")
        .join(sizes, on=_FOOTPRINT_KEY, how="left", nulls_equal=True, validate="m:1", maintain_order="left")
    )
