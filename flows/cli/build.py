"""`fitmart build`: the catalog again, from what has landed and what ships."""

from datetime import datetime
from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option, include_option, models_dir_option


@click.command()
@click.option("--as-of", type=click.DateTime(["%Y-%m-%d"]), help="As it was known on that day.")
@click.option("--only", type=click.Choice(["prices"]), help="Renew prices, their history and costs; keep the rest.")
@include_option
@data_dir_option
@models_dir_option
def command(
    as_of: datetime | None, only: str | None, include: tuple[str, ...], data_dir: Path, models_dir: Path | None
) -> None:
    """Build the catalog again from landing and the bundled snapshot, check and publish it. No network.

    With `--only prices` the published catalog is kept but for its prices; where there is none that this version of
    fitmart has made from these seeds, all of it is built.
    """
    if only and (as_of or include):
        raise click.UsageError("--only prices goes with neither --as-of nor --include")
    from fitmart.flows.build import build
    from fitmart.flows.cli.screen import BuildProgress, say_build
    from fitmart.flows.lock import refresh_lock
    from fitmart.flows.price_build import build_prices

    with refresh_lock(data_dir), BuildProgress() as progress:
        report = build_prices(data_dir) if only else None
        report = report or build(
            data_dir, models_dir, as_of=as_of.date() if as_of else None, include=include, progress=progress
        )
    say_build(report, data_dir)
