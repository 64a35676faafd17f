"""`fitmart rollback`: back to the build published before."""

from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option


@click.command()
@data_dir_option
def command(data_dir: Path) -> None:
    """Switch the catalog back to the build published before; readers at work go on undisturbed."""
    from fitmart.flows.lock import refresh_lock
    from fitmart.warehouse.connection import CATALOG
    from fitmart.warehouse.errors import CatalogError
    from fitmart.warehouse.publish import build_file, build_ids, rollback

    if not build_ids(data_dir):
        raise CatalogError(f"no build is kept in {data_dir}: run `fitmart refresh` (or `fitmart build`) first")
    with refresh_lock(data_dir):
        build_id = rollback(data_dir)
    click.echo(f"{data_dir / CATALOG} is build {build_id} again ({build_file(data_dir, build_id)})")
