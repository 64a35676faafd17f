"""`fitmart query`: one read-only statement, answered as a table, CSV, JSON or Parquet."""

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from fitmart.flows.cli.options import data_dir_option

if TYPE_CHECKING:
    from fitmart.warehouse.guard import Answer

_SUFFIXES = {".csv": "csv", ".json": "json", ".parquet": "parquet"}


@click.command()
@click.argument("sql", required=False)
@click.option(
    "-f",
    "--file",
    type=click.File(encoding="utf-8"),
    help="Read the statement from a file ('-': standard input).",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    help="How to write the answer.  [default: by -o's suffix, else table]",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True, help="Seconds."
)
@data_dir_option
def command(
    sql: str | None, file: TextIO | None, file_format: str | None, output: Path | None, timeout: float, data_dir: Path
) -> None:
    """Ask the catalog in SQL (DuckDB's dialect).

    One statement that reads: it can reach nothing but the catalog. `SHOW TABLES` and `DESCRIBE fit` show what is there.
    """
    if (sql is None) == (file is None):
        raise click.UsageError("give one statement, as SQL or with -f FILE")
    chosen = file_format or _SUFFIXES.get(output.suffix if output else "", "table")
    if chosen == "parquet" and output is None:
        raise click.UsageError("--format parquet needs -o FILE")
    statement = sql if sql is not None else _read(file)
    try:
        _answer(statement, chosen, output, timeout, data_dir)
    except BrokenPipeError:  # `fitmart query … | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _read(file: TextIO | None) -> str:
    try:
        return file.read() if file else ""
    except UnicodeDecodeError:
        raise click.UsageError("the statement's file is not UTF-8 text") from None


def _answer(statement: str, file_format: str, output: Path | None, timeout: float, data_dir: Path) -> None:
    from fitmart.warehouse.answers import write_parquet
    from fitmart.warehouse.connection import open_reader
    from fitmart.warehouse.files import replacing
    from fitmart.warehouse.guard import ask, ask_arrow

    with closing(open_reader(data_dir)) as con:
        if output is None:
            with ask(con, statement, seconds=timeout) as answer:
                _write(answer, file_format, sys.stdout)
            sys.stdout.flush()
        elif file_format == "parquet":
            with replacing(output) as path, ask_arrow(con, statement, seconds=timeout) as reader:
                write_parquet(reader, path)
        else:
            with (
                replacing(output) as path,
                path.open("w", encoding="utf-8", newline="") as out,
                ask(con, statement, seconds=timeout) as answer,
            ):
                _write(answer, file_format, out)


def _write(answer: "Answer", file_format: str, out: TextIO) -> None:
    from fitmart.warehouse.answers import TABLE_ROWS, write_csv, write_json, write_table

    if file_format == "csv":
        write_csv(answer, out)
    elif file_format == "json":
        write_json(answer, out)
    elif write_table(answer, out, is_terminal=out.isatty()):
        click.echo(f"fitmart: the first {TABLE_ROWS} rows; --format csv gives all", err=True)
