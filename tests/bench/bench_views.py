"""Every view and macro of the pages' questions, asked for one model: the time of an answer.

Scaled down it runs with `make bench`; on a whole catalog with

    python tests/bench/bench_views.py DATA_DIR [--model MODEL] [--gpu GPU]

The best of five answers counts: the machine's other work is not the question's.
"""

import argparse
import statistics
import time
from contextlib import closing
from pathlib import Path

from fitmart.flows.build import build
from fitmart.warehouse.connection import connect

MODEL, GPU = "Qwen/Qwen2.5-72B-Instruct", "nvidia-h100-sxm"
LIMIT_MS = 100
REPEATS = 5
QUESTIONS = (
    "memory_by_context('{model}')",
    "smallest_gpus('{model}')",
    "users_per_gpu('{model}')",
    "quantization_matrix('{model}', '{gpu}')",
    "why_not('{model}', '{gpu}')",
    "context_scaling('{model}')",
    "kv_savings('{model}')",
    "recommended_hardware('{model}', users := 4)",
    "cheapest_fits('{model}', users := 4)",
    "cheapest_offers('{gpu}')",
    "cloud_offers('{model}')",
    "rent_or_buy('{model}')",
    "break_even('{model}')",
    "self_host_or_api('{model}')",
    "finetuning('{model}')",
    "gpus_for('{model}')",
    "models_for('{gpu}')",
    "siblings('{model}')",
    "planning_range('{model}')",
    "scenario_configuration('{model}')",
    "workload('{model}', users := 10)",
    "launch('{model}', '{gpu}', gpu_count := 2, context := 32768)",
    "anatomy('{model}')",
    "annotated_config('{model}')",
    "provenance('{model}')",
    "fit_detail WHERE model_id = '{model}' AND gpu_id = '{gpu}'",
    "model_overview WHERE model_id = '{model}'",
    "gpu_overview WHERE gpu_id = '{gpu}'",
    "source_status",
)


def measure(data_dir: Path, model: str, gpu: str) -> dict[str, tuple[float, float]]:
    """Question → the best and the median answer [ms]."""
    times = {}
    with closing(connect(data_dir)) as con:
        for question in QUESTIONS:
            sql = f"FROM {question.format(model=model, gpu=gpu)}"
            taken = []
            for _ in range(REPEATS):
                started = time.perf_counter()
                con.execute(sql).fetchall()
                taken.append((time.perf_counter() - started) * 1e3)
            times[question.split("(")[0].split(" ")[0]] = (min(taken), statistics.median(taken))
    return times


def test_every_question_is_answered_at_once(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("data")
    build(data_dir, include=(MODEL, "meta-llama/*", "Qwen/Qwen3*"))
    times = measure(data_dir, MODEL, GPU)
    print(table(times))
    assert {name: best for name, (best, _) in times.items() if best > LIMIT_MS} == {}


def table(times: dict[str, tuple[float, float]]) -> str:
    """A Markdown table, the slowest first."""
    rows = sorted(times.items(), key=lambda item: -item[1][0])
    lines = [f"| {name} | {best:.0f} | {median:.0f} |" for name, (best, median) in rows]
    return "\n".join(["| question | best ms | median ms |", "|---|---|---|", *lines])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--gpu", default=GPU)
    asked = parser.parse_args()
    print(table(measure(asked.data_dir, asked.model, asked.gpu)))
