"""`model_history`: which revision of a model was the newest, and since when, from landing and what ships.

An old revision is read once; what it said is kept in `observations/model/`, by the code that read it.
"""

from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path

import polars as pl

from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import conform, schema
from fitmart.estimator.reference import Models
from fitmart.flows.estimates import anatomy_of
from fitmart.flows.landing import list_versions, read_all
from fitmart.flows.landing_files import version_of
from fitmart.flows.moments import utc_without_zone
from fitmart.flows.observations import parser_hash, read_frame, write_frame
from fitmart.flows.sources.contract import Landed, ModelRecord
from fitmart.flows.sources.models import bundled, hub
from fitmart.warehouse.marts import code_hash, partition_key

ESTIMATOR = Path(__file__).resolve().parent.parent / "estimator"
_SAID = schema(
    revision=pl.String,
    params_total=pl.Int64,
    stored_bytes=pl.Int64,
    max_context_tokens=pl.Int64,
)
MODEL_HISTORY_SCHEMA = schema(
    model_id=pl.String,
    revision=pl.String,
    valid_from=pl.Datetime("us"),
    valid_to=pl.Datetime("us"),
    params_total=pl.Int64,
    stored_bytes=pl.Int64,
    max_context_tokens=pl.Int64,
    source_id=pl.String,
)


def model_history(
    landing_dir: Path, cache_dir: Path, models: pl.DataFrame, *, as_of: datetime | date | None = None
) -> pl.DataFrame:
    """Spans of the revisions of `models` (the table `model`), as known at `as_of`: MODEL_HISTORY_SCHEMA, sorted.

    A model without a revision has one open span. What an old revision's config does not say is null.
    """
    wanted = set(models["model_id"])
    landed = list_versions(landing_dir, hub.SOURCE_ID, as_of)
    versions = [v for v in landed if v.name in wanted]
    said = _read_old(landing_dir, cache_dir, _not_newest(versions))
    old = [(v.name, v.observed_at, v.source_id, *said[v.payload_sha256]) for v in versions if v.payload_sha256 in said]
    shipped = [
        (record.model_id, record.observed_at, record.source_id, record.revision, None, None, None)
        for record in bundled.read()[0]
        if record.model_id in wanted
    ]
    seen = pl.DataFrame(
        [(name, utc_without_zone(at), *rest) for name, at, *rest in (*shipped, *old)],
        schema={"model_id": pl.String, "seen_at": pl.Datetime("us"), "source_id": pl.String, **_SAID},
        orient="row",
    )
    now = models.select("model_id", "source_id", *_SAID, seen_at=pl.col("observed_at")).select(seen.columns)
    return _to_spans(pl.concat([seen, now]))


def _to_spans(seen: pl.DataFrame) -> pl.DataFrame:
    """The revisions of each model in order of time; those that repeat the one before are one."""
    ordered = seen.sort("model_id", "seen_at", maintain_order=True)
    is_same = (pl.col("revision") == pl.col("revision").shift()) & (pl.col("model_id") == pl.col("model_id").shift())
    joined = ordered.group_by("model_id", run=(~is_same.fill_null(False)).cum_sum(), maintain_order=True).agg(
        pl.col("source_id", *_SAID).last(), valid_from=pl.col("seen_at").first()
    )
    spans = joined.with_columns(valid_to=pl.col("valid_from").shift(-1).over("model_id"))
    whole = spans.filter(pl.col("valid_to").is_null() | (pl.col("valid_to") > pl.col("valid_from")))
    return conform(whole.sort("model_id", "valid_from"), MODEL_HISTORY_SCHEMA, stage="model history")


def _not_newest(versions: list[Landed]) -> list[Landed]:
    """Versions are oldest first; the newest of each name is in the catalog already."""
    newest = {v.name: v for v in versions}
    return [v for v in versions if newest[v.name] != v]


Said = tuple[str | None, int | None, int | None, int | None]


def _read_old(landing_dir: Path, cache_dir: Path, versions: Iterable[Landed]) -> dict[str, Said]:
    """payload_sha256 -> what the document said, read now unless it has been."""
    path = cache_dir / "model" / f"{partition_key(estimator=code_hash(ESTIMATOR), parser=parser_hash(hub))}.parquet"
    kept = read_frame(path)
    known: dict[str, Said] = {} if kept is None else {sha: rest for sha, *rest in kept.iter_rows()}  # type: ignore[misc]
    missing = [v for v in versions if v.payload_sha256 not in known]
    if not missing:
        return known
    wanted = {version_of(v) for v in missing}
    for payload in read_all(landing_dir, hub.SOURCE_ID, only=wanted, faults=[]):
        parsed = hub.parse(payload.content, payload.landed.observed_at, payload.landed.name)
        if isinstance(parsed, ModelRecord):
            known[payload.landed.payload_sha256] = _said(parsed)
    rows = [(sha, *rest) for sha, rest in known.items()]
    frame = pl.DataFrame(rows, schema={"payload_sha256": pl.String, **_SAID}, orient="row")
    for other in path.parent.glob("*.parquet"):
        other.unlink()
    write_frame(path, frame)
    return known


def _said(record: ModelRecord) -> Said:
    try:
        found = Models.of([anatomy_of(record)]).models.select(*list(_SAID)[1:]).row(0)
    except FitmartError:
        return record.revision, None, None, None
    return record.revision, *found
