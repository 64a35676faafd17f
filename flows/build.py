"""Landing and seeds → dimensions → marts → a checked, published catalog. No network, no Prefect.

The catalog is a pure function of what has landed, the seeds and the code. Marts are computed a bucket of models at a
time; a bucket whose inputs are as before has its partitions already.
"""

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl

from fitmart.estimator.cost import with_cost
from fitmart.estimator.frames import schema
from fitmart.estimator.grid import compute_marts
from fitmart.estimator.reference import Models, Reference
from fitmart.flows.catalog import Catalog, read_catalog
from fitmart.flows.runs import read_runs
from fitmart.warehouse.load import create_schema, create_views, inputs_hash, load_frames, load_partitions, write_build
from fitmart.warehouse.marts import Manifest, MartStore, code_hash, frame_hash, partition_key
from fitmart.warehouse.publish import build_id_at, new_build, publish, published_inputs
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import seeds_hash

ESTIMATOR = Path(__file__).resolve().parent.parent / "estimator"
FLOWS = Path(__file__).resolve().parent
MARTS = ("footprint", "kv_cache", "capacity", "fit", "speed", "finetune")
BUCKETS = 16  # of models: a new model computes one of them again
Progress = Callable[[int, int], None]  # buckets done, of how many


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did. `build_id` is None where nothing had changed and nothing was published."""

    build_id: str | None
    seconds: float
    computed: int  # mart buckets computed now
    reused: int
    model_count: int
    rejected_count: int


def build(
    data_dir: Path,
    models_dir: Path | None = None,
    *,
    as_of: date | None = None,
    include: Sequence[str] = (),
    progress: Progress = lambda done, total: None,
) -> BuildReport:
    """Build and publish; only for the holder of the refresh lock. `include`: globs of model ids; none: all."""
    started = time.monotonic()
    built_at = datetime.now(UTC)
    reference = load_reference()
    catalog = read_catalog(data_dir / "landing", models_dir, reference, built_at, as_of=as_of, include=include)
    hashes = _input_hashes(catalog, as_of)
    rejected = catalog.frames["rejected"].height
    if published_inputs(data_dir) == inputs_hash(hashes):
        return BuildReport(None, time.monotonic() - started, 0, 0, catalog.model_count, rejected)
    store = MartStore(data_dir / "marts")
    build_id = build_id_at(built_at)
    marts = _Marts(store, reference, catalog)
    partitions = marts.compute(progress)
    manifest = Manifest(build_id, partitions)
    store.save_manifest(manifest)
    with new_build(data_dir, build_id) as con:
        create_schema(con, catalog.frames)
        load_frames(con, catalog.frames | {"source_run": _runs(data_dir / "landing")})
        for table in (*MARTS, "cost"):
            load_partitions(con, table, store.paths(manifest, table))
        create_views(con)
        write_build(
            con,
            build_id=build_id,
            code_version=hashes["code"][:12],
            built_at=built_at,
            input_hashes=hashes,
            build_seconds=time.monotonic() - started,
            as_of_on=as_of,
        )
    kept = publish(data_dir, build_id)
    store.collect_garbage(kept)
    return BuildReport(
        build_id, time.monotonic() - started, marts.computed, marts.reused, catalog.model_count, rejected
    )


def _input_hashes(catalog: Catalog, as_of: date | None) -> dict[str, str]:
    """What the catalog depends on. The runs of sources are its log, not its content."""
    frames = {name: frame_hash(frame) for name, frame in sorted(catalog.frames.items())}
    return {
        "code": partition_key(estimator=code_hash(ESTIMATOR), flows=code_hash(FLOWS)),
        "seeds": seeds_hash(),
        "as_of": as_of.isoformat() if as_of else "",
        **frames,
    }


class _Marts:
    """Mart partitions of a catalog, each computed unless it is there."""

    def __init__(self, store: MartStore, reference: Reference, catalog: Catalog) -> None:
        self._store = store
        self._reference = reference
        self._catalog = catalog
        self._grid_hash = partition_key(
            gpus=reference.gpus,
            precisions=reference.precisions,
            support=reference.support,
            rules=dict(reference.rules),
            coefficients=reference.coefficients,
            code=code_hash(ESTIMATOR),
        )
        self.computed = 0
        self.reused = 0

    def compute(self, progress: Progress) -> dict[str, list[str]]:
        """Keys of the partitions by table, in load order."""
        keys: dict[str, list[str]] = {table: [] for table in (*MARTS, "cost")}
        buckets = list(_buckets(self._catalog.models))
        for done, bucket in enumerate(buckets):
            progress(done, len(buckets))
            key = self._bucket(bucket)
            for table in MARTS:
                keys[table].append(key)
            keys["cost"].append(self._cost(key))
        progress(len(buckets), len(buckets))
        return keys

    def _bucket(self, models: Models) -> str:
        key = partition_key(grid=self._grid_hash, models=models.models, tensors=models.tensors, caches=models.caches)
        if all(self._store.has(table, key) for table in MARTS):
            self.reused += 1
            return key
        marts = compute_marts(models, self._reference)
        for table in MARTS:
            self._store.write(table, key, getattr(marts, table))
        self.computed += 1
        return key

    def _cost(self, speed_key: str) -> str:
        offers = self._catalog.frames["best_offer"]
        key = partition_key(speed=speed_key, offers=offers)
        if not self._store.has("cost", key):
            speed = self._store.read("speed", speed_key).collect()
            self._store.write("cost", key, with_cost(speed, offers, self._reference.gpus))
        return key


def _buckets(models: Models) -> Iterator[Models]:
    """The models in BUCKETS groups that do not change when another model comes."""
    numbers: dict[int, list[str]] = {}
    for model_id in models.models["model_id"]:
        numbers.setdefault(zlib.crc32(model_id.encode()) % BUCKETS, []).append(model_id)
    for _, ids in sorted(numbers.items()):
        yield models.only(ids)


_MOMENT = pl.Datetime("us")
_RUN_SCHEMA = schema(
    source_id=pl.String,
    started_at=_MOMENT,
    ended_at=_MOMENT,
    status=pl.String,
    payloads=pl.Int64,
    added=pl.Int64,
    bytes=pl.Int64,
    reason=pl.String,
)


def _runs(landing_dir: Path) -> pl.DataFrame:
    """`source_run`: what every source did, newest last."""
    rows = [asdict(run) | {"reason": run.reason or None} for run in read_runs(landing_dir)]
    for row in rows:
        row |= {name: row[name].astimezone(UTC).replace(tzinfo=None) for name in ("started_at", "ended_at")}
    return pl.DataFrame(rows, schema=_RUN_SCHEMA)
