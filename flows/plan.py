"""`fitmart plan`: a workload, the offers of the catalog, and the cheapest configurations that hold it on one screen."""

import json
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from fitmart.estimator.cost import api_usd_per_mtok, break_even_tokens_per_day
from fitmart.estimator.frames import conform
from fitmart.estimator.launch import launch_lines
from fitmart.estimator.offers import CURRENT_SCHEMA, MOMENT, best_offer
from fitmart.estimator.plan import (
    Payment,
    Plan,
    Workload,
    candidates,
    choose,
    estimate_workload,
    judge_workload,
    with_prices,
)
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.workload import INPUT_SHARE
from fitmart.flows.one_model import QuestionError, find_gpu, read_model
from fitmart.warehouse.connection import connect
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import read_seed

DEFAULT_CONTEXT = 8192  # of one user, as in the macros


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuestion:
    """The options of the command."""

    model: str
    users: int
    context: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    requests_per_day: float | None = None
    min_user_tokens_per_s: float
    kv_precision: str = "bf16"
    precisions: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    payment: str = "on_demand"
    hours_per_day: float = 24.0
    is_eu: bool = False
    max_age_days: int
    places: int


@dataclass(frozen=True, slots=True)
class Prices:
    """The offers and token prices of a catalog, and its clock."""

    offers: pl.DataFrame  # CURRENT_SCHEMA
    repositories: pl.DataFrame  # model_id, base_model, native_precision of every model
    api: pl.DataFrame  # provider_id, model_id, input_usd_per_mtok, output_usd_per_mtok, observed_at
    built_at: datetime


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """What was asked, what holds it and how it is started, what nearly does, and what the cheapest API takes."""

    question: PlanQuestion
    workload: Workload
    plan: Plan
    launches: list[dict[str, str]]  # of each configuration: the command, and the docker line where there is an image
    api: dict[str, Any] | None

    def to_json(self) -> str:
        """An object of four: question, configurations, near_misses, api."""
        asked = asdict(self.question) | asdict(self.workload)
        told = {
            "question": asked,
            "configurations": [
                row | {"launch": lines}
                for row, lines in zip(self.plan.configurations.to_dicts(), self.launches, strict=True)
            ],
            "near_misses": self.plan.near_misses.to_dicts(),
            "api": self.api,
        }
        return json.dumps(told, indent=1, default=str)

    def print(self) -> None:
        """Two tables on the terminal."""
        from rich.console import Console

        from fitmart.flows.plan_table import to_tables

        Console(width=None if Console().is_terminal else 160).print(
            to_tables(self.plan, self.workload, self.api, self.launches)
        )


def plan_one(question: PlanQuestion, data_dir: Path, models_dir: Path | None) -> PlanAnswer:
    """Answer the question from the catalog's prices; QuestionError where it asks for what there is not."""
    reference = load_reference()
    models = read_model(question.model, data_dir / "landing", models_dir)
    prices = read_prices(data_dir)
    workload = _workload(question, models)
    wanted = _wanted(question, models, reference)
    payment = Payment(kind=question.payment, hours_per_day=question.hours_per_day)
    offers = _offers(prices, wanted, question)
    rows = judge_workload(
        with_prices(estimate_workload(wanted, workload, models, reference), offers, payment), workload, payment
    )
    api = _cheapest_api(prices.api, models.models["model_id"][0])
    rows = rows.with_columns(break_even_tokens_per_day=_break_even(api))
    plan = choose(rows, reference.precisions, places=question.places)
    return PlanAnswer(question, workload, plan, _launches(plan, workload, models, reference, prices), api)


def read_prices(data_dir: Path) -> Prices:
    """The offers and token prices of the published catalog; CatalogError where there is none."""
    with closing(connect(data_dir)) as con:
        offers = con.sql("SELECT * FROM offer").pl()
        api = con.sql(
            "SELECT provider_id, model_id, input_usd_per_mtok, output_usd_per_mtok, observed_at FROM api_price "
            "WHERE model_id IS NOT NULL"
        ).pl()
        repositories = con.sql(
            "SELECT cast(model_id AS VARCHAR) AS model_id, base_model, native_precision FROM model"
        ).pl()
        built_at = con.execute("SELECT built_at FROM build").fetchall()[0][0]
    typed = offers.with_columns(
        pl.col(name).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        if dtype == MOMENT
        else pl.col(name).cast(dtype)
        for name, dtype in CURRENT_SCHEMA.items()
    )
    return Prices(conform(typed, CURRENT_SCHEMA, stage="plan"), repositories, api, built_at.replace(tzinfo=UTC))


