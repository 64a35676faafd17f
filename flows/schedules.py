"""The schedules as Prefect flows: prices hourly, models daily. Importing this imports Prefect: see quiet_prefect.

One run at a time, whoever starts it: a deployment's second run is cancelled while its first is at work, and every run
holds the refresh lock, for which it waits. A run ends with a state message that says what came of it, an artifact of
the changes, and an event (`fitmart.catalog.changed`, `fitmart.refresh.failed`) for automations to act upon.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import (
    ConcurrencyLimitConfig,
    ConcurrencyLimitStrategy,
    FlowRun,
    State,
)
from prefect.deployments.runner import EntrypointType
from prefect.events import emit_event
from prefect.flows import Flow
from prefect.runner import Runner
from prefect.states import Completed

from fitmart.flows.build import BuildReport, build
from fitmart.flows.diff import diff, to_lines
from fitmart.flows.harvest import harvest
from fitmart.flows.harvester import plan_sources
from fitmart.flows.lock import refresh_lock
from fitmart.flows.price_build import build_prices
from fitmart.flows.settings import Settings
from fitmart.flows.sources import registry
from fitmart.flows.sources.contract import SourceRun
from fitmart.warehouse.publish import build_ids, built_at

LOCK_WAIT_S = 1800.0  # of a scheduled run for another's end
PRICES_CRON = "7 * * * *"  # not on the hour, when everybody asks
MODELS_CRON = "37 3 * * *"  # UTC


def alert(flow: Flow[..., Any], flow_run: FlowRun, state: State) -> None:
    """Prefect hook (on_completion): what the run's build changed, as an artifact and an event; nothing, if nothing."""
    data_dir = _settings(flow_run.parameters).data_dir
    kept = build_ids(data_dir)
    if not state.message or not state.message.startswith("published") or len(kept) < 2:
        return
    changes = diff(data_dir, built_at(kept[-2]))
    if changes.is_empty():
        return
    text = "\n".join(f"    {line}" for line in to_lines(changes))
    create_markdown_artifact(key="catalog-changes", markdown=text, description="What the last build changed.")
    emit_event("fitmart.catalog.changed", resource=_resource(data_dir), payload=changes.to_dict())


def alert_failure(flow: Flow[..., Any], flow_run: FlowRun, state: State) -> None:
    """Prefect hook (on_failure, on_crashed): the run's error as an event."""
    emit_event(
        "fitmart.refresh.failed",
        resource=_resource(_settings(flow_run.parameters).data_dir),
        payload={"flow": flow.name, "flow_run_id": str(flow_run.id), "message": state.message or ""},
    )


@flow(name="refresh-prices", on_completion=[alert], on_failure=[alert_failure], on_crashed=[alert_failure])
def refresh_prices(data_dir: str | None = None, models_dir: str | None = None) -> State[dict[str, Any]]:
    """Ask the sources of prices, and renew the prices of the catalog."""
    return _refresh(_settings({"data_dir": data_dir, "models_dir": models_dir}), ("prices", "tokens"), _build_prices)


@flow(name="refresh-models", on_completion=[alert], on_failure=[alert_failure], on_crashed=[alert_failure])
def refresh_models(data_dir: str | None = None, models_dir: str | None = None) -> State[dict[str, Any]]:
    """Ask the sources of models, and build the whole catalog."""
    return _refresh(_settings({"data_dir": data_dir, "models_dir": models_dir}), ("models",), _build_all)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a flow runs: a cron line (UTC) or every so many seconds."""

    cron: str | None = None
    interval_s: float | None = None


async def serve(
    data_dir: Path, models_dir: Path | None, *, prices: Schedule, models: Schedule, poll_s: float = 10.0
) -> None:
    """Register both flows as deployments of this machine, and run them when due, one at a time, until stopped."""
    parameters = {"data_dir": str(data_dir.resolve()), "models_dir": str(models_dir.resolve()) if models_dir else None}
    one_run = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
    runner = Runner(name="fitmart", limit=1, query_seconds=poll_s)
    for scheduled, name, schedule in ((refresh_prices, "hourly", prices), (refresh_models, "daily", models)):
        deployment = await scheduled.ato_deployment(
            name,
            cron=schedule.cron,
            interval=schedule.interval_s,
            parameters=parameters,
            concurrency_limit=one_run,
            entrypoint_type=EntrypointType.MODULE_PATH,
            tags=["fitmart"],
        )
        await runner.aadd_deployment(deployment)
    await runner.start()


def _refresh(
    settings: Settings, kinds: Sequence[str], then: Callable[[Settings], BuildReport]
) -> State[dict[str, Any]]:
    wanted = {module.SOURCE_ID for kind in kinds for module in registry.modules(kind)}
    only = sorted(wanted & {module.SOURCE_ID for module in plan_sources().chosen})
    with refresh_lock(settings.data_dir, wait_s=settings.lock_wait_s):
        runs = harvest(settings, only=only)
        report = then(settings)
    return Completed(message=_message(runs, report), data={"build_id": report.build_id, "sources": _counts(runs)})


def _build_prices(settings: Settings) -> BuildReport:
    return build_prices(settings.data_dir) or _build_all(settings)


def _build_all(settings: Settings) -> BuildReport:
    return build(settings.data_dir, settings.models_dir)


def _settings(parameters: dict[str, Any]) -> Settings:
    data_dir, models_dir = (parameters.get(name) for name in ("data_dir", "models_dir"))
    settings = Settings.from_environment(
        data_dir=Path(data_dir) if data_dir else None, models_dir=Path(models_dir) if models_dir else None
    )
    waits = "FITMART_LOCK_WAIT_S" in os.environ
    return settings if waits else replace(settings, lock_wait_s=LOCK_WAIT_S)


def _message(runs: Sequence[SourceRun], report: BuildReport) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in _counts(runs).items())
    failed = "; ".join(f"{run.source_id}: {run.reason}" for run in runs if run.status == "failed")
    done = f"published {report.build_id}" if report.build_id else "nothing has changed"
    return f"{done} after {report.seconds:.0f} s; sources: {counts}" + (f"; {failed}" if failed else "")


def _counts(runs: Sequence[SourceRun]) -> dict[str, int]:
    statuses = sorted({run.status for run in runs})
    return {status: sum(run.status == status for run in runs) for status in statuses}


def _resource(data_dir: Path) -> dict[str, str]:
    return {"prefect.resource.id": f"fitmart.catalog.{data_dir.resolve().as_posix().strip('/').replace('/', '.')}"}
