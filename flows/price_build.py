"""A build of the prices alone: the published catalog with its tables of prices made anew.

Offers and their history are read again, `cost` is computed from the speeds that are there. Everything else is copied,
so it has to be what a whole build would make of it: the same code, SQL and seeds.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl

from fitmart.flows.build import BuildReport, code_version, run_table
from fitmart.flows.marts import MartBuilder
from fitmart.flows.price_tables import PriceTables, read_price_tables, rejected_frame, without_clocks
from fitmart.flows.sources import registry
from fitmart.warehouse.connection import connect
from fitmart.warehouse.errors import CatalogError
from fitmart.warehouse.load import create_views, inputs_hash, load_frames, load_partitions, renew_tables, write_build
from fitmart.warehouse.marts import Manifest, MartStore, frame_hash
from fitmart.warehouse.publish import build_id_at, current_build, new_build, publish
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import seeds_hash

RENEWED = (
    *("offer", "offer_history", "offer_rival", "best_offer", "api_price", "api_price_history", "cost"),
    *("source_run", "rejected", "build"),
)


def build_prices(data_dir: Path) -> BuildReport | None:
    """Build and publish the catalog with new prices; only for the holder of the refresh lock.

    None where the published catalog cannot be built upon: there is none, it is of other code, seeds or SQL, of an
    earlier day, or its marts are gone. A whole build is due then.
    """
    started = time.monotonic()
    built_at = datetime.now(UTC)
    store = MartStore(data_dir / "marts")
    base = _Base.of(data_dir, store)
    if base is None:
        return None
    reference = load_reference()
    tables = read_price_tables(data_dir / "landing", base.model_ids, reference, built_at)
    frames = tables.frames | {"rejected": _rejected(base, tables)}
    hashes = base.hashes | {name: frame_hash(without_clocks(name, frame)) for name, frame in frames.items()}
    groups, rejected = len(base.speed_keys), frames["rejected"].height
    if inputs_hash(hashes) == base.inputs:
        return BuildReport(None, time.monotonic() - started, 0, groups, len(base.model_ids), rejected)
    marts = MartBuilder(store, reference, without_clocks("best_offer", frames["best_offer"]))
    build_id = build_id_at(built_at)
    manifest = Manifest(build_id, {**base.partitions, "cost": marts.costs(base.speed_keys)})
    store.save_manifest(manifest)
    with new_build(data_dir, build_id, base=base.build_id, renewed=RENEWED) as con:
        renew_tables(con, RENEWED, frames)
        load_frames(con, frames | {"source_run": run_table(data_dir / "landing")})
        load_partitions(con, "cost", store.paths(manifest, "cost"))
        create_views(con)
        write_build(
            con,
            build_id=build_id,
            code_version=hashes["code"][:12],
            built_at=built_at,
            input_hashes=hashes,
            build_seconds=time.monotonic() - started,
        )
    store.collect_garbage(publish(data_dir, build_id))
    return BuildReport(build_id, time.monotonic() - started, 0, groups, len(base.model_ids), rejected)


@dataclass(frozen=True, slots=True)
class _Base:
    """The published catalog, as far as a build of prices stands upon it."""

    build_id: str
    inputs: str
    hashes: dict[str, str]
    model_ids: list[str]
    rejected: pl.DataFrame
    partitions: Mapping[str, Sequence[str]]

    @property
    def speed_keys(self) -> Sequence[str]:
        return self.partitions["speed"]

    @classmethod
    def of(cls, data_dir: Path, store: MartStore) -> "_Base | None":
        """The catalog in use, if it can be built upon."""
        build_id = current_build(data_dir)
        if build_id is None:
            return None
        try:
            with closing(connect(data_dir)) as con:
                inputs, hashes = con.execute("SELECT inputs_sha256, input_hashes FROM build").fetchall()[0]
                model_ids = con.sql("SELECT model_id::VARCHAR AS model_id FROM model").pl()["model_id"].to_list()
                rejected = con.sql("SELECT * FROM rejected").pl()
            manifest = store.manifest(build_id)
            for table in manifest.partitions:
                store.paths(manifest, table)
        except (CatalogError, duckdb.Error, IndexError):
            return None
        now = {"code": code_version(), "seeds": seeds_hash(), "as_of": ""}
        if hashes | now != hashes or inputs_hash(hashes) != inputs:
            return None
        return cls(build_id, inputs, hashes, model_ids, rejected, manifest.partitions)


def _rejected(base: _Base, tables: PriceTables) -> pl.DataFrame:
    """What was rejected: of models as before, of prices now."""
    models = [module.SOURCE_ID for module in registry.modules("models")]
    return pl.concat([base.rejected.filter(pl.col("source_id").is_in(models)), rejected_frame(tables.rejected)])
