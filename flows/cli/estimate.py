"""`fitmart estimate`: one model on a GPU, or a file of scenarios."""

from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option, models_dir_option


@click.command()
@click.argument("model", required=False)
@click.option(
    "--scenarios", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="CSV, a scenario a row."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Where the answers go (CSV).")
@click.option("--gpu", "gpus", multiple=True, help="gpu_id or a GPU's name; may be repeated.  [default: every one]")
@click.option(
    "--gpu-count", type=click.IntRange(1, 1024), default=1, show_default=True, help="GPUs that share the model."
)
@click.option("--precision", "precisions", multiple=True, help="May be repeated.  [default: as stored]")
@click.option("--context", type=click.IntRange(1), help="Tokens of one user.  [default: the model's, 32,768 at most]")
@click.option("--users", type=click.IntRange(1), help="Say of each GPU whether it holds so many at once.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@data_dir_option
@models_dir_option
def command(
    model: str | None,
    scenarios: Path | None,
    output: Path | None,
    gpus: tuple[str, ...],
    gpu_count: int,
    precisions: tuple[str, ...],
    context: int | None,
    users: int | None,
    as_json: bool,
    data_dir: Path,
    models_dir: Path | None,
) -> None:
    """Estimate MODEL: a model's id in the catalog or in --models-dir, or the path of a config.json.

    With --scenarios, one row in is one row out, in the same order; what cannot be estimated says so in `error`.
    """
    if (model is None) == (scenarios is None):
        raise click.UsageError("give a model, or --scenarios FILE")
    landing_dir = data_dir / "landing"
    if scenarios is not None:
        from fitmart.flows.scenario_files import answer_file

        answer_file(scenarios, output, landing_dir, models_dir)
        return
    from fitmart.flows.one_model import Question, estimate_one

    question = Question(
        model=model or "", gpus=gpus, gpu_count=gpu_count, precisions=precisions, context=context, users=users
    )
    answers = estimate_one(question, landing_dir, models_dir)
    if as_json:
        click.echo(answers.to_json())
    else:
        answers.print()
