"""`fitmart plan`: what holds a workload at the catalog's prices."""

import json
from contextlib import closing

import polars as pl
import pytest

from fitmart.estimator.architectures import parse_config
from fitmart.estimator.plan import Workload, candidates, estimate_workload
from fitmart.estimator.reference import Models
from fitmart.flows.contexts import with_extension
from fitmart.flows.sources.models import bundled
from fitmart.warehouse.connection import connect
from fitmart.warehouse.reference import load_reference

QWEN = "Qwen/Qwen2.5-72B-Instruct"


def plan(run, data_dir, *arguments):
    code, out, err = run("plan", QWEN, *arguments, "--json", "--data-dir", data_dir)
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.fixture(scope="module")
def data_dir(built):
    return built[0]


def test_ten_that_hold_it_cheapest_first(run, data_dir):
    told = plan(run, data_dir, "--users", 10)
    rows = told["configurations"]
    assert 0 < len(rows) <= 10
    assert [r["usd_per_month"] for r in rows] == sorted(r["usd_per_month"] for r in rows)
    assert len({(r["gpu_id"], r["gpu_count"]) for r in rows}) == len(rows)
    for row in rows:
        assert row["users"] >= 10
        assert row["verdict"] == "fits"
        assert row["decode_tokens_per_s"] >= 10
        assert row["headroom_bytes"] >= 0
        assert row["usd_per_month"] == pytest.approx(row["usd_per_hour"] * 730)
    assert all(row["reason"] for row in told["near_misses"])


def test_offers_are_the_best_of_that_gpu_and_count(run, data_dir):
    with closing(connect(data_dir)) as con:
        best = con.execute(
            "SELECT gpu_id, gpu_count, offer_id FROM best_offer WHERE commitment = 'on_demand'"
        ).fetchall()
    told = plan(run, data_dir, "--users", 4)["configurations"]
    assert {(r["gpu_id"], r["gpu_count"], r["offer_id"]) for r in told} <= set(best)


@pytest.mark.parametrize(("flag", "where"), [("--eu", "o.is_eu"), ("--spot", "o.commitment = 'spot'")])
def test_filters(run, data_dir, flag, where):
    told = plan(run, data_dir, "--users", 2, flag)["configurations"]
    assert told
    with closing(connect(data_dir)) as con:
        fine = {
            row[0]
            for row in con.execute(f"SELECT cast(o.offer_id AS VARCHAR) FROM offer AS o WHERE {where}").fetchall()
        }
    assert {r["offer_id"] for r in told} <= fine


def test_owned_gpus_cost_their_electricity(run, data_dir):
    told = plan(run, data_dir, "--users", 2, "--owned", "4x RTX 4090", "--context", 4096)
    (row,) = told["configurations"]
    # 4 × 450 W × 730 h × 0.15 $/kWh
    assert (row["gpu_id"], row["gpu_count"], row["offer_id"]) == ("nvidia-rtx-4090", 4, None)
    assert row["usd_per_month"] == pytest.approx(197.1)


def test_the_request_follows_from_what_is_said(run, data_dir):
    asked = plan(run, data_dir, "--users", 1, "--input-tokens", 9000, "--output-tokens", 1000)["question"]
    assert (asked["context_tokens"], asked["input_tokens"], asked["output_tokens"]) == (10_000, 9000, 1000)
    asked = plan(run, data_dir, "--users", 1, "--context", 4000, "--output-tokens", 1000)["question"]
    assert (asked["input_tokens"], asked["output_tokens"]) == (3000, 1000)


def test_the_table_is_for_people(run, data_dir):
    code, out, _ = run("plan", QWEN, "--users", 10, "--data-dir", data_dir)
    assert code == 0
    assert "10 users at once, 8,192 tokens each" in out
    assert "Near misses" in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--users", 1, "--context", 100, "--input-tokens", 200), 1, "200 tokens of prompt and answer are more than"),
        (("--users", 1, "--precision", "int5"), 1, "unknown precision 'int5'"),
        (("--users", 1, "--gpu", "3x RTX 4090"), 1, "does not come in such a number"),
        (("--users", 1, "--owned", "L20", "--spot"), 2, "--owned says which GPUs"),
        (("--users", 0), 2, "--users"),
    ],
)
def test_wrong_questions_get_one_line(run, data_dir, arguments, code, words):
    got, out, err = run("plan", QWEN, *arguments, "--data-dir", data_dir)
    assert (got, out) == (code, "")
    assert words in err


