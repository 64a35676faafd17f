"""A CSV of scenarios in, a CSV of answers out, whole or not at all."""

import sys
from pathlib import Path

import polars as pl
import polars.selectors as cs

from fitmart.estimator.errors import FitmartError
from fitmart.flows.estimates import answer_scenarios
from fitmart.warehouse.files import replacing


class ScenarioFileError(FitmartError):
    """A scenarios file that cannot be read as one; the message says why."""


def answer_file(path: Path, output: Path | None, landing_dir: Path, models_dir: Path | None) -> None:
    """Answer every row of `path`; write to `output`, or to standard output."""
    answers = answer_scenarios(read_rows(path), landing_dir, models_dir)
    if output is None:
        sys.stdout.write(answers.write_csv())
        return
    with replacing(output) as temporary:
        answers.write_csv(temporary)


def read_rows(path: Path) -> pl.DataFrame:
    """The file's cells as text. ScenarioFileError where it is no CSV, or lacks a required column."""
    try:
        rows = pl.read_csv(path, infer_schema=False)
    except pl.exceptions.NoDataError:
        raise ScenarioFileError(f"{path}: is empty") from None
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise ScenarioFileError(f"{path}: not readable as CSV in UTF-8 ({str(error).splitlines()[0]})") from None
    twice = rows.select(cs.matches(r"_duplicated_\d+$")).columns  # what Polars makes of a name's second column
    if twice:
        raise ScenarioFileError(f"{path}: has two columns {twice[0].rpartition('_duplicated_')[0]}")
    for column in ("model_id", "precision"):
        if column not in rows.columns:
            raise ScenarioFileError(f"{path}: has no column {column}")
    return rows
