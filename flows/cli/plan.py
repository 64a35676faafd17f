"""`fitmart plan`: the cheapest configurations that hold a workload."""

from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option, models_dir_option


@click.command()
@click.argument("model")
@click.option("--users", type=click.IntRange(1, 65536), required=True, help="Users at once.")
@click.option("--context", type=click.IntRange(1), help="Tokens of one user.  [default: the model's, 8,192 at most]")
@click.option("--input-tokens", type=click.IntRange(1), help="Of a request.  [default: three quarters of the context]")
@click.option("--output-tokens", type=click.IntRange(1), help="Of a request.  [default: the rest of the context]")
@click.option("--requests-per-day", type=click.FloatRange(min=0, min_open=True), help="That have to be served.")
@click.option(
    "--min-tokens-per-s",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="What every user gets at least.",
)
@click.option(
    "--kv-precision", type=click.Choice(["bf16", "fp8"]), default="bf16", show_default=True, help="Of the KV cache."
)
@click.option("--precision", "precisions", multiple=True, help="May be repeated.  [default: those of the catalog]")
@click.option("--gpu", "gpus", multiple=True, help="Only this one ('H100 SXM', '2x RTX 4090'); may be repeated.")
@click.option("--owned", multiple=True, metavar="GPU", help="GPUs you own, as in --gpu: electricity instead of rent.")
@click.option("--spot", is_flag=True, help="Interruptible offers instead of those on demand.")
@click.option("--eu", "is_eu", is_flag=True, help="Only offers in the EU.")
@click.option(
    "--hours-per-day",
    type=click.FloatRange(min=0, max=24, min_open=True),
    default=24.0,
    show_default=True,
    help="Paid for: less than 24 where it scales to zero.",
)
@click.option("--max-age-days", type=click.IntRange(1), default=90, show_default=True, help="Of an offer.")
@click.option("--places", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many of each list.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@data_dir_option
@models_dir_option
def command(
    model: str,
    users: int,
    context: int | None,
    input_tokens: int | None,
    output_tokens: int | None,
    requests_per_day: float | None,
    min_tokens_per_s: float,
    kv_precision: str,
    precisions: tuple[str, ...],
    gpus: tuple[str, ...],
    owned: tuple[str, ...],
    spot: bool,
    is_eu: bool,
    hours_per_day: float,
    max_age_days: int,
    places: int,
    as_json: bool,
    data_dir: Path,
    models_dir: Path | None,
) -> None:
    """Plan MODEL: the cheapest configurations that hold so many users, and why others just do not.

    Every figure is estimated for the request itself; prices are the catalog's, of exactly that GPU and count.
    """
    if owned and (spot or gpus or is_eu):
        raise click.UsageError("--owned says which GPUs and needs no offer: without --gpu, --spot and --eu")
    from fitmart.flows.plan import PlanQuestion, plan_one

    question = PlanQuestion(
        model=model,
        users=users,
        context=context,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        requests_per_day=requests_per_day,
        min_user_tokens_per_s=min_tokens_per_s,
        kv_precision=kv_precision,
        precisions=tuple(p.lower() for p in precisions),
        gpus=owned or gpus,
        payment="owned" if owned else "spot" if spot else "on_demand",
        hours_per_day=hours_per_day,
        is_eu=is_eu,
        max_age_days=max_age_days,
        places=places,
    )
    answer = plan_one(question, data_dir, models_dir)
    if as_json:
        click.echo(answer.to_json())
    else:
        answer.print()
