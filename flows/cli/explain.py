"""`fitmart explain`: one estimate, line by line."""

from pathlib import Path

import click

from fitmart.flows.cli.options import data_dir_option, models_dir_option


@click.command()
@click.argument("model")
@click.option("--gpu", required=True, help="gpu_id or a GPU's name.")
@click.option(
    "--gpu-count", type=click.IntRange(1, 1024), default=1, show_default=True, help="GPUs that share the model."
)
@click.option("--precision", default="native", show_default="as stored", help="Precision of the weights.")
@click.option("--context", type=click.IntRange(1), help="Tokens of one user.  [default: the model's, 32,768 at most]")
@click.option("--engine", help="vllm, llama.cpp, sglang, tensorrt-llm or mlx.  [default: the precision's]")
@click.option("--engine-version", help="Whose rules hold.  [default: the newest]")
@click.option("--kv-precision", help="Of the KV cache.  [default: 16 bit]")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@data_dir_option
@models_dir_option
def command(
    model: str,
    gpu: str,
    gpu_count: int,
    precision: str,
    context: int | None,
    engine: str | None,
    engine_version: str | None,
    kv_precision: str | None,
    as_json: bool,
    data_dir: Path,
    models_dir: Path | None,
) -> None:
    """Explain whether MODEL fits: the sum line by line, with formula, numbers and source, and the verdict in words."""
    from fitmart.flows.explain import ExplainQuestion, explain_one

    question = ExplainQuestion(
        model=model,
        gpu=gpu,
        gpu_count=gpu_count,
        precision=precision.lower(),
        context=context,
        engine=engine,
        engine_version=engine_version,
        kv_precision=kv_precision,
    )
    explained = explain_one(question, data_dir / "landing", models_dir)
    if as_json:
        click.echo(explained.to_json())
    else:
        explained.print()
