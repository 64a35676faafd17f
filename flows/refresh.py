"""The main job: harvest every source, then build and publish; one refresh at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from fitmart.flows.build import BuildReport, Progress, build
from fitmart.flows.lock import refresh_lock
from fitmart.flows.settings import Settings
from fitmart.flows.sources.contract import SourceRun


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What every source did, and what the build made of it."""

    runs: list[SourceRun]
    build: BuildReport

    @property
    def failed(self) -> list[SourceRun]:
        return [run for run in self.runs if run.status == "failed"]


def refresh(
    settings: Settings,
    *,
    only: Sequence[str] | None = None,
    offline: bool = False,
    include: Sequence[str] = (),
    progress: Progress = lambda done, total: None,
) -> RefreshReport:
    """Harvest (or `only` those sources), build (or `include` only models that match), check, publish.

    A source that fails costs only itself. LockHeldError names another refresh at work; CheckError and StorageError
    leave the catalog that is published as it is.
    """
    from fitmart.flows.harvest import harvest

    with refresh_lock(settings.data_dir, wait_s=settings.lock_wait_s):
        runs = harvest(settings, only=only, offline=offline)
        return RefreshReport(runs, build(settings.data_dir, settings.models_dir, include=include, progress=progress))
