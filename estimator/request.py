"""A request on a configuration, and the workload that its speed follows from."""

import polars as pl

from fitmart.estimator.reference import Models
from fitmart.estimator.speed import era
from fitmart.estimator.workload import with_workload


def with_request(rows: pl.DataFrame, models: Models) -> pl.DataFrame:
    """Rows of `estimate` with a request (input, output and cached tokens, batches) → what `with_speed` reads."""
    rows = rows.with_columns(era=era(pl.col("engine_id"), pl.col("engine_version_used")))
    return with_workload(rows, models.models, models.tensors, models.caches)
