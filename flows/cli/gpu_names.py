"""`fitmart gpu-names`: raw GPU names to gpu_id."""

from pathlib import Path

import click

from fitmart.estimator.errors import FitmartError


class NamesError(FitmartError):
    """A file of names that cannot be read."""


@click.command("gpu-names")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Output.",
)
def command(file: Path, output: str) -> None:
    """Resolve the names in FILE, a CSV with a column raw_name and, if known, memory_gb (of one GPU; - reads stdin).

    Answers in the order of the file: gpu_id, is_assumed, reason, candidates. Empty gpu_id: none, and reason says why.
    """
    from fitmart.flows.gpu_names import resolve

    frame = resolve(_read(file))
    if output == "csv":
        click.echo(frame.write_csv(), nl=False)
    elif output == "json":
        click.echo(frame.write_json())
    else:
        _print_table(frame.rows())


def _read(file: Path) -> list[tuple[str, float | None]]:
    import csv
    import sys

    with sys.stdin if str(file) == "-" else file.open(newline="", encoding="utf-8-sig") as stream:
        try:
            reader = csv.DictReader(stream)
            if "raw_name" not in (reader.fieldnames or ()):
                raise NamesError(f"{file}: has no column raw_name")
            return [(row["raw_name"] or "", _number(row.get("memory_gb"), file, reader.line_num)) for row in reader]
        except (UnicodeDecodeError, csv.Error) as error:
            raise NamesError(f"{file}: not readable as CSV in UTF-8 ({error})") from error


def _number(text: str | None, file: Path, line: int) -> float | None:
    import math

    if not (text or "").strip():
        return None
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise NamesError(f"{file} line {line}: memory_gb is {text!r}, not a number of GB")
    return number


def _print_table(rows: list[tuple[object, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("raw name", "GB", "gpu_id", "assumed", "reason")
    for raw_name, memory_gb, gpu_id, is_assumed, reason, _ in rows:
        memory = "" if memory_gb is None else f"{memory_gb:g}"
        table.add_row(str(raw_name), memory, str(gpu_id or ""), "yes" if is_assumed else "", str(reason))
    Console().print(table)
