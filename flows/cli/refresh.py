"""`fitmart refresh`: harvest, build, check, publish."""

from pathlib import Path

import click

from fitmart.estimator.errors import FitmartError
from fitmart.flows.cli.options import data_dir_option, include_option, models_dir_option

STALE_OR_FAILED = 3


@click.command()
@click.option("--offline", is_flag=True, help="Ask no source on the network.")
@click.option("--only", multiple=True, metavar="SOURCE", help="Harvest only this source; may be repeated.")
@click.option("--strict", is_flag=True, help="Exit with 3 where a source failed or is stale.")
@click.option(
    "--runner", type=click.Choice(["threads", "dask"]), default="threads", show_default=True, help="Who works."
)
@click.option("--lake", metavar="URL", help="Publish the tables there as well (not built yet).")
@include_option
@data_dir_option
@models_dir_option
@click.pass_context
def command(
    ctx: click.Context,
    offline: bool,
    only: tuple[str, ...],
    strict: bool,
    runner: str,
    lake: str | None,
    include: tuple[str, ...],
    data_dir: Path,
    models_dir: Path | None,
) -> None:
    """Harvest every source, build the catalog, check it and publish it.

    A source that fails costs only itself: what it sent last, or the bundled snapshot, stays in use.
    """
    if runner != "threads" or lake:
        raise FitmartError(f"refresh: {'--lake' if lake else '--runner dask'} is not built yet; leave it out")
    from fitmart.flows.cli.screen import BuildProgress, say_refresh
    from fitmart.flows.refresh import refresh
    from fitmart.flows.settings import Settings

    settings = Settings.from_environment(data_dir=data_dir, models_dir=models_dir)
    with BuildProgress() as progress:
        report = refresh(settings, only=only or None, offline=offline, include=include, progress=progress)
    stale = say_refresh(report, data_dir)
    if strict and (report.failed or stale):
        ctx.exit(STALE_OR_FAILED)
