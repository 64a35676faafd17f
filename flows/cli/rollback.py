"""`fitmart rollback`: back to the build published before."""

from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option


@click.command()
@data_dir_option
def command(data_dir: Path) -> None:
    """Switch the catalog back to the build published before; readers at work go on undisturbed."""
    from fitmart.warehouse.publish import build_file, rollback

    build_id = rollback(data_dir)
    click.echo(f"{data_dir / 'fitmart.duckdb'} is build {build_id} again ({build_file(data_dir, build_id)})")
