"""One run over the sources: fetch, land, record. Knows nothing of Prefect (flows/harvest.py)."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from types import ModuleType

from fitmart.estimator.errors import FitmartError
from fitmart.flows.http import Http
from fitmart.flows.landing import LandingResult, land, list_newest, read_one
from fitmart.flows.memory import LandingMemory
from fitmart.flows.runs import last_seen, read_runs, record_run
from fitmart.flows.settings import Settings
from fitmart.flows.sources import registry
from fitmart.flows.sources.contract import Payload, RunStatus, Since, SourceRun

LAND_EVERY = 100  # payloads of a generator between two landings
RECENT_MONTHS = 3  # of source_run, read to know when a source last answered


class UnknownSourceError(FitmartError):
    """No module has the SOURCE_ID that was asked for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The sources to run, in order, and those left out with the reason."""

    chosen: list[ModuleType]
    skipped: dict[str, str]


def plan_sources(only: Sequence[str] | None = None, *, offline: bool = False) -> Plan:
    """All sources, or those named in `only`. A source that lacks its key, or the network, is skipped."""
    modules = {module.SOURCE_ID: module for kind in registry.FOLDERS for module in registry.modules(kind)}
    if unknown := [name for name in only or () if name not in modules]:
        raise UnknownSourceError(f"no source is named {', '.join(unknown)}; there are {', '.join(sorted(modules))}")
    chosen, skipped = [], {}
    for source_id, module in modules.items():
        if only and source_id not in only:
            continue
        if why := _why_not(module, offline=offline):
            skipped[source_id] = why
        else:
            chosen.append(module)
    return Plan(chosen, skipped)


def _why_not(module: ModuleType, *, offline: bool) -> str:
    if not hasattr(module, "fetch"):
        return ""
    if offline:
        return "offline"
    if module.NEEDS and not os.environ.get(module.NEEDS):
        return f"needs {module.NEEDS}"
    return ""


class Harvester:
    """Runs sources, each in a thread of its own. Runs end in `report`, which has one row a source."""

    def __init__(self, settings: Settings, plan: Plan) -> None:
        self.settings = settings
        self._skipped = dict(plan.skipped)
        self._runs: dict[str, SourceRun] = {}
        self._errors: dict[str, tuple[BaseException, datetime]] = {}
        self._started: dict[str, datetime] = {}
        self._landed: dict[str, LandingResult] = {}  # over all tries
        self._lock = threading.Lock()
        self._modules = {module.SOURCE_ID: module for module in plan.chosen}
        self._seen = last_seen(read_runs(settings.landing_dir, newest_months=RECENT_MONTHS))
        self._http = Http(settings)

    @property
    def source_ids(self) -> list[str]:
        return list(self._modules)

    def close(self) -> None:
        self._http.close()

    def run(self, source_id: str) -> SourceRun:
        """Run one source and record it. Its error passes through; `report` records it if no later try succeeds."""
        module = self._modules[source_id]
        with self._lock:
            self._started.setdefault(source_id, _now())
        try:
            run = self._fetch(module) if hasattr(module, "fetch") else self._survey(module)
            record_run(self.settings.landing_dir, run)
        except BaseException as error:
            with self._lock:
                self._errors[source_id] = error, _now()
            raise
        with self._lock:
            self._runs[source_id] = run
        return run

    def report(self) -> list[SourceRun]:
        """One row a source, in order of source_id. Failures, and what was skipped, are recorded by the first call."""
        rest = [self._failed(source_id) for source_id in self._modules if source_id not in self._runs]
        rest += [self._close(source_id, "skipped", reason=why) for source_id, why in self._skipped.items()]
        for run in rest:
            record_run(self.settings.landing_dir, run)
            self._runs[run.source_id] = run
        self._skipped = {}
        return sorted(self._runs.values(), key=lambda run: run.source_id)

    def _failed(self, source_id: str) -> SourceRun:
        error, ended_at = self._errors.get(source_id, (FitmartError("was not run"), _now()))
        lines = str(error).splitlines()
        line = lines[0] if lines else ""
        reason = line if isinstance(error, FitmartError) else f"unexpected {type(error).__name__}: {line}"
        return self._close(source_id, "failed", reason=reason, ended_at=ended_at)

    def _survey(self, module: ModuleType) -> SourceRun:
        count, rejected = module.survey(self.settings)
        reason = f"{len(rejected)} rejected: {rejected[0].reason}" if rejected else ""
        return self._close(module.SOURCE_ID, "ok", payloads=count, reason=reason)

    def _fetch(self, module: ModuleType) -> SourceRun:
        source_id, landing_dir, seen_at = module.SOURCE_ID, self.settings.landing_dir, _now()
        memory = LandingMemory(landing_dir, source_id)
        landed = list_newest(landing_dir, source_id)
        since = Since(
            at=self._seen.get(source_id),
            landed=landed,
            read=lambda name: read_one(landing_dir, landed[name]) if name in landed else None,
            settings=self.settings,
        )
        try:
            for batch in _in_batches(module.fetch(self._http.with_memory(memory), since)):
                self._count(source_id, land(landing_dir, source_id, batch, seen_at))
        finally:
            memory.save()
        total = self._landed.get(source_id, LandingResult(0, 0))
        return self._close(source_id, "ok" if total.added else "unchanged", reason="; ".join(total.faults))

    def _count(self, source_id: str, new: LandingResult) -> None:
        with self._lock:
            old = self._landed.get(source_id, LandingResult(0, 0))
            self._landed[source_id] = LandingResult(
                added=old.added + new.added,
                unchanged=old.unchanged + new.unchanged,
                bytes=old.bytes + new.bytes,
                faults=(*old.faults, *new.faults),
            )

    def _close(
        self,
        source_id: str,
        status: RunStatus,
        *,
        payloads: int | None = None,
        reason: str = "",
        ended_at: datetime | None = None,
    ) -> SourceRun:
        landed = self._landed.get(source_id, LandingResult(0, 0))
        ended_at = ended_at or _now()
        return SourceRun(
            source_id=source_id,
            started_at=self._started.get(source_id, ended_at),
            ended_at=ended_at,
            status=status,
            payloads=landed.added + landed.unchanged if payloads is None else payloads,
            added=landed.added,
            bytes=landed.bytes,
            reason=reason,
        )


def _in_batches(payloads: Iterable[Payload]) -> Iterator[list[Payload]]:
    """A list whole; a generator in batches, the last one cut short by an error included."""
    if isinstance(payloads, Sequence):
        yield list(payloads)
        return
    iterator = iter(payloads)
    while True:
        batch: list[Payload] = []
        try:
            batch.extend(islice(iterator, LAND_EVERY))
        finally:
            if batch:
                yield batch
        if not batch:
            return


def _now() -> datetime:
    return datetime.now(UTC)
