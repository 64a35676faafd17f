"""The durable record of what every source did: `landing/source_run/<month>.jsonl`, one line a run, append-only."""

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path

from fitmart.flows.durable import append_line
from fitmart.flows.sources.contract import SourceRun

FOLDER = "source_run"
GOOD = ("ok", "unchanged")
_FIELDS = {f.name for f in fields(SourceRun)}
_append = threading.Lock()


def record_run(landing_dir: Path, run: SourceRun) -> None:
    """Append one row, on the disk when this returns."""
    row = asdict(run) | {
        "started_at": run.started_at.astimezone(UTC).isoformat(),
        "ended_at": run.ended_at.astimezone(UTC).isoformat(),
    }
    month = run.started_at.astimezone(UTC).strftime("%Y-%m")
    with _append:
        append_line(landing_dir / FOLDER / f"{month}.jsonl", json.dumps(row, ensure_ascii=False))


def read_runs(landing_dir: Path, as_of: datetime | None = None, *, newest_months: int | None = None) -> list[SourceRun]:
    """The rows (of the newest months) that ended up to `as_of`, oldest first.

    A line torn by a kill is left out: its run did not end.
    """
    runs = []
    months = sorted((landing_dir / FOLDER).glob("*.jsonl"))
    for path in months if newest_months is None else months[-newest_months:]:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if (run := _parse(line)) is not None and (as_of is None or run.ended_at <= as_of):
                runs.append(run)
    return sorted(runs, key=lambda run: (run.ended_at, run.source_id))


def last_seen(runs: Iterable[SourceRun]) -> dict[str, datetime]:
    """source_id -> when it last answered, with something new or not: the age of what is shown from it."""
    return {run.source_id: run.started_at for run in sorted(runs, key=lambda r: r.started_at) if run.status in GOOD}


def _parse(line: str) -> SourceRun | None:
    try:
        row = json.loads(line)
        times = {name: datetime.fromisoformat(row[name]) for name in ("started_at", "ended_at")}
        return SourceRun(**{name: value for name, value in row.items() if name in _FIELDS} | times)
    except (ValueError, KeyError, TypeError):
        return None
