"""What a llama.cpp deployment sets and what the build fills in, as plain values."""

from collections.abc import Mapping

import polars as pl
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from fitmart.estimator.engines.grid_sums import UNSTATED_CONTEXT
from fitmart.estimator.engines.llamacpp_rules import eras

# The columns that decide the buffers; the device's memory only says whether they fit.
ASKED = (
    "model_id",
    "precision_id",
    "engine_version",
    "imatrix",
    "usage",
    "gpu_count",
    "context_tokens",
    "kv_cache_dtype",
    "flash_attention",
    "n_ubatch",
    "n_parallel",
    "n_gpu_layers",
    "n_cpu_moe",
    "is_async",
    "is_mapped",
)
_ASYNC_VENDORS = ("NVIDIA", "AMD")  # backends with async copies and events: CUDA and HIP
_ALL_LAYERS = 2**31 - 1
_F16 = 2


def with_device_traits(deployments: pl.DataFrame) -> pl.DataFrame:
    """Add `is_async` (micro-batches in flight on several GPUs) and `is_mapped` (the device maps the whole file).

    Unified memory maps the file's whole range; so does a device nobody named, being the fuller of the two layouts.
    """
    return deployments.with_columns(
        is_async=pl.col("vendor").is_in(_ASYNC_VENDORS).fill_null(False) & (pl.col("gpu_count").fill_null(1) > 1),
        is_mapped=pl.col("is_unified_memory").fill_null(True),
    )


def _cache_types(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    rows = []
    for name, ggml_type in tables["llamacpp_cache_type"].iter_rows():
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType[ggml_type]]
        rows.append({"dtype": name, "block": block, "bytes": size, "is_quantized": block > 1})
    return pl.DataFrame(
        rows, schema={"dtype": pl.String, "block": pl.Int64, "bytes": pl.Int64, "is_quantized": pl.Boolean}
    )


def with_settings(asked: pl.DataFrame, models: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Distinct deployments (columns ASKED) with every setting resolved.

    Adds the columns of `eras` and: model facts used here; context (cells asked, before padding), context_step, slots,
    streams, ubatch, is_flash, block and bytes of the KV types (key_, value_), mla (0 expanded, 1 latent twice, 2 latent
    once), holds_row_table (the GPU has the per-layer embedding), is_cut (sliding layers hold their window only),
    pads_value, gpus, gpu_layers, cpu_moe, is_pipelined, is_refused (no such KV type, or a quantized V without flash
    attention), context_limit, projector_bytes (mmproj).
    """
    types = _cache_types(tables)
    of_model = tables["llamacpp_model_rule"]
    unsplit = of_model.filter(pl.col("parameter") == "has_unsplit_file")["model_pattern"].to_list()
    no_window = of_model.filter(pl.col("parameter") == "ignores_window")["model_type"].to_list()
    is_unsplit = pl.any_horizontal(pl.lit(False), *(pl.col("model_id").str.contains(p) for p in unsplit))
    facts = models.select(
        "model_id", "model_type", "layers", "max_context_tokens", "extended_context_tokens", "params_vision"
    ).with_columns(
        ignores_window=pl.col("model_type").is_in(no_window),
        is_unsplit=is_unsplit,
        projector_bytes=pl.col("params_vision") * _F16,
    )
    pair = pl.col("kv_cache_dtype").fill_null("f16").str.to_lowercase().str.split("/")
    has_default_context = pl.col("default_context_tokens") > 0
    own_context = pl.when(has_default_context).then("default_context_tokens").otherwise("max_context_tokens")
    slots = pl.coalesce("n_parallel", "default_slots")
    rows = (
        asked.join(facts, on="model_id", how="left", validate="m:1")
        .join(eras(asked, tables), on=["engine_version", "usage"], how="left", nulls_equal=True, validate="m:1")
        .with_columns(key_dtype=pair.list.first(), value_dtype=pair.list.last())
        .join(types.select(pl.all().name.prefix("key_")), on="key_dtype", how="left", validate="m:1")
        .join(types.select(pl.all().name.prefix("value_")), on="value_dtype", how="left", validate="m:1")
        .with_columns(
            context=pl.coalesce("context_tokens", own_context, "max_context_tokens", pl.lit(UNSTATED_CONTEXT)),
            slots=slots,
            is_flash=pl.coalesce("flash_attention", pl.col("is_flash_default") == 1),
            gpus=pl.col("gpu_count").fill_null(1),
            # llama.cpp's own word for all layers is a negative number
            gpu_layers=pl.when(pl.col("n_gpu_layers") >= 0).then("n_gpu_layers").otherwise(_ALL_LAYERS),
            cpu_moe=pl.col("n_cpu_moe").fill_null(0),
            # slots that were asked for do not share their cells
            streams=pl.when((pl.col("has_streams") == 1) & pl.col("n_parallel").is_not_null()).then(slots).otherwise(1),
        )
    )
    is_whole = pl.col("gpu_layers") > pl.col("layers")
    return rows.with_columns(
        ubatch=pl.min_horizontal(pl.coalesce("n_ubatch", "default_ubatch"), "context"),
        context_step=pl.when("is_flash").then("context_step_flash").otherwise("context_step_plain"),
        mla=pl.when("is_unsplit").then(0).otherwise("latent_mla"),
        holds_row_table=pl.col("is_mapped") | (pl.col("is_row_table_on_host") == 0),
        is_cut=(pl.col("is_window_cut") == 1) & ~pl.col("ignores_window"),
        pads_value=(pl.col("is_value_padded") == 1) & ~pl.col("is_flash"),
        is_pipelined=pl.col("is_async") & (pl.col("has_pipeline") == 1) & is_whole & (pl.col("cpu_moe") == 0),
        is_refused=(
            pl.col("key_block").is_null()
            | pl.col("value_block").is_null()
            | (pl.col("value_is_quantized") & ~pl.col("flash_attention").fill_null(True))
        ),
        context_limit=pl.coalesce("extended_context_tokens", "max_context_tokens"),
    )
