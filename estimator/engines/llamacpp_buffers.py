"""The buffers of each distinct deployment: what every device holds, and how its KV cache grows."""

import polars as pl

from fitmart.estimator.engines.llamacpp_compute import compute_bytes, graph_widths
from fitmart.estimator.engines.llamacpp_placement import FILE, HOST, PLACEMENT, place
from fitmart.estimator.engines.llamacpp_widths import WIDTHS

_F32 = 4
GROWTH = ("full_bytes", "window_bytes", "state_bytes")  # of a cell, of a window's cell, of a sequence


def padded(tokens: pl.Expr, step: pl.Expr) -> pl.Expr:
    """`tokens` up to the next multiple of `step`."""
    return (tokens + step - 1) // step * step


def window_cells(cells: pl.Expr, sequences: pl.Expr | int) -> pl.Expr:
    """Cells of a sliding layer's cache: the window of each sequence in the stream and one micro-batch."""
    needed = pl.col("window").fill_null(0) * sequences + pl.col("ubatch")
    return pl.min_horizontal(cells, padded(needed, pl.col("context_step")))


def kv_bytes(cells: pl.Expr, windows: pl.Expr, suffix: str) -> pl.Expr:
    """One stream's K, V and states of the layers summed in `full_bytes<suffix>`, … [Int64]."""
    total = (
        cells * pl.col(f"full_bytes{suffix}")
        + windows * pl.col(f"window_bytes{suffix}")
        + pl.col(f"state_bytes{suffix}")
    )
    return total.ceil().cast(pl.Int64)


