"""Fit the factors of fine-tuning to published peaks, test them with a model left out, and write both down.

    python tests/accuracy/fit_finetune.py

Reads measurements/finetune.csv (one GPU, tokens known) and writes the section "Fine-tuning" of RESULTS.md; the factors
in estimator/finetune.py are those printed here, rounded. offloaded_share: Unsloth's first offloading (2024-04) saved
30 % of the memory of its day, half of the checkpoints; today's moves all of them.
"""

from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path

import polars as pl
from speed_report import replace_section
from speed_rows import MEASUREMENTS, read_models

from fitmart.estimator.finetune import FACTORS, Factors, finetune
from fitmart.estimator.units import GB

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
GRID = {
    "kept": [0.7, 0.8, 0.9, 1.0],
    "working": [1.1, 1.2, 1.3, 1.4],
    "logit_bytes": [14.0, 16.0, 17.0, 18.0, 19.0, 20.0],
    "overhead_bytes": [0.4 * GB, 0.7 * GB, 1.0 * GB, 1.3 * GB],
}


def read_measured() -> pl.DataFrame:
    """The measured rows in the form that `finetune` asks for."""
    rows = pl.read_csv(MEASUREMENTS / "finetune.csv", infer_schema_length=None)
    return rows.with_columns(gpu_count=pl.lit(1, pl.Int64), sharding=pl.lit("none"))


@cache
def models_and_tensors() -> tuple[pl.DataFrame, pl.DataFrame]:
    models, tensors, _ = read_models()
    trained = pl.col("model_id").is_in(read_measured()["model_id"].unique().to_list())
    return models.filter(trained), tensors.filter(trained)


def errors(rows: pl.DataFrame, factors: Factors) -> pl.Series:
    """predicted / measured - 1."""
    answers = finetune(*models_and_tensors(), rows, factors=factors)
    return answers.select(pl.col("finetune_bytes") / pl.col("measured_bytes") - 1).to_series()


def every_error(rows: pl.DataFrame) -> dict[Factors, pl.Series]:
    """The errors of all rows under each combination of the grid."""
    choices = (Factors(**dict(zip(GRID, values, strict=True))) for values in product(*GRID.values()))
    return {factors: errors(rows, factors) for factors in choices}


def best(table: dict[Factors, pl.Series], train: pl.Series) -> Factors:
    """The factors with the least mean error on the rows of `train`."""
    return min(table, key=lambda f: float(table[f].filter(train).abs().mean()))  # type: ignore[arg-type]


def pair(values: pl.Series) -> str:
    share = values.abs() * 100
    return f"{share.median():.1f} / {share.mean():.1f}"


def section(rows: pl.DataFrame) -> str:
    table = every_error(rows)
    fitted = best(table, pl.repeat(value=True, n=rows.height, eager=True))
    lines = ["| without | n | error | error in sample |", "|---|---|---|---|"]
    left_out, used = [], errors(rows, FACTORS)
    for by in ("model_id", "framework"):
        parts = []
        for value in rows[by].unique(maintain_order=True):
            own = rows[by] == value
            parts.append(table[best(table, ~own)].filter(own))
            lines.append(f"| {value} | {own.sum()} | {pair(parts[-1])} | {pair(used.filter(own))} |")
        left_out.append(f"each {by.removesuffix('_id')} left out {pair(pl.concat(parts))}")
    return "\n".join(
        [
            f"{rows.height} published peaks of one GPU (measurements/finetune.csv, each with its source), by",
            "`python tests/accuracy/fit_finetune.py`; error = |predicted / measured - 1| of the bytes, median / mean",
            f"in percent. In sample {pair(used)}; {'; '.join(left_out)}.",
            "",
            f"Fitted: {', '.join(f'{k} {v:g}' for k, v in asdict(fitted).items())}.",
            "",
            *lines,
        ]
    )


def main() -> None:
    """Fit, test, write."""
    text = section(read_measured())
    replace_section(RESULTS, "Fine-tuning", text)
    print(text)


if __name__ == "__main__":
    main()
