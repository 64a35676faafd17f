"""A request on a configuration, and the workload that its speed follows from."""

import polars as pl

from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.speed import with_speed
from fitmart.estimator.speed_era import era
from fitmart.estimator.workload import with_workload


def with_request_speed(
    rows: pl.DataFrame, models: Models, reference: Reference, *, min_user_tokens_per_s: float | None = None
) -> pl.DataFrame:
    """Rows of `estimate` with a request (input, output, cached tokens, batch, throughput_batch), and its speeds.

    `min_user_tokens_per_s`: `throughput_batch` is cut to the users who still get that (`speed.with_speed`).
    """
    eras = reference.rules["speed_era"]
    # The version as asked: a date or "2024 (paper)" names no release, but an era.
    rows = rows.with_columns(era=era(pl.col("engine_id"), pl.col("engine_version"), eras))
    workloads = with_workload(rows, models.models, models.tensors, models.caches)
    return with_speed(workloads, reference.coefficients, min_user_tokens_per_s=min_user_tokens_per_s)
