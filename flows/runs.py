"""The durable record of what every source did: `landing/source_run/<month>.jsonl`, one line a run, append-only.

Compaction packs the months that are over (`<month>.jsonl.gz`).
"""

import gzip
import json
import threading
import zlib
from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path

from fitmart.flows.sources.contract import SourceRun
from fitmart.warehouse.files import append_line, remove_files, replacing

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


def read_runs(
    landing_dir: Path,
    as_of: datetime | None = None,
    *,
    newest_months: int | None = None,
    faults: list[str] | None = None,
) -> list[SourceRun]:
    """The rows (of the newest months) that ended up to `as_of`, oldest first.

    A line torn by a kill is left out: its run did not end. A month that is damaged is left out and named in `faults`.
    """
    runs: dict[SourceRun, None] = {}  # each once: a killed compaction leaves a month packed and open
    months = sorted({_month(path) for path in (landing_dir / FOLDER).glob("*.jsonl*")})
    for month in months if newest_months is None else months[-newest_months:]:
        parsed = [_parse(line) for line in _lines(landing_dir / FOLDER, month, faults)]
        runs |= dict.fromkeys(run for run in parsed if run and (as_of is None or run.ended_at <= as_of))
    return sorted(runs, key=lambda run: (run.ended_at, run.source_id))


def pack_runs(landing_dir: Path) -> list[str]:
    """Compress every month but the newest; a line for each damaged one, which stays as it is.

    Only for the holder of the refresh lock.
    """
    folder, faults = landing_dir / FOLDER, []
    for path in sorted(folder.glob("*.jsonl"))[:-1]:
        found: list[str] = []
        text = "".join(f"{line}\n" for line in dict.fromkeys(_lines(folder, _month(path), found)))
        faults += found
        if not found:
            _write_bytes(path.with_name(f"{path.name}.gz"), gzip.compress(text.encode(), mtime=0))
            remove_files(folder, [path.name])
    return faults


def last_seen(runs: Iterable[SourceRun]) -> dict[str, datetime]:
    """source_id -> when it last answered, with something new or not: the age of what is shown from it."""
    return {run.source_id: run.started_at for run in sorted(runs, key=lambda r: r.started_at) if run.status in GOOD}


def _month(path: Path) -> str:
    return path.name.partition(".")[0]


def _lines(folder: Path, month: str, faults: list[str] | None = None) -> list[str]:
    lines: list[str] = []
    for path, read in ((folder / f"{month}.jsonl.gz", _unpack), (folder / f"{month}.jsonl", Path.read_bytes)):
        try:
            lines += read(path).decode(errors="replace").splitlines()
        except FileNotFoundError:
            continue
        except (OSError, EOFError, zlib.error) as error:
            if faults is not None:
                faults.append(f"landing file {path} is damaged: {error}")
    return lines


def _write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _unpack(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def _parse(line: str) -> SourceRun | None:
    try:
        row = json.loads(line)
        times = {name: datetime.fromisoformat(row[name]) for name in ("started_at", "ended_at")}
        return SourceRun(**{name: value for name, value in row.items() if name in _FIELDS} | times)
    except (ValueError, KeyError, TypeError):
        return None
