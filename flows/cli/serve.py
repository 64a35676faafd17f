"""`fitmart serve`: the schedules."""

from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option, models_dir_option


@click.command()
@click.option("--prices-cron", default="7 * * * *", show_default=True, help="When to refresh prices (UTC).")
@click.option("--models-cron", default="37 3 * * *", show_default=True, help="When to refresh models (UTC).")
@click.option("--every", type=click.FloatRange(1), metavar="SECONDS", help="Refresh prices so often instead.")
@click.option("--port", default=4200, show_default=True, help="Of the Prefect server started on 127.0.0.1.")
@data_dir_option
@models_dir_option
def command(
    prices_cron: str, models_cron: str, every: float | None, port: int, data_dir: Path, models_dir: Path | None
) -> None:
    """Refresh prices hourly and models daily, as Prefect deployments, until stopped.

    A Prefect server is started on this machine, unless PREFECT_API_URL names one. For a work pool of your own, deploy
    flows/prefect.yaml instead; plain cron with `fitmart refresh` does as well.
    """
    from fitmart.flows.prefect_home import end_orphans
    from fitmart.flows.prefect_server import prefect_server
    from fitmart.flows.settings import Settings, quiet_prefect
    from fitmart.warehouse.files import make_folder

    settings = Settings.from_environment(data_dir=data_dir, models_dir=models_dir)
    make_folder(settings.prefect_home)
    end_orphans(settings.prefect_home)
    quiet_prefect(settings)
    with prefect_server(port) as url:
        import asyncio

        from fitmart.flows.schedules import Schedule, serve

        prices = Schedule(interval_s=every) if every else Schedule(cron=prices_cron)
        click.echo(f"Prices: {f'every {every:g} s' if every else prices_cron}; models: {models_cron} (UTC); {url}")
        models = Schedule(cron=models_cron)
        poll_s = min(10.0, every or 10.0)
        asyncio.run(serve(settings.data_dir, settings.models_dir, prices=prices, models=models, poll_s=poll_s))