def _workload(question: PlanQuestion, models: Models) -> Workload:
    """What is not said follows: the context from the request, or the request from the context (3:1)."""
    limit = models.models["max_context_tokens"][0] or DEFAULT_CONTEXT
    given, answer = question.input_tokens, question.output_tokens
    both = (given or 0) + (answer or 0)
    context = question.context or max(min(limit, DEFAULT_CONTEXT), both)
    if both > context:
        raise QuestionError(f"{both:,} tokens of prompt and answer are more than the context of {context:,}")
    if given is None:
        given = int(context * INPUT_SHARE) if answer is None else context - answer
    if answer is None:
        answer = context - given
    return Workload(
        users=question.users,
        context_tokens=context,
        input_tokens=given,
        output_tokens=max(answer, 1),
        requests_per_day=question.requests_per_day,
        min_user_tokens_per_s=question.min_user_tokens_per_s,
        kv_cache_dtype=question.kv_precision,
    )


def _wanted(question: PlanQuestion, models: Models, reference: Reference) -> pl.DataFrame:
    """The configurations that the question leaves open."""
    known = reference.precisions["precision_id"]
    for name in question.precisions:
        if name not in known:
            raise QuestionError(f"unknown precision '{name[:80]}'")
    rows = candidates(models, reference, question.precisions)
    wishes = [_gpu_and_count(text, reference) for text in question.gpus]
    if not wishes:
        return rows
    chosen = rows.filter(pl.any_horizontal(_is_wished(gpu_id, count) for gpu_id, count in wishes))
    missing = [text for text, (gpu, count) in zip(question.gpus, wishes, strict=True) if not _has(chosen, gpu, count)]
    if missing:
        raise QuestionError(f"'{missing[0][:80]}': that GPU does not come in such a number")
    return chosen


def _is_wished(gpu_id: str, count: int | None) -> pl.Expr:
    is_gpu = pl.col("gpu_id") == gpu_id
    return is_gpu if count is None else is_gpu & (pl.col("gpu_count") == count)


def _has(rows: pl.DataFrame, gpu_id: str, count: int | None) -> bool:
    return rows.filter(_is_wished(gpu_id, count)).height > 0


def _gpu_and_count(text: str, reference: Reference) -> tuple[str, int | None]:
    """`2x RTX 4090` or `RTX 4090`: gpu_id, and the count if one is given."""
    number, _, name = text.replace("×", "x").partition("x")
    if number.strip().isdigit() and name.strip():
        return find_gpu(name.strip(), reference), int(number)
    return find_gpu(text, reference), None


def _offers(prices: Prices, wanted: pl.DataFrame, question: PlanQuestion) -> pl.DataFrame:
    """The cheapest offer of each GPU and count, with what describes it."""
    offers = prices.offers
    if question.is_eu:
        offers = offers.filter(pl.col("is_eu").fill_null(value=False))
    pairs = wanted.select("gpu_id", "gpu_count").unique()
    best = best_offer(offers, pairs, prices.built_at, window_days=question.max_age_days)
    kind = question.payment if question.payment != "owned" else ""
    best = best.filter(pl.col("commitment") == kind)
    described = offers.select(
        "offer_id", "instance_type", "region", "country", "billing_granularity", "is_stale", "url"
    )  # fmt: skip
    return best.join(described, on="offer_id", how="left", validate="m:1").drop("commitment")


def _launches(
    plan: Plan, workload: Workload, models: Models, reference: Reference, prices: Prices
) -> list[dict[str, str]]:
    """How each configuration is started."""
    facts = models.models.row(0, named=True)
    model_id = str(facts["model_id"])
    is_of_it = (pl.col("base_model") == model_id) | pl.col("model_id").str.to_lowercase().str.starts_with(
        f"{model_id.lower()}-"
    )
    known = prices.repositories.filter(is_of_it.fill_null(value=False)).sort("model_id", descending=True)
    repositories = dict(known.select("native_precision", "model_id").iter_rows())  # the first by name stays
    vendors = dict(reference.gpus.select("gpu_id", "vendor").iter_rows())
    defaults = read_seed("engine_default").filter(pl.col("until_version").is_null())
    templates = read_seed("launch_template")
    return [
        launch_lines(
            row | {"vendor": vendors[row["gpu_id"]]},
            users=workload.users,
            facts=facts,
            templates=templates,
            defaults=dict(
                defaults.filter(pl.col("engine_id") == row["engine_id"]).select("parameter", "value").iter_rows()
            ),
            repositories=repositories,
        )
        for row in plan.configurations.iter_rows(named=True)
    ]


def _cheapest_api(api: pl.DataFrame, model_id: str) -> dict[str, Any] | None:
    """The API that sells this model's tokens cheapest, three of the prompt to one of the answer; None: nobody does."""
    priced = api.filter(pl.col("model_id") == model_id).with_columns(
        usd_per_mtok_blended=api_usd_per_mtok(pl.col("input_usd_per_mtok"), pl.col("output_usd_per_mtok"))
    )
    sold = priced.filter(pl.col("usd_per_mtok_blended") > 0).sort("usd_per_mtok_blended", "provider_id")
    return sold.row(0, named=True) if sold.height else None


def _break_even(api: dict[str, Any] | None) -> pl.Expr:
    if api is None:
        return pl.lit(None, pl.Float64)
    return break_even_tokens_per_day(pl.col("usd_per_month"), pl.lit(api["usd_per_mtok_blended"]))
