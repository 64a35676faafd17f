"""What a configuration has to do: the bytes and operations of `speed`, from anatomy, footprint and device."""

import polars as pl

from fitmart.estimator.frames import conform
from fitmart.estimator.speed import WORKLOAD_SCHEMA, device_class, peak_flop_per_s

# The 3:1 mix of prompt and answer in which prices are usually blended; a grid row fills its context with it.
INPUT_SHARE = 0.75

# Caches whose attention cost grows with the square of the prompt.
_QUADRATIC = ("full", "mla", "chunked", "sliding")


def weight_bits(bits_per_weight: pl.Expr) -> pl.Expr:
    """The precision class by which measurements are grouped: 16, 8 or 4 bits."""
    return pl.when(bits_per_weight >= 12).then(16).when(bits_per_weight >= 7).then(8).otherwise(4).cast(pl.Int64)


def attention_layers(caches: pl.DataFrame) -> pl.DataFrame:
    """model_id, attention_layers: layers that compare every token with those before it."""
    return (
        caches.filter(pl.col("kind").is_in(_QUADRATIC))
        .group_by("model_id")
        .agg(attention_layers=pl.col("layer_count").sum())
    )


def with_workload(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of one configuration each → WORKLOAD_SCHEMA columns beside what they hold.

    Reads the model's facts, `weights_total_bytes`, `experts_bytes`, `vision_bytes`, `container` and
    `bits_per_weight` of its footprint, the GPU's rates, `kv_bytes_per_sequence`, `era`, and the request: batch,
    throughput_batch, input_tokens, output_tokens, cached_tokens. Layers split over GPUs (llama.cpp) work one after the
    other: then one GPU works at a time.
    """
    tower = pl.when(pl.col("container") == "gguf").then(0).otherwise(pl.col("vision_bytes").fill_null(0))
    experts = pl.col("experts_bytes").fill_null(0)
    is_layer_split = pl.col("engine_id").is_in(["llama.cpp", "mlx"])
    rows = rows.with_columns(
        device_class=device_class("vendor", "memory_type", "form_factor"),
        weight_bits=weight_bits(pl.col("bits_per_weight").fill_null(16.0)),
        dense_bytes=(pl.col("weights_total_bytes") - experts - tower).cast(pl.Float64),
        expert_bytes=experts.cast(pl.Float64),
        attention_layers=pl.col("attention_layers").fill_null(0),
        experts=pl.col("experts").fill_null(0),
        experts_per_token=pl.col("experts_per_token").fill_null(0),
        gpus=pl.when(is_layer_split).then(1).otherwise(pl.col("tensor_parallel")).cast(pl.Int64),
    ).with_columns(peak_flop_per_s=peak_flop_per_s())
    conform(rows.head(0), WORKLOAD_SCHEMA, stage="workload")
    return rows