def with_buffers(
    settings: pl.DataFrame, models: pl.DataFrame, caches: pl.DataFrame, gguf_tensors: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """(`settings` with the columns below, number of device classes).

    A class is the devices of a placement that keep equal caches; the fullest of them counts. For class i: weights_i,
    full_bytes_i, window_bytes_i, state_bytes_i (null beyond a placement's classes). Over all GPUs: device_weights,
    weights_bytes (the fullest), full_bytes_gpus, …; over the host too: full_bytes_all, …. Further the columns of
    `graph_widths` and host_output_bytes, host_largest_bytes.
    """
    wanted, devices = _placed(settings, models, caches, gguf_tensors)
    classes, count = _classes(devices)
    is_gpu = pl.col("device") != HOST
    at_host = {name: pl.col(name).filter(~is_gpu).sum() for name in ("output_bytes", "largest_bytes")}
    totals = devices.group_by("placement").agg(
        # a sum of nothing known is null, not 0
        device_weights=pl.when(pl.col("has_tensors").first()).then(pl.col("weights_bytes").filter(is_gpu).sum()),
        host_weights=pl.when(pl.col("has_tensors").first()).then(pl.col("weights_bytes").filter(~is_gpu).sum()),
        weights_bytes=pl.col("weights_bytes").filter(is_gpu).max(),
        host_output_bytes=at_host["output_bytes"],
        host_largest_bytes=at_host["largest_bytes"],
        **{f"{name}_gpus": pl.col(name).filter(is_gpu).sum() for name in WIDTHS},
        **{f"{name}_all": pl.col(name).sum() for name in WIDTHS},
    )
    suffixes = [*(f"_{i}" for i in range(count)), "_gpus", "_all"]
    sized = (
        settings.join(wanted, on=PLACEMENT, how="left", nulls_equal=True, validate="m:1")
        .join(totals, on="placement", how="left", validate="m:1")
        .join(classes, on="placement", how="left", validate="m:1")
        .join(graph_widths(models, caches, gguf_tensors), on="model_id", how="left", validate="m:1")
        .with_columns(growth for suffix in suffixes for growth in _growth(suffix))
        .drop(f"{name}{suffix}" for name in WIDTHS for suffix in suffixes)
    )
    return sized, count


def _placed(
    settings: pl.DataFrame, models: pl.DataFrame, caches: pl.DataFrame, gguf_tensors: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(the distinct placements, numbered; their devices, weights_bytes null where the file's tensors are unknown)."""
    known = settings.filter(pl.col("layers").is_not_null())
    wanted = known.select(PLACEMENT).unique().with_row_index("placement")
    files = gguf_tensors.select(FILE).unique().with_columns(has_tensors=True)
    has_tensors = wanted.join(files, on=FILE, how="left", nulls_equal=True).select("placement", "has_tensors")
    devices = (
        place(wanted, models, caches, gguf_tensors)
        .join(has_tensors, on="placement", how="left", validate="m:1")
        .with_columns(pl.when("has_tensors").then("weights_bytes").alias("weights_bytes"))
    )
    return wanted, devices


def device_buffers(
    settings: pl.DataFrame, models: pl.DataFrame, caches: pl.DataFrame, gguf_tensors: pl.DataFrame
) -> pl.DataFrame:
    """setting, device, weights_bytes, kv_cache_bytes of every device, at the deployment's settings."""
    wanted, devices = _placed(settings, models, caches, gguf_tensors)
    window = graph_widths(models, caches, gguf_tensors).select("model_id", "window")
    rows = (
        settings.join(wanted, on=PLACEMENT, how="left", nulls_equal=True, validate="m:1")
        .join(window, on="model_id", how="left", validate="m:1")
        .join(devices.rename({name: f"{name}_here" for name in WIDTHS}), on="placement", how="left")
        .with_columns(_growth("_here"))
    )
    return _with_cells(rows).select("setting", "device", "weights_bytes", kv_cache_bytes=_all_streams("_here"))


def _classes(devices: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """One row a placement: weights_i and WIDTHS_i of its classes, the heaviest first."""
    grouped = (
        devices.filter(pl.col("device") != HOST)
        .group_by("placement", *WIDTHS)
        .agg(weights=pl.col("weights_bytes").max())
        .sort("placement", "weights", *WIDTHS, descending=[False, True, *[True] * len(WIDTHS)])
        .with_columns(number=pl.int_range(pl.len()).over("placement"))
    )
    highest = grouped["number"].max()
    count = highest + 1 if isinstance(highest, int) else 1
    wide = grouped.group_by("placement").agg(
        pl.col(name).filter(pl.col("number") == i).first().alias(f"{name}_{i}")
        for i in range(count)
        for name in ("weights", *WIDTHS)
    )
    return wide, count


def _growth(suffix: str) -> list[pl.Expr]:
    key = pl.col("key_bytes") / pl.col("key_block")
    value = pl.col("value_bytes") / pl.col("value_block")
    return [
        (pl.col(f"{kind}_key{suffix}") * key + pl.col(f"{kind}_value{suffix}") * value).alias(f"{kind}_bytes{suffix}")
        for kind in ("full", "window")
    ] + [(pl.col(f"state{suffix}") * _F32).alias(f"state_bytes{suffix}")]


def _with_cells(sized: pl.DataFrame) -> pl.DataFrame:
    """Add cells and windows of each stream, and one_cells, one_windows: those of one user alone."""
    step, slots, streams = pl.col("context_step"), pl.col("slots"), pl.col("streams")
    one = padded(pl.col("context"), step)
    cells = pl.when(streams > 1).then(padded(pl.col("context") // streams, step)).otherwise(one)
    in_stream = pl.when(streams > 1).then(1).otherwise(slots)
    return sized.with_columns(
        cells=cells, windows=window_cells(cells, in_stream), one_cells=one, one_windows=window_cells(one, 1)
    )


def _all_streams(suffix: str) -> pl.Expr:
    """K and V of every stream and a state for every slot."""
    extra_states = (pl.col("slots") - pl.col("streams")) * pl.col(f"state_bytes{suffix}")
    streams = pl.col("streams") * kv_bytes(pl.col("cells"), pl.col("windows"), suffix)
    return (streams + extra_states).cast(pl.Int64)


def reserved(sized: pl.DataFrame, count: int) -> pl.DataFrame:
    """What llama.cpp reserves at these settings, and what one user of the whole context needs.

    Columns: kv_cache_bytes (host too), kv_gpus_bytes, compute_buffer_bytes, and for one user: one_kv_gpus,
    one_compute_bytes, one_kv_<i> of each class.
    """
    grown = _with_cells(sized)

    def one_user(suffix: str) -> pl.Expr:
        return kv_bytes(pl.col("one_cells"), pl.col("one_windows"), suffix)

    return grown.with_columns(
        kv_cache_bytes=_all_streams("_all"),
        kv_gpus_bytes=_all_streams("_gpus"),
        compute_buffer_bytes=compute_bytes(pl.col("cells"), pl.col("windows"), pl.col("slots")),
        one_kv_gpus=one_user("_gpus"),
        one_compute_bytes=compute_bytes(pl.col("one_cells"), pl.col("one_windows"), pl.lit(1)),
        **{f"one_kv_{i}": one_user(f"_{i}") for i in range(count)},
    )
