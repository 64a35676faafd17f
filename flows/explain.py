"""`fitmart explain`: one configuration, and the lines of its sum on one screen."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from fitmart.estimator.answer import problems
from fitmart.estimator.explain import Explanation, Line, explain
from fitmart.estimator.scenarios import INPUT, read_scenarios, with_defaults
from fitmart.estimator.units import GIB
from fitmart.flows.one_model import DEFAULT_CONTEXT, QuestionError, find_gpu, read_model
from fitmart.warehouse.reference import load_reference


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainQuestion:
    """The options of the command."""

    model: str
    gpu: str
    gpu_count: int
    precision: str
    context: int | None
    engine: str | None = None
    engine_version: str | None = None
    kv_precision: str | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """What was asked, and the answer."""

    title: str
    scenario: dict[str, str | None]
    explanation: Explanation

    def to_json(self) -> str:
        """An object of question, lines and verdict."""
        told = self.explanation
        return json.dumps(
            {
                "question": self.scenario,
                "lines": [asdict(line) for line in told.lines],
                "verdict": told.verdict,
                "limited_by": told.limited_by,
                "words": told.words,
            },
            indent=1,
        )

    def print(self) -> None:
        """A table on the terminal, the verdict below."""
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", box=None, pad_edge=False)
        table.add_column("")
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("GiB", justify="right", no_wrap=True)
        table.add_column("how")
        table.add_column("source", style="dim", overflow="fold")
        for line in self.explanation.lines:
            table.add_row(line.label, _value(line), _gib(line), line.formula, line.source)
        console = Console(width=None if Console().is_terminal else 200)
        console.print(table)
        console.print(self.explanation.words, highlight=False)


def explain_one(question: ExplainQuestion, landing_dir: Path, models_dir: Path | None) -> Explained:
    """Explain that configuration; QuestionError where it names what there is not."""
    reference = load_reference()
    models = read_model(question.model, landing_dir, models_dir)
    facts = models.models.row(0, named=True)
    context = question.context or min(facts["max_context_tokens"] or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
    scenario = {
        "model_id": facts["model_id"],
        "precision": question.precision,
        "engine": question.engine,
        "engine_version": question.engine_version,
        "gpu_id": find_gpu(question.gpu, reference),
        "gpu_count": str(question.gpu_count),
        "max_model_len": str(context),
        "kv_cache_dtype": question.kv_precision,
    }
    typed = read_scenarios(pl.DataFrame([scenario], schema=dict.fromkeys(scenario, pl.String)))
    filled = problems(with_defaults(typed, reference.precisions), models, reference)
    if problem := filled["error"][0]:
        raise QuestionError(problem)
    known = {name: value for name, value in scenario.items() if name in INPUT}
    title = (
        f"{facts['model_id']} at {filled['precision'][0]} with {filled['engine'][0]} on "
        f"{question.gpu_count} × {scenario['gpu_id']}, {context:,} tokens"
    )
    return Explained(title, known, explain(filled, models, reference))


def _value(line: Line) -> str:
    if line.value is None:
        return "–"
    if isinstance(line.value, float):
        return f"{line.value:,.1f} {line.unit}"
    return f"{line.value:,} {line.unit}" if isinstance(line.value, int) else str(line.value)


def _gib(line: Line) -> str:
    return f"{line.value / GIB:,.2f}" if line.unit == "bytes" and isinstance(line.value, int) else ""
