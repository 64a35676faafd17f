"""One path from a configuration to its answer: the grid, the scenarios, the command line and the tests call this."""

from collections.abc import Callable

import polars as pl

from fitmart.estimator.engines.llamacpp import llamacpp_memory
from fitmart.estimator.engines.mlx import mlx_memory
from fitmart.estimator.engines.servers import server_memory
from fitmart.estimator.engines.vllm import vllm_memory
from fitmart.estimator.fit import with_verdict
from fitmart.estimator.footprint import footprint
from fitmart.estimator.frames import DEPLOYMENT_SCHEMA, conform
from fitmart.estimator.gguf_types import gguf_tensors
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.shards import weight_shards
from fitmart.estimator.support import with_support

_FOOTPRINT_KEY = ["model_id", "precision_id", "engine_version", "imatrix"]
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
    rows = with_gpu(conform(deployments, DEPLOYMENT_SCHEMA, stage="estimate"), reference.gpus)
    parts = [
        _ENGINES[str(engine)](part, models, reference)
        for (engine,), part in rows.partition_by("engine_id", as_dict=True, maintain_order=True).items()
    ]
    return pl.concat(parts)


def _shards(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """row, weights_bytes: the fullest GPU's share."""
    asked = rows.select("row", "model_id", "precision_id", "tensor_parallel", "pipeline_parallel").with_columns(
        expert_parallel=pl.lit(1, pl.Int64)
    )
    wanted = asked.select(_SHARD_KEY).unique()
    shares = weight_shards(models.models, models.tensors, reference.precisions, wanted)
    return asked.join(shares, on=_SHARD_KEY, how="left", validate="m:1").select("row", "weights_bytes")


def _vllm(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    shards = _shards(rows, models, reference)
    return vllm_memory(rows, models.models, models.tensors, models.caches, shards, reference.rules)


def _server(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    return server_memory(rows, models.models, models.caches, _shards(rows, models, reference), reference.rules)


def _llamacpp(rows: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    wanted = rows.select(_FOOTPRINT_KEY).unique()
    tensors = gguf_tensors(models.models, models.tensors, reference.precisions, wanted, rules=reference.rules)
    return llamacpp_memory(rows, models.models, models.caches, tensors, reference.rules)


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
    judged = with_verdict(with_support(rows, reference.support))
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
