"""The harvest as a Prefect flow: one task a source, retried by the type of its error; one failure costs one source.

Results are read from our own records, never from Prefect. Prefect is imported by `harvest` only, after its settings.
"""

from collections.abc import Sequence

from fitmart.flows.harvester import Harvester, plan_sources
from fitmart.flows.prefect_home import drop_large_database, end_orphans
from fitmart.flows.settings import Settings, quiet_prefect
from fitmart.flows.sources.contract import SourceRun
from fitmart.warehouse.files import make_folder


def harvest(settings: Settings, only: Sequence[str] | None = None, offline: bool = False) -> list[SourceRun]:
    """Fetch and land all sources (or `only` those); one row a source, in order of source_id.

    Only for the holder of the refresh lock (flows/lock.py). `offline` skips what needs the network. What a source does
    wrong is its row; errors are UnknownSourceError, StorageError and PrefectError.
    """
    plan = plan_sources(only, offline=offline)
    make_folder(settings.prefect_home)
    end_orphans(settings.prefect_home)
    drop_large_database(settings.prefect_home)
    quiet_prefect(settings)
    from fitmart.flows.harvest_flow import run_flow

    harvester = Harvester(settings, plan)
    try:
        run_flow(harvester)
        return harvester.report()
    finally:
        harvester.close()
