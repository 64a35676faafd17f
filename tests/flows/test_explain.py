"""`fitmart explain`: the lines add up to the row of `fit`, to the byte."""

import json
from contextlib import closing

import polars as pl
import pytest

from fitmart.estimator.architectures import parse_config
from fitmart.estimator.explain import explain
from fitmart.estimator.reference import Models
from fitmart.estimator.scenarios import read_scenarios, with_defaults
from fitmart.flows.contexts import with_extension
from fitmart.flows.sources.models import bundled
from fitmart.warehouse.connection import connect
from fitmart.warehouse.reference import load_reference

SMALL = ("Qwen/Qwen2.5-72B-Instruct", "deepseek-ai/DeepSeek-V3", "BAAI/bge-m3")
QWEN = "Qwen/Qwen2.5-72B-Instruct"
RESULTS = ("required_bytes", "taken_bytes", "headroom_bytes", "users")
PARTS = ("weights_bytes", "activation_bytes", "non_torch_bytes", "cuda_graph_bytes", "compute_buffer_bytes")


@pytest.fixture(scope="module")
def fit_rows(built):
    """A few rows of `fit` of every engine and model."""
    data_dir, _ = built
    with closing(connect(data_dir)) as con:
        return con.sql(
            f"""
            SELECT model_id, precision_id, engine_id, gpu_id, gpu_count, context_tokens, {", ".join(RESULTS)},
                cast(verdict AS VARCHAR) AS verdict, cast(limited_by AS VARCHAR) AS limited_by
            FROM fit
            WHERE model_id IN ({", ".join(f"'{m}'" for m in SMALL)})
            QUALIFY row_number() OVER (PARTITION BY model_id, engine_id ORDER BY hash(fit)) <= 3
            """
        ).pl()  # fmt: skip


def config_of(model_id):
    return next(record.config for record in bundled.read()[0] if record.model_id == model_id)


def explained(row, models, reference):
    cells = {
        "model_id": row["model_id"], "precision": row["precision_id"], "engine": row["engine_id"],
        "gpu_id": row["gpu_id"], "gpu_count": str(row["gpu_count"]), "max_model_len": str(row["context_tokens"]),
        "kv_cache_dtype": "bf16",
    }  # fmt: skip
    typed = with_defaults(read_scenarios(pl.DataFrame([cells])), reference.precisions)
    return explain(typed, models, reference)


def test_the_sum_is_the_row_of_fit_to_the_byte(fit_rows):
    models = Models.of([with_extension(parse_config(m, config_of(m))) for m in SMALL])
    reference = load_reference()
    assert set(fit_rows["engine_id"].cast(pl.String)) == {"vllm", "llama.cpp", "mlx"}
    for row in fit_rows.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).iter_rows(named=True):
        told = explained(row, models.only([row["model_id"]]), reference)
        assert {name: told.value(name) for name in RESULTS} == {name: row[name] for name in RESULTS}, row
        assert (told.verdict, told.limited_by) == (row["verdict"], row["limited_by"])
        budget, *parts = (told_or_zero(told, name) for name in ("budget_bytes", *PARTS))
        assert budget - sum(parts) == told.value("kv_available_bytes"), row


def told_or_zero(told, name):
    return next((line.value or 0 for line in told.lines if line.name == name), 0)


def test_the_page_s_command_is_refused_with_the_figures(run, tmp_path):
    code, out, err = run(
        "explain", QWEN, "--gpu", "H100 SXM", "--gpu-count", 2, "--precision", "bf16", "--context", 32768,
        "--json", "--data-dir", tmp_path,
    )  # fmt: skip
    assert (code, err) == (0, "")
    told = json.loads(out)
    values = {line["name"]: line["value"] for line in told["lines"]}
    # 72,706,203,648 parameters of 2 bytes; 32,768 tokens × 327,680 bytes, half on each card
    assert values["weights_total_bytes"] == 145_412_407_296
    assert values["sequence_kv_bytes"] == 32_768 * 327_680 // 2
    assert (told["verdict"], told["limited_by"]) == ("no", "kv_cache")
    assert told["words"].startswith("The weights fit, the KV cache of one user of this context does not: ")
    assert all(line["source"] for line in told["lines"])


def test_the_table_is_for_people(run, tmp_path):
    code, out, _ = run("explain", QWEN, "--gpu", "L20", "--precision", "gguf-q4_k_m", "--data-dir", tmp_path)
    assert code == 0
    assert "Left for the KV cache" in out
    assert "missing for one user of 32,768 tokens." in out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("no/such", "--gpu", "L20"), "fitmart: unknown model 'no/such'\n"),
        ((QWEN, "--gpu", "L20", "--precision", "int5"), "fitmart: unknown precision 'int5'\n"),
        ((QWEN, "--gpu", "L20", "--engine", "olama"), "fitmart: engine: not one of"),
        ((QWEN, "--gpu", "warp core"), "fitmart: GPU 'warp core': "),
    ],
)
def test_what_there_is_not_is_one_line(run, tmp_path, arguments, reason):
    code, out, err = run("explain", *arguments, "--data-dir", tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith(reason)
    assert err.count("\n") == 1
