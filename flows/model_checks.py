"""`model_check`: for models whose headers were read, what config and headers say of the same figures."""

from collections.abc import Iterable

import polars as pl

from fitmart.estimator.anatomy import Anatomy
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.architectures.headers import anatomy_from_headers
from fitmart.estimator.architectures.headers_records import HeaderError
from fitmart.estimator.frames import schema
from fitmart.estimator.model_check import MODEL_CHECK_SCHEMA, model_check, unread_headers
from fitmart.flows.moments import utc_without_zone
from fitmart.flows.sources.contract import ModelRecord

_SCHEMA = schema(**MODEL_CHECK_SCHEMA, source_id=pl.String, observed_at=pl.Datetime("us"))


def check_models(records: Iterable[ModelRecord], anatomies: Iterable[Anatomy]) -> pl.DataFrame:
    """The rows of `model_check`; `anatomies` are those of `records`, in their order."""
    frames = [
        _check(record, anatomy).with_columns(
            pl.lit(record.source_id).alias("source_id"),
            pl.lit(utc_without_zone(record.observed_at), dtype=_SCHEMA["observed_at"]).alias("observed_at"),
        )
        for record, anatomy in zip(records, anatomies, strict=True)
        if record.headers
    ]
    return pl.concat([_SCHEMA.to_frame(), *frames])


def _check(record: ModelRecord, anatomy: Anatomy) -> pl.DataFrame:
    if anatomy.facts.stored_bytes is None:  # the headers were left: read them once more for the reason
        try:
            anatomy_from_headers(record.model_id, record.headers, record.config, quant_config=record.quant_config)
        except HeaderError as error:
            return unread_headers(record.model_id, str(error))
    config = parse_config(record.model_id, record.config, quant_config=record.quant_config)
    return model_check(config, anatomy)
