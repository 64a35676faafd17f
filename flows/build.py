"""Landing and seeds → dimensions → marts → a checked, published catalog. No network, no Prefect.

The catalog is a pure function of what has landed, the seeds and the code. Marts are computed a bucket of models at a
time; a bucket whose inputs are as before has its partitions already.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl

from fitmart.estimator.frames import schema
from fitmart.flows.catalog import Catalog, read_catalog
from fitmart.flows.landing import to_moment
from fitmart.flows.marts import ESTIMATOR, MARTS, MartBuilder, Progress, footprints_with_siblings
from fitmart.flows.moments import utc_without_zone
from fitmart.flows.price_tables import without_clocks
from fitmart.flows.runs import read_runs
from fitmart.warehouse.load import create_schema, create_views, inputs_hash, load_frames, load_partitions, write_build
from fitmart.warehouse.marts import Manifest, MartStore, code_hash, frame_hash, partition_key
from fitmart.warehouse.publish import build_id_at, new_build, publish, published_inputs
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import seeds_hash

FLOWS = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did. `build_id` is None where nothing had changed and nothing was published."""

    build_id: str | None
    seconds: float
    computed: int  # groups of models whose marts were computed now
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
    marts = MartBuilder(store, reference, without_clocks("best_offer", catalog.frames["best_offer"])).compute(
        catalog.models, progress
    )
    manifest = Manifest(build_id, marts.keys)
    store.save_manifest(manifest)
    footprint = footprints_with_siblings(
        store.paths(manifest, "footprint"), catalog.frames["model"], catalog.stored_files
    )
    with new_build(data_dir, build_id) as con:
        create_schema(con, catalog.frames)
        load_frames(con, catalog.frames | {"source_run": run_table(data_dir / "landing"), "footprint": footprint})
        for table in (*MARTS, "cost"):
            if table != "footprint":
                load_partitions(con, table, store.paths(manifest, table))
        create_views(con)
        write_build(
            con,
            build_id=build_id,
            code_version=hashes["code"][:12],
            built_at=min(to_moment(as_of) or built_at, built_at),
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
    frames = {name: frame_hash(without_clocks(name, frame)) for name, frame in sorted(catalog.frames.items())}
    return {
        "code": code_version(),
        "seeds": seeds_hash(),
        "as_of": as_of.isoformat() if as_of else "",
        **frames,
    }


def code_version() -> str:
    """Hash of the code that makes a catalog."""
    return partition_key(estimator=code_hash(ESTIMATOR), flows=code_hash(FLOWS))


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


def run_table(landing_dir: Path) -> pl.DataFrame:
    """`source_run`: what every source did, newest last."""
    rows = [asdict(run) | {"reason": run.reason or None} for run in read_runs(landing_dir)]
    for row in rows:
        row |= {name: utc_without_zone(row[name]) for name in ("started_at", "ended_at")}
    return pl.DataFrame(rows, schema=_RUN_SCHEMA)