def test_without_a_catalog_there_are_no_prices(run, tmp_path):
    code, _, err = run("plan", QWEN, "--users", 1, "--data-dir", tmp_path)
    assert code == 1
    assert err.startswith("fitmart: no catalog at ")


KEY = ["gpu_id", "gpu_count", "precision_id", "engine_id"]
# users, context, input, output: on the grid with its own request, and off it
WORKLOADS = ((1, 8192, 6144, 2048), (10, 8192, 6144, 2048), (20, 32_768, 1000, 500), (3, 5000, 3000, 500))


@pytest.fixture(scope="module")
def reference():
    return load_reference()


@pytest.mark.parametrize("model_id", [QWEN, "deepseek-ai/DeepSeek-V3"])
@pytest.mark.parametrize(("users", "context", "prompt", "answer"), WORKLOADS)
def test_the_macro_is_never_more_optimistic_and_near_on_the_grid(
    data_dir, reference, model_id, users, context, prompt, answer
):
    config = next(record.config for record in bundled.read()[0] if record.model_id == model_id)
    models = Models.of([with_extension(parse_config(model_id, config))])
    workload = Workload(users=users, context_tokens=context, input_tokens=prompt, output_tokens=answer)
    exact = estimate_workload(candidates(models, reference), workload, models, reference)
    with closing(connect(data_dir)) as con:
        rows = con.sql(
            f"""
            SELECT
                cast(gpu_id AS VARCHAR) AS gpu_id, cast(gpu_count AS BIGINT) AS gpu_count,
                cast(precision_id AS VARCHAR) AS precision_id, cast(engine_id AS VARCHAR) AS engine_id,
                coalesce(users, 0) AS macro_users, decode_tokens_per_s AS macro_pace, ttft_ms AS macro_ttft,
                throughput_tokens_per_s AS macro_throughput
            FROM workload('{model_id}', users := {users}, context := {context}, input_tokens := {prompt},
                output_tokens := {answer}, places := 1000)
            """
        ).pl()
    both = rows.join(exact, on=KEY, how="inner", validate="1:1").filter(pl.col("decode_tokens_per_s").is_not_null())
    assert both.height >= 40
    ratios = both.select(
        users=pl.col("macro_users") - pl.col("users"),
        pace=pl.col("macro_pace") / pl.col("decode_tokens_per_s"),
        ttft=pl.col("ttft_ms") / pl.col("macro_ttft"),
        throughput=pl.col("macro_throughput") / pl.col("throughput_tokens_per_s"),
    )
    assert ratios["users"].max() <= 0
    for name in ("pace", "ttft", "throughput"):
        assert ratios[name].max() <= 1.001  # the marts keep four digits
    if context == 8192:
        assert ratios["users"].min() == 0
        assert min(ratios[name].min() for name in ("pace", "ttft", "throughput")) >= 0.95


@pytest.mark.parametrize("users", [1, 10])
def test_macro_and_command_choose_the_same(run, data_dir, users):
    told = plan(run, data_dir, "--users", users)["configurations"]
    with closing(connect(data_dir)) as con:
        rows = con.execute(
            "SELECT cast(gpu_id AS VARCHAR), gpu_count, cast(precision_id AS VARCHAR), usd_per_hour "
            f"FROM workload('{QWEN}', users := {users}) WHERE is_held"
        ).fetchall()
    assert [(r["gpu_id"], r["gpu_count"], r["precision_id"], r["usd_per_hour"]) for r in told] == [
        (*key, pytest.approx(price)) for *key, price in rows
    ]  # fmt: skip


def test_the_command_is_that_of_the_macro(run, data_dir):
    told = plan(run, data_dir, "--users", 3, "--context", 16384)["configurations"]
    assert told
    with closing(connect(data_dir)) as con:
        for row in told:
            lines = con.execute(
                f"SELECT kind, command FROM launch('{QWEN}', '{row['gpu_id']}', gpu_count := {row['gpu_count']}, "
                f"context := 16384, users := 3, at_precision := '{row['precision_id']}') WHERE is_as_asked"
            ).fetchall()
            assert dict(lines) == row["launch"]
