"""Mart partitions by content: `marts/<table>/<key>.parquet`, where the key is a hash of all that the rows depend on.

What has not changed has its file already and is not computed again. A manifest names the partitions of one build, in
load order; files that no kept build names are collected.
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from fitmart.warehouse.errors import CatalogError, StorageError, one_line
from fitmart.warehouse.files import remove_leftovers, replacing

# Rows lie in the order of the table's key: neighbours compress well, and a query for one model reads few blocks.
SORT_KEYS: dict[str, tuple[str, ...]] = {
    "footprint": ("model_id", "precision_id"),
    "kv_cache": ("model_id", "kv_precision", "context_tokens"),
    "capacity": ("model_id", "precision_id", "engine_id", "gpu_id", "gpu_count"),
    "fit": ("model_id", "precision_id", "engine_id", "gpu_id", "gpu_count", "context_tokens"),
    "speed": ("model_id", "precision_id", "engine_id", "gpu_id", "gpu_count", "context_tokens"),
    "cost": ("model_id", "precision_id", "engine_id", "gpu_id", "gpu_count", "context_tokens"),
    "finetune": ("model_id", "method", "optimizer", "sequence_tokens", "gpu_count"),
}
# Estimates carry four digits: more would claim what their bands deny, and decimal fractions compress.
SIGNIFICANT_DIGITS = 4
_MARK = b"PAR1"
# Prices are facts, not estimates.
EXACT = ("usd_per_hour", "spot_usd_per_hour", "usd_per_month", "purchase_usd", "utilisation_share")


def partition_key(**inputs: object) -> str:
    """Hash of everything a partition depends on. Frames by their rows, mappings by their items, the rest as text."""
    return _digest({name: _plain(value) for name, value in inputs.items()})[:32]


def frame_hash(frame: pl.DataFrame) -> str:
    """Hash of a frame's names, types and rows; the order of rows counts, the way they are stored does not."""
    digest = hashlib.sha256(json.dumps([[n, str(t)] for n, t in frame.schema.items()]).encode())
    digest.update(frame.write_ndjson().encode())
    return digest.hexdigest()


def code_hash(folder: Path) -> str:
    """Hash of the Python files below `folder`: the version of the estimator that a partition was computed by."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The partitions of one build: keys by table, in the order in which they are loaded."""

    build_id: str
    partitions: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MartStore:
    """The partitions and manifests below one folder."""

    root: Path

    def path(self, table: str, key: str) -> Path:
        """Where that partition lies, or would lie."""
        return self.root / table / f"{key}.parquet"

    def has(self, table: str, key: str) -> bool:
        """Whether it has been computed, and its file is whole: a cut one lacks Parquet's mark at the end."""
        try:
            with self.path(table, key).open("rb") as file:
                file.seek(-len(_MARK), os.SEEK_END)
                return file.read() == _MARK
        except OSError:
            return False

    def write(self, table: str, key: str, frame: pl.DataFrame) -> Path:
        """Store a partition: sorted by the table's key, estimates rounded to four digits. Several writers may race."""
        rounded = frame.with_columns(
            (pl.selectors.float() - pl.selectors.by_name(EXACT, require_all=False)).round_sig_figs(SIGNIFICANT_DIGITS)
        )
        path = self.path(table, key)
        with replacing(path) as temporary:
            try:
                rounded.sort(SORT_KEYS[table]).write_parquet(temporary, compression="zstd")
            except pl.exceptions.ComputeError as error:  # Polars' word for a disk that is full or fails
                raise StorageError(f"cannot write {path}: {one_line(error)}") from None
        return path

    def read(self, table: str, key: str) -> pl.LazyFrame:
        """A stored partition."""
        return pl.scan_parquet(self.path(table, key))

    def paths(self, manifest: Manifest, table: str) -> list[Path]:
        """The partitions of a table in load order. Raises CatalogError where one is missing."""
        found = [self.path(table, key) for key in manifest.partitions.get(table, ())]
        if missing := [p for p in found if not p.exists()]:
            raise CatalogError(f"mart partition {missing[0]} is missing: run `fitmart build` again")
        return found

    def save_manifest(self, manifest: Manifest) -> None:
        """Write down which partitions a build loads."""
        with replacing(self._manifest_path(manifest.build_id)) as temporary:
            text = json.dumps({"build_id": manifest.build_id, "partitions": dict(manifest.partitions)}, indent=1)
            temporary.write_text(text, encoding="utf-8")

    def manifest(self, build_id: str) -> Manifest:
        """The manifest of a build. Raises CatalogError where there is none."""
        path = self._manifest_path(build_id)
        try:
            return Manifest(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise CatalogError(f"no readable manifest {path}") from None

    def collect_garbage(self, kept_builds: Collection[str]) -> int:
        """Drop manifests of other builds, and partitions that no kept manifest names; how many partitions went.

        Only for the one writer of the folder, when no partition is being computed.
        """
        kept = [self.manifest(b) for b in kept_builds if self._manifest_path(b).exists()]
        named = {self.path(table, key) for m in kept for table, keys in m.partitions.items() for key in keys}
        for path in (self.root / "manifests").glob("*.json"):
            if path.stem not in kept_builds:
                path.unlink()
        remove_leftovers(self.root / "manifests")
        dropped = [p for table in SORT_KEYS for p in (self.root / table).glob("*.parquet") if p not in named]
        for path in dropped:
            path.unlink(missing_ok=True)
        for table in SORT_KEYS:
            remove_leftovers(self.root / table)
        return len(dropped)

    def _manifest_path(self, build_id: str) -> Path:
        return self.root / "manifests" / f"{build_id}.json"


def _plain(value: object) -> object:
    if isinstance(value, pl.DataFrame):
        return frame_hash(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, allow_nan=False).encode()).hexdigest()
