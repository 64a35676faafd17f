"""Which device holds which layer: weights and cache widths of every device of a placement.

llama.cpp cuts a model between whole layers, the output matrix counting as the last one: device d of n takes the d-th
n-th of the offloaded layers (equal free memory). The token embedding stays on the host; a tied head is a second copy of
it on the output's device. With n_gpu_layers the last layers go to the GPU; with n_cpu_moe the experts of the first
layers stay on the host. Source: llama-model.cpp, load_tensors; #18148 for the order of the output layer.
"""

import polars as pl

from fitmart.estimator.engines.llamacpp_widths import WIDTHS, widths_by_layer

HOST = -1
FILE = ("model_id", "precision_id", "engine_version", "imatrix")
SHAPE = ("model_id", "mla", "is_cut", "pads_value")
PLACEMENT = (*FILE, *SHAPE[1:], "layers", "gpus", "gpu_layers", "cpu_moe", "is_output_first", "holds_row_table")
# The input side: rows are looked up on the host.
_INPUTS = ("token_embd", "token_types", "token_type_embd", "position_embd", "per_layer_token_embd")
_ROW_TABLE = "per_layer_token_embd"  # on the output's device in older builds, and wherever the file is mapped whole
_OTHER_FILES = ("vision", "audio", "mtp")
_SIZES = ("weights_bytes", "largest_bytes", "output_bytes")


def place(wanted: pl.DataFrame, models: pl.DataFrame, caches: pl.DataFrame, gguf_tensors: pl.DataFrame) -> pl.DataFrame:
    """One row for each placement and device (0 … gpus - 1, and HOST).

    `wanted`: placement (a unique number) and the columns PLACEMENT. Columns out: placement, device, weights_bytes,
    largest_bytes (largest matrix of a layer), output_bytes (the output matrix, if here), and the elements that the
    device's layers keep together: full_key, full_value, window_key, window_value (a cell), state (a sequence, F32).
    """
    of_file = gguf_tensors.filter(~pl.col("component").is_in(_OTHER_FILES))
    at = _layer_devices(wanted)
    weights = pl.concat([_repeating(at, of_file), _output(at, of_file), _inputs(at, of_file)])
    shapes = widths_by_layer(wanted.select(SHAPE).unique(), models, caches, gguf_tensors)
    widths = at.join(shapes, on=[*SHAPE, "layer"], how="inner", nulls_equal=True)
    devices = wanted.select("placement", device=pl.int_ranges(HOST, pl.col("gpus"), dtype=pl.Int64)).explode("device")
    on = ["placement", "device"]
    return (
        devices.join(
            weights.group_by(on).agg(
                pl.col("weights_bytes").sum(), pl.col("largest_bytes").max(), pl.col("output_bytes").sum()
            ),
            on=on,
            how="left",
        )
        .join(widths.group_by(on).agg(pl.col(WIDTHS).sum()), on=on, how="left")
        .with_columns(pl.col(_SIZES).fill_null(0), pl.col(WIDTHS).fill_null(0.0))
        .sort(on)
    )


def _layer_devices(wanted: pl.DataFrame) -> pl.DataFrame:
    """Every layer of every placement (the output is layer `layers`) with its device and that of its experts."""
    layers, asked = pl.col("layers"), pl.col("gpu_layers")
    offloaded = pl.min_horizontal(asked, layers + 1)
    # until #18148 the output layer moved to the GPU last: n layers asked were the last n repeating ones
    start = (layers + pl.col("is_output_first") - asked).clip(0)
    step = pl.col("layer") - pl.col("start")
    is_here = (step >= 0) & (step < pl.col("offloaded"))
    return (
        wanted.with_columns(start=start, offloaded=offloaded, layer=pl.int_ranges(0, layers + 1, dtype=pl.Int64))
        .explode("layer")
        .with_columns(device=pl.when(is_here).then(step * pl.col("gpus") // pl.col("offloaded")).otherwise(HOST))
        .with_columns(expert_device=pl.when(pl.col("layer") < pl.col("cpu_moe")).then(HOST).otherwise("device"))
    )


def _piece(device: str) -> list[pl.Expr]:
    return [pl.col("placement"), pl.col(device).alias("device"), *(pl.col(name).cast(pl.Int64) for name in _SIZES)]


def _repeating(at: pl.DataFrame, tensors: pl.DataFrame) -> pl.DataFrame:
    """The layers' own matrices; stacked experts apart, as they may lie elsewhere."""
    by_layer = (
        tensors.filter(pl.col("layer_ids").list.len() > 0)
        .select(*FILE, "layer_bytes", layer="layer_ids", is_expert=pl.col("role").str.ends_with("_exps"))
        .explode("layer")
        .group_by(*FILE, pl.col("layer").cast(pl.Int64), "is_expert")
        .agg(weights_bytes=pl.col("layer_bytes").sum(), largest_bytes=pl.col("layer_bytes").max())
    )
    placed = at.join(by_layer, on=[*FILE, "layer"], how="inner", nulls_equal=True).with_columns(
        output_bytes=0, home=pl.when("is_expert").then("expert_device").otherwise("device")
    )
    return placed.select(_piece("home"))


def _output(at: pl.DataFrame, tensors: pl.DataFrame) -> pl.DataFrame:
    """The output matrix (a tied file has none: the embedding is copied) and what else comes after the layers."""
    once = tensors.filter(pl.col("layer_ids").list.len() == 0)
    embedding = pl.col("total_bytes").filter(pl.col("role") == "token_embd").sum()
    output = pl.col("total_bytes").filter(pl.col("role") == "output").sum()
    rest = pl.col("total_bytes").filter(~pl.col("role").is_in([*_INPUTS, "output"])).sum()
    by_file = (
        once.group_by(FILE)
        .agg(output_bytes=pl.when(output > 0).then(output).otherwise(embedding), rest=rest)
        .with_columns(weights_bytes=pl.col("output_bytes") + pl.col("rest"), largest_bytes=0)
    )
    last = at.filter(pl.col("layer") == pl.col("layers"))
    return last.join(by_file, on=FILE, how="inner", nulls_equal=True).select(_piece("device"))


def _inputs(at: pl.DataFrame, tensors: pl.DataFrame) -> pl.DataFrame:
    """The input side: on the host, but for a table that the GPU holds. Matrix sizes count for products only."""
    inputs = tensors.filter(pl.col("role").is_in(_INPUTS)).select(
        *FILE, "role", weights_bytes="total_bytes", largest_bytes=0, output_bytes=0
    )
    last = at.filter(pl.col("layer") == pl.col("layers"))
    is_held = pl.col("holds_row_table") & (pl.col("role") == _ROW_TABLE)
    return (
        last.join(inputs, on=FILE, how="inner", nulls_equal=True)
        .with_columns(home=pl.when(is_held).then("device").otherwise(HOST))
        .select(_piece("home"))
    )
