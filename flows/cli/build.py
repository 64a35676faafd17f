"""`fitmart build`: the catalog again, from what has landed and what ships."""

from datetime import datetime
from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option, include_option, models_dir_option


@click.command()
@click.option("--as-of", type=click.DateTime(["%Y-%m-%d"]), help="As it was known on that day.")
@include_option
@data_dir_option
@models_dir_option
def command(as_of: datetime | None, include: tuple[str, ...], data_dir: Path, models_dir: Path | None) -> None:
    """Build the catalog again from landing and the bundled snapshot, check and publish it. No network."""
    from fitmart.flows.build import build
    from fitmart.flows.cli.screen import BuildProgress, say_build
    from fitmart.flows.lock import refresh_lock

    with refresh_lock(data_dir), BuildProgress() as progress:
        report = build(data_dir, models_dir, as_of=as_of.date() if as_of else None, include=include, progress=progress)
    say_build(report, data_dir)
