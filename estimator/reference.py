"""The tables an estimate leans on, as frames: devices, precisions, support and the engines' rules."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from fitmart.estimator.anatomy import Anatomy, to_frames


@dataclass(frozen=True, slots=True)
class Reference:
    """gpus: GPU_SCHEMA. precisions: PRECISION_SCHEMA. support: one row per engine, GPU, precision and version span.
    rules: the engines' and formats' rule tables by seed name. coefficients: speed factors, as `speed.widen` gives them.
    """

    gpus: pl.DataFrame
    precisions: pl.DataFrame
    support: pl.DataFrame
    rules: Mapping[str, pl.DataFrame]
    coefficients: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Models:
    """Anatomies as frames: MODEL_SCHEMA, TENSOR_SCHEMA, CACHE_SCHEMA."""

    models: pl.DataFrame
    tensors: pl.DataFrame
    caches: pl.DataFrame

    @classmethod
    def of(cls, anatomies: list[Anatomy]) -> "Models":
        return cls(*to_frames(anatomies))

    def only(self, model_ids: list[str]) -> "Models":
        """The same frames cut to some models."""
        wanted = pl.col("model_id").is_in(model_ids)
        return Models(self.models.filter(wanted), self.tensors.filter(wanted), self.caches.filter(wanted))
