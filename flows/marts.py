"""The mart partitions of a catalog: a group of models at a time, several groups at once, each unless it is there."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fitmart.estimator.cost import KEY, with_cost
from fitmart.estimator.grid import compute_marts
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.siblings import siblings, with_siblings
from fitmart.warehouse.marts import MartStore, code_hash, partition_key

ESTIMATOR = Path(__file__).resolve().parent.parent / "estimator"
MARTS = ("footprint", "kv_cache", "capacity", "fit", "speed", "finetune")
GROUPS = 16  # of models: a new model computes one of them again
WORKERS = 2  # groups at once: one alone leaves cores idle between its many small steps
Progress = Callable[[int, int], None]  # groups done, of how many


@dataclass(frozen=True, slots=True)
class Partitions:
    """Keys of the partitions by table, in load order; how many groups were computed now, and how many were there."""

    keys: dict[str, list[str]]
    computed: int
    reused: int


@dataclass(frozen=True, slots=True)
class MartBuilder:
    """Computes what is missing. `offers`: best_offer, the only input of `cost` beside the speeds."""

    store: MartStore
    reference: Reference
    offers: pl.DataFrame

    def compute(self, models: Models, progress: Progress) -> Partitions:
        """The partitions of all models, computed where their inputs have changed."""
        keys: dict[str, list[str]] = {table: [] for table in (*MARTS, "cost")}
        grid = self._grid_hash()
        groups = list(groups_of(models))
        computed = 0
        with ThreadPoolExecutor(WORKERS) as pool:
            for done, (key, is_new) in enumerate(pool.map(lambda group: self._group(group, grid), groups)):
                progress(done + 1, len(groups))
                computed += is_new
                for table in MARTS:
                    keys[table].append(key)
        keys["cost"] = self.costs(keys["speed"])
        return Partitions(keys, computed, len(groups) - computed)

    def _grid_hash(self) -> str:
        """What every partition depends on beside its models: devices, rules, factors and code."""
        reference = self.reference
        return partition_key(
            gpus=reference.gpus,
            precisions=reference.precisions,
            support=reference.support,
            rules=dict(reference.rules),
            coefficients=reference.coefficients,
            code=code_hash(ESTIMATOR),
        )

    def _group(self, models: Models, grid: str) -> tuple[str, bool]:
        """(key, whether it was computed now) of one group."""
        key = partition_key(grid=grid, models=models.models, tensors=models.tensors, caches=models.caches)
        if all(self.store.has(table, key) for table in MARTS):
            return key, False
        marts = compute_marts(models, self.reference)
        for table in MARTS:
            self.store.write(table, key, getattr(marts, table))
        return key, True

    def costs(self, speed_keys: Sequence[str]) -> list[str]:
        """The partitions of `cost` that belong to those of `speed`, computed unless they are there."""
        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(self._cost, speed_keys))

    def _cost(self, speed_key: str) -> str:
        key = partition_key(speed=speed_key, offers=self.offers, code=code_hash(ESTIMATOR))
        if not self.store.has("cost", key):
            speed = self.store.read("speed", speed_key).select(*KEY, "^throughput_tokens_per_s.*$").collect()
            self.store.write("cost", key, with_cost(speed, self.offers, self.reference.gpus))
        return key


def groups_of(models: Models) -> Iterator[Models]:
    """The models in at most GROUPS groups, which do not change when another model comes."""
    numbers: dict[int, list[str]] = {}
    for model_id in models.models["model_id"]:
        numbers.setdefault(zlib.crc32(model_id.encode()) % GROUPS, []).append(model_id)
    for _, ids in sorted(numbers.items()):
        yield models.only(ids)


def footprints_with_siblings(paths: list[Path], models: pl.DataFrame, stored_files: pl.DataFrame) -> pl.DataFrame:
    """The footprints of all groups; where a quantized repository names its base model, by the bytes it stores."""
    footprints = pl.concat([pl.read_parquet(path) for path in paths])
    return with_siblings(footprints, siblings(models, footprints, stored_files))
