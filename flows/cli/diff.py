"""`fitmart diff`: what has changed since a day."""

import json
from datetime import datetime
from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option


@click.command()
@click.option(
    "--since",
    required=True,
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]),
    help="A day, or a moment (UTC).",
)
@click.option("--json", "as_json", is_flag=True, help="For scripts; all rows.")
@data_dir_option
def command(since: datetime, as_json: bool, data_dir: Path) -> None:
    """Say what has changed since a day: cheaper offers, new models, stale sources."""
    from fitmart.flows.diff import diff, to_lines

    changes = diff(data_dir, since)
    if as_json:
        click.echo(json.dumps(changes.to_dict(), indent=1, ensure_ascii=False))
    else:
        click.echo("\n".join(to_lines(changes)))
