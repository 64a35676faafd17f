"""`fitmart estimate MODEL`: scenarios made from a few options, and their answers on one screen."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from fitmart.estimator.anatomy import Anatomy
from fitmart.estimator.answer import answer
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.errors import FitmartError
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.scenarios import INPUT, read_scenarios
from fitmart.flows.estimates import find_models
from fitmart.flows.gpu_names import resolve
from fitmart.flows.headers import INDEX, WEIGHTS, anatomy_of_file
from fitmart.flows.sources.models.reading import read_object
from fitmart.warehouse.reference import load_reference

DEFAULT_CONTEXT = 32_768  # what most people serve, where the model has more
SHOWN_GPUS = 12  # the smallest that fit, where no GPU is asked for


class QuestionError(FitmartError):
    """A question that names what there is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The options of the command."""

    model: str
    gpus: tuple[str, ...]
    gpu_count: int
    precisions: tuple[str, ...]
    context: int | None
    users: int | None


@dataclass(frozen=True, slots=True)
class Answers:
    """The rows of the answer, and what was asked."""

    question: Question
    context: int
    rows: pl.DataFrame

    def to_json(self) -> str:
        """An object with the question and a list of answers."""
        asked = asdict(self.question) | {"context": self.context}
        return json.dumps({"question": asked, "answers": self.rows.to_dicts()}, indent=1)

    def print(self) -> None:
        """A table on the terminal."""
        from rich.console import Console

        from fitmart.flows.estimate_table import to_table

        Console().print(to_table(self.rows, self.question.users, self.context))


def estimate_one(question: Question, landing_dir: Path, models_dir: Path | None) -> Answers:
    """Answer the question for each precision and GPU; without a GPU, for the smallest that fit."""
    reference = load_reference()
    models = read_model(question.model, landing_dir, models_dir)
    facts = models.models.row(0, named=True)
    limit = facts["max_context_tokens"] or DEFAULT_CONTEXT
    context = question.context or min(limit, DEFAULT_CONTEXT)
    gpu_ids = [find_gpu(name, reference) for name in question.gpus] or reference.gpus["gpu_id"].to_list()
    rows = pl.DataFrame(
        [
            {
                "model_id": facts["model_id"],
                "precision": precision,
                "gpu_id": gpu_id,
                "gpu_count": str(question.gpu_count),
                "max_model_len": str(context),
            }
            for precision in question.precisions or ("native",)
            for gpu_id in gpu_ids
        ],
        schema=dict.fromkeys(("model_id", "precision", "gpu_id", "gpu_count", "max_model_len"), pl.String),
    )
    typed = read_scenarios(rows)
    answered = typed.select(c for c in INPUT if c in rows.columns or c == "max_model_len").hstack(
        answer(typed, models, reference).drop("row")
    )
    if problem := answered["error"].drop_nulls().first():
        raise QuestionError(str(problem))
    return Answers(question, context, answered if question.gpus else _smallest(answered, reference))


def read_model(name: str, landing_dir: Path, models_dir: Path | None) -> Models:
    """One model: an id of the catalog or of `models_dir`, or the path of a config, headers or a GGUF file."""
    path = Path(name)
    if path.suffix in (".json", *WEIGHTS) or path.is_file():
        return Models.of([_from_file(path)])
    found = find_models([name], landing_dir, models_dir)
    if found.reasons:
        raise QuestionError(next(iter(found.reasons.values())))
    return found.models


def _from_file(path: Path) -> Anatomy:
    if path.suffix in WEIGHTS or path.name.endswith(INDEX):
        return anatomy_of_file(path)
    try:
        config = read_object(path.read_text(encoding="utf-8"))
        side = path.with_name("hf_quant_config.json")
        quant = read_object(side.read_text(encoding="utf-8")) if side.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise QuestionError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    except ValueError as error:
        raise QuestionError(f"{path}: {error}") from None
    name = path.parent.name if path.name == "config.json" else path.stem
    return parse_config(name.replace("__", "/", 1) or str(path), config, quant_config=quant)


def find_gpu(name: str, reference: Reference) -> str:
    """A gpu_id or a GPU's name → gpu_id; QuestionError with the reason where it names none."""
    if name in reference.gpus["gpu_id"].to_list():
        return name
    row = resolve([(name, None)]).row(0, named=True)
    if row["gpu_id"] is None:
        raise QuestionError(f"GPU '{name[:80]}': {row['reason']}")
    return str(row["gpu_id"])


def _smallest(answered: pl.DataFrame, reference: Reference) -> pl.DataFrame:
    """For each precision the smallest GPUs that fit; all that come nearest where none does."""
    sized = answered.join(reference.gpus.select("gpu_id", "memory_bytes"), on="gpu_id", how="left", validate="m:1")
    fits = sized.filter(pl.col("verdict").is_in(["fits", "tight"]))
    chosen = fits.sort("memory_bytes", "gpu_id") if fits.height else sized.sort("memory_bytes", descending=True)
    return chosen.group_by("precision", maintain_order=True).head(SHOWN_GPUS).drop("memory_bytes")
