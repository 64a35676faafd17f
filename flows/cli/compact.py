"""`fitmart compact`: one landing file a source and month."""

from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option


@click.command()
@data_dir_option
def command(data_dir: Path) -> None:
    """Merge what has landed into one file a source and month; a kill leaves every payload landed once."""
    from fitmart.flows.compact import compact
    from fitmart.flows.lock import refresh_lock

    with refresh_lock(data_dir):
        done = compact(data_dir / "landing")
    files = f"{done.files_before:,} files to {done.files_after:,}"
    click.echo(f"Compacted {files}, {done.bytes_before / 1e6:,.1f} MB to {done.bytes_after / 1e6:,.1f} MB")
    for fault in done.faults:
        click.echo(f"fitmart: {fault}", err=True)
