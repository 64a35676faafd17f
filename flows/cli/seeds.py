"""`fitmart seeds`: the bundled snapshot, rebuilt from landing."""

from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@data_dir_option
def command(folder: Path, data_dir: Path) -> None:
    """Rebuild the bundled snapshot from what has landed into FOLDER (warehouse/seeds of a checkout, say)."""
    from fitmart.flows.seeds import write_seeds
    from fitmart.warehouse.reference import load_reference

    for name, rows in write_seeds(data_dir / "landing", folder, load_reference()).items():
        click.echo(f"{folder / name}: {rows:,} rows")
