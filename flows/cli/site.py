"""`fitmart site`: not built yet."""

import click

from fitmart.estimator.errors import FitmartError


@click.command()
def command() -> None:
    """Write the static pages of all models. Not built yet: the command says so."""
    raise FitmartError("site: static pages are not built yet; `fitmart export` gives every table to a BI tool")
