"""Plans: the figures are the scenarios', the reasons and the order are by hand."""

import polars as pl
import pytest

from fitmart.estimator.answer import answer
from fitmart.estimator.architectures import parse_config
from fitmart.estimator.plan import Payment, Workload, candidates, choose, estimate_workload, judge_workload, with_prices
from fitmart.estimator.reference import Models
from fitmart.estimator.scenarios import read_scenarios
from fitmart.estimator.units import GIB
from fitmart.flows.sources.models import bundled
from fitmart.warehouse.reference import load_reference

QWEN = "Qwen/Qwen2.5-7B-Instruct"
MOE = "Qwen/Qwen3-30B-A3B"
REFERENCE = load_reference()
WORKLOAD = Workload(users=7, context_tokens=5000, input_tokens=3000, output_tokens=500)
FIGURES = (
    "required_bytes", "users", "verdict", "limited_by", "decode_tokens_per_s", "decode_tokens_per_s_low", "ttft_ms",
    "throughput_tokens_per_s",
)  # fmt: skip


def models_of(model_id):
    config = next(record.config for record in bundled.read()[0] if record.model_id == model_id)
    return Models.of([parse_config(model_id, config)])


@pytest.mark.parametrize("model_id", [QWEN, MOE])
def test_the_figures_are_those_of_the_scenarios(model_id):
    models = models_of(model_id)
    wanted = candidates(models, REFERENCE).filter(
        pl.col("gpu_id").is_in(["nvidia-h100-sxm", "nvidia-l40s", "amd-mi300x"])
    )
    planned = estimate_workload(wanted, WORKLOAD, models, REFERENCE)
    rows = pl.DataFrame(
        {
            "model_id": wanted["model_id"], "precision": wanted["precision_id"], "engine": wanted["engine_id"],
            "gpu_id": wanted["gpu_id"], "gpu_count": wanted["gpu_count"], "max_model_len": 5000, "concurrency": 7,
            "input_tokens": 3000, "output_tokens": 500, "kv_cache_dtype": "bf16",
        }
    )  # fmt: skip
    answered = answer(read_scenarios(rows), models, REFERENCE)
    assert planned.select(FIGURES).equals(answered.select(FIGURES))


FITS = {
    "gpu_id": "a", "gpu_name": "A", "gpu_count": 1, "devices": 1, "precision_id": "fp8", "limited_by": None,
    "verdict": "fits", "users": 10, "headroom_bytes": 4 * GIB, "budget_bytes": 70 * GIB, "memory_bytes": 80 * GIB,
    "decode_tokens_per_s": 30.0, "throughput_tokens_per_s": 100.0, "usd_per_hour": 2.0, "usd_per_month": 1460.0,
    "weights_total_bytes": 8 * 10**9, "params_total": 8 * 10**9,
}  # fmt: skip
SCHEMA = {k: pl.String if v is None else type(v) for k, v in FITS.items()}


def judged(*changes, workload=WORKLOAD, payment=None):
    frame = pl.DataFrame([FITS | change for change in changes], schema=SCHEMA, orient="row")
    return judge_workload(frame, workload, payment or Payment())


@pytest.mark.parametrize(
    ("change", "reason", "share"),
    [
        ({}, None, 1.0),
        ({"limited_by": "unsupported", "verdict": "no"}, "the engine does not run this precision on this GPU", 0.0),
        # 30 GiB short of 70 + 30
        (
            {"limited_by": "weights", "verdict": "no", "headroom_bytes": -30 * GIB},
            "30.0 GiB too little for the weights and these users",
            0.7,
        ),
        (
            {"limited_by": "kv_cache", "verdict": "no", "headroom_bytes": -GIB},
            "1.0 GiB too little for the KV cache of these users",
            70 / 71,
        ),
        ({"users": 6}, "holds 6 of 7 users", 6 / 7),
        ({"verdict": "tight"}, "it fits by the estimate, not by the careful end of its band", 1.0),
        ({"decode_tokens_per_s": 7.5}, "gives each user 7.5 of 10 tokens/s", 0.75),
        ({"decode_tokens_per_s": None}, "no speed is known for this GPU", 0.0),
        ({"usd_per_hour": None}, "it holds the workload, but no offer for that GPU and count is known", 1.0),
        # a model without a cache holds any number
        ({"users": None}, None, 1.0),
    ],
)
def test_why_it_does_not_hold_the_workload(change, reason, share):
    row = judged(change).row(0, named=True)
    assert (row["reason"], row["share"]) == (reason, pytest.approx(share))


def test_requests_a_day_make_the_use_and_the_price():
    # 100 tokens/s are 17,280 requests of 500 tokens a day; 2 $ an hour are 48 $ a day for 8.64 M tokens at full use
    asked = Workload(users=7, context_tokens=5000, input_tokens=3000, output_tokens=500, requests_per_day=4320)
    row = judged({}, workload=asked).row(0, named=True)
    assert row["requests_per_day"] == pytest.approx(17_280)
    assert (row["utilisation_share"], row["reason"]) == (0.25, None)
    assert row["usd_per_mtok"] == pytest.approx(48 / 8.64 / 0.25)
    more = Workload(users=7, context_tokens=5000, input_tokens=3000, output_tokens=500, requests_per_day=20_000)
    assert judged({}, workload=more)["reason"].item() == "serves 17280 of 20000 requests a day"


def test_the_cheapest_come_first_one_for_each_gpu_and_count():
    rows = judged(
        {"precision_id": "awq-int4"},
        {"precision_id": "fp8"},
        {"gpu_count": 2, "usd_per_month": 900.0, "precision_id": "awq-int4"},
        {"gpu_count": 4, "usd_per_month": 100.0, "users": 5},
        {"gpu_count": 8, "usd_per_month": 90.0, "users": 1},
        {"gpu_id": "b", "usd_per_hour": None, "usd_per_month": None},
    )
    plan = choose(rows, REFERENCE.precisions)
    told = plan.configurations.select("gpu_id", "gpu_count", "precision_id").rows()
    assert told == [("a", 2, "awq-int4"), ("a", 1, "fp8")]
    # one of 7 users is no near miss; what nobody rents comes last
    assert plan.near_misses.select("gpu_id", "gpu_count").rows() == [("a", 4), ("b", 1)]
    assert choose(rows, REFERENCE.precisions, places=1).configurations.height == 1


def test_prices_are_of_that_gpu_and_count_and_of_those_hours():
    rows = pl.DataFrame(
        {"gpu_id": ["a", "a", "b"], "gpu_count": [1, 2, 1], "tdp_w": [700.0] * 3, "purchase_usd": [1000.0] * 3}
    )
    offers = pl.DataFrame({"gpu_id": ["a"], "gpu_count": [2], "offer_id": ["two"], "usd_per_hour": [4.0]})
    priced = with_prices(rows, offers, Payment(hours_per_day=12))
    assert priced["usd_per_month"].to_list() == [None, pytest.approx(4.0 * 365), None]
    # 0.7 kW × 730 h × 0.15 $ for one, around the clock
    own = with_prices(rows, offers.clear(), Payment(kind="owned"))
    assert own["usd_per_month"].to_list() == pytest.approx([76.65, 153.3, 76.65])
    assert own["purchase_usd"].to_list() == [1000.0, 2000.0, 1000.0]
