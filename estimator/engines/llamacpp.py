"""What llama.cpp takes on every device: model, KV and compute buffers, and the sequences that fit beside them.

Sources: the buffers that llama.cpp logs at start, and its source by build (the tables `warehouse/seeds/llamacpp_*`).
"""

from collections.abc import Mapping

import polars as pl

from fitmart.estimator.engines.grid_sums import LONGEST, distinct, usable_memory
from fitmart.estimator.engines.llamacpp_buffers import device_buffers, reserved, with_buffers
from fitmart.estimator.engines.llamacpp_fit import context_that_fits, with_fit
from fitmart.estimator.engines.llamacpp_rules import overheads, rule_tables
from fitmart.estimator.engines.llamacpp_settings import ASKED, with_device_traits, with_settings
from fitmart.estimator.frames import ENGINE_MEMORY_SCHEMA, conform

_BUDGET = ("budget_bytes", "overhead_bytes")
_NOT_OURS = ("activation_bytes", "cuda_graph_bytes", "kv_tokens")


def llamacpp_devices(
    deployments: pl.DataFrame,
    models: pl.DataFrame,
    caches: pl.DataFrame,
    gguf_tensors: pl.DataFrame,
    rules: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """The buffers device by device, as llama.cpp logs them: row, device, weights_bytes, kv_cache_bytes.

    One row for each deployment and device (0 …; HOST for what stays in host memory). The input is that of
    `llamacpp_memory`.
    """
    asked, rows = distinct(with_device_traits(deployments), ASKED, name="setting")
    settings = with_settings(asked, models, rule_tables(rules))
    return (
        rows.select("row", "setting")
        .join(device_buffers(settings, models, caches, gguf_tensors), on="setting", how="left")
        .drop("setting")
        .sort("row", "device")
    )


def llamacpp_memory(
    deployments: pl.DataFrame,
    models: pl.DataFrame,
    caches: pl.DataFrame,
    gguf_tensors: pl.DataFrame,
    rules: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """ENGINE_MEMORY_SCHEMA, one row for each of `deployments`, by `row`.

    `deployments`: DEPLOYMENT_SCHEMA and of the GPU: vendor, memory_bytes, is_unified_memory, addressable_share and,
    where known, torch_memory_bytes (null where no GPU is named). `gguf_tensors`: GGUF_TENSOR_SCHEMA of every (model,
    precision, engine_version, imatrix) asked for. `rules`: the llamacpp_* seeds by name.

    A blank n_gpu_layers puts every layer on the GPUs, whatever the era's default. One user holds one sequence of
    context_tokens; `users` is how many slots of that context fit, each with cells of its own. `kv_cache_bytes` is what
    llama.cpp reserves at the deployment's settings, the host's share included; `compute_buffer_bytes` is the largest
    device's. `weights_bytes` is the fullest GPU's model buffer; `non_torch_bytes` the context outside llama.cpp's
    buffers. `kv_available_bytes` and `sequence_kv_bytes` are those of the GPU with the least to spare.

    limited_by: weights, context, kv_cache; unsupported: a quantized V without flash attention, or a KV type that
    llama.cpp has not; unknown: no tensors for that model and precision, or no device memory.
    """
    tables = rule_tables(rules)
    rows = with_device_traits(deployments).with_columns(budget_bytes=usable_memory(deployments))
    devices = overheads(rows.select("gpu_id", "vendor").unique(), tables)
    rows = rows.join(devices, on=["gpu_id", "vendor"], how="left", nulls_equal=True, validate="m:1")

    asked, rows = distinct(rows, ASKED, name="setting")
    sized, count = with_buffers(with_settings(asked, models, tables), models, caches, gguf_tensors)
    timeless = [column for column in ASKED if column != "context_tokens"]
    any_context, rows = distinct(rows, [*timeless, *_BUDGET], name="any_context")
    unbound = any_context.with_columns(context_tokens=pl.lit(LONGEST, pl.Int64))
    settings = with_settings(unbound, models, tables)
    longest = context_that_fits(*with_buffers(settings, models, caches, gguf_tensors))
    fitted = with_fit(rows, reserved(sized, count), longest, count)
    return conform(
        fitted.with_columns(pl.lit(None, pl.Int64).alias(name) for name in _NOT_OURS),
        ENGINE_MEMORY_SCHEMA,
        stage="llamacpp_memory",
    )
