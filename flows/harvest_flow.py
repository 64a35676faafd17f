"""The Prefect side of the harvest. Importing it imports Prefect: call settings.quiet_prefect before."""

from typing import Any

from prefect import flow, task, unmapped
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task

from fitmart.estimator.errors import FitmartError
from fitmart.flows.errors import TransientError
from fitmart.flows.harvester import Harvester
from fitmart.flows.sources.contract import SourceRun

RETRIES = 1  # of a whole source, on top of the retries of each request
RETRY_DELAY_S = 2


class PrefectError(FitmartError):
    """Prefect itself did not run."""


def _is_transient(task: "Task[..., None]", run: TaskRun, state: State) -> bool:
    error = state.result(raise_on_failure=False)
    return isinstance(error, TransientError) and (error.retry_after_s or 0) <= RETRY_DELAY_S


@task(
    task_run_name="harvest {source_id}",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAY_S,
    retry_condition_fn=_is_transient,
    cache_policy=NO_CACHE,
    tags=["source"],
)
def harvest_source(source_id: str, harvester: Harvester) -> None:
    """Fetch and land one source."""
    harvester.run(source_id)


@flow(name="harvest")
def harvest_sources(harvester: Harvester) -> None:
    """All sources; ends well whatever becomes of single ones."""
    states = harvest_source.map(harvester.source_ids, unmapped(harvester), return_state=True)
    del states  # our own records say what happened
    create_table_artifact(
        key="refresh-report",
        table=[_to_row(run) for run in harvester.report()],
        description="What every source gave in the last refresh.",
    )


def run_flow(harvester: Harvester) -> None:
    """Run the flow with as many threads as the settings allow."""
    runner: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=harvester.settings.source_concurrency)
    try:
        harvest_sources.with_options(task_runner=runner, validate_parameters=False)(harvester)  # type: ignore[arg-type]
    except FitmartError:
        raise
    except Exception as error:
        lines = str(error).splitlines()
        raise PrefectError(
            f"Prefect could not run the harvest: {lines[0] if lines else type(error).__name__}"
        ) from error


def _to_row(run: SourceRun) -> dict[str, str | int | float]:
    return {
        "source": run.source_id,
        "status": run.status,
        "payloads": run.payloads,
        "added": run.added,
        "bytes": run.bytes,
        "seconds": round((run.ended_at - run.started_at).total_seconds(), 1),
        "reason": run.reason,
    }
