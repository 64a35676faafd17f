"""`fitmart page`: not built yet."""

import click

from fitmart.estimator.errors import FitmartError


@click.command()
@click.argument("model")
def command(model: str) -> None:
    """Write the static page of MODEL. Not built yet: the command says so."""
    raise FitmartError(
        f"page: static pages are not built yet; `fitmart estimate {model}` and the views answer the same"
    )
