"""The GGUF files of repositories, as bytes that serve their base models' rows."""

from collections.abc import Iterable

import polars as pl

from fitmart.estimator.siblings import STORED_FILE_SCHEMA, gguf_precision_of
from fitmart.flows.sources.contract import ModelRecord


def stored_files(records: Iterable[ModelRecord]) -> pl.DataFrame:
    """STORED_FILE_SCHEMA: one row a repository and precision its GGUF files' names state, parts together."""
    rows: dict[tuple[str, str, str], int] = {}
    for record in records:
        base = record.metadata.get("base_model")
        for name, size in (record.metadata.get("gguf_files") or {}).items():
            precision = gguf_precision_of(name)
            if base and precision and "mmproj" not in name:
                key = (record.model_id, base, precision)
                rows[key] = rows.get(key, 0) + size
    return pl.DataFrame([(*key, size) for key, size in rows.items()], schema=STORED_FILE_SCHEMA, orient="row")
