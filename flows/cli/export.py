"""`fitmart export`: the tables as files for BI tools."""

from pathlib import Path
from typing import Literal

import click

from fitmart.flows.cli.options import data_dir_option


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--format", "file_format", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True,
    help="Kind of file.",
)  # fmt: skip
@click.option(
    "--tables", multiple=True, metavar="NAME[,NAME…]", help="Only these tables or views.  [default: all tables]"
)
@data_dir_option
def command(folder: Path, file_format: Literal["parquet", "csv"], tables: tuple[str, ...], data_dir: Path) -> None:
    """Write each table into DIR, with datapackage.json, which says what every column means."""
    from fitmart.warehouse.export import export

    names = [name.strip() for given in tables for name in given.split(",") if name.strip()]
    if tables and not names:
        raise click.UsageError("--tables names no table")
    written = export(data_dir, folder, file_format=file_format, tables=names)
    for file in written:
        click.echo(f"{file.path}  {file.rows:,} rows")
    click.echo(f"{folder / 'datapackage.json'}")
