"""The scenarios contract: what is read, what is refused, and that a row in is a row out."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitmart.estimator.scenarios import INPUT, OUTPUT, read_scenarios, to_answers, to_deployments, with_defaults

PRECISIONS = pl.DataFrame({"precision_id": ["bf16", "gguf-q4_k_m"], "engine_id": ["vllm", "llama.cpp"]})


def read(**cells: str) -> dict[str, object]:
    return read_scenarios(
        pl.DataFrame({"model_id": ["a/b"], "precision": ["bf16"]} | {k: [v] for k, v in cells.items()})
    ).row(0, named=True)


@pytest.mark.parametrize(
    ("column", "cell", "value"),
    [
        ("max_model_len", "8192", 8192),
        ("max_model_len", " 8192 ", 8192),
        ("max_model_len", "8192.0", 8192),
        ("gpu_memory_utilization", "0.9", 0.9),
        ("enforce_eager", "True", True),
        ("enforce_eager", "0", False),
        ("engine", "VLLM", "vllm"),
        ("n_gpu_layers", "-1", -1),
        ("n_gpu_layers", "0", 0),
        ("cached_tokens", "0", 0),
        ("kv_cache_dtype", "q8_0/q4_0", "q8_0/q4_0"),
        ("kv_cache_dtype", "FP8_E4M3", "fp8"),
        ("kv_cache_dtype", "bfloat16/bf16", "bf16"),
        ("kv_cache_dtype", "auto", None),
        ("gpu_count", "", None),
    ],
)
def test_cells_are_read(column, cell, value):
    row = read(**{column: cell})
    assert row[column] == value
    assert row["error"] is None


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("max_model_len", "8k", "max_model_len: not a whole number in range: '8k'"),
        ("max_model_len", "0", "max_model_len: not a whole number in range: '0'"),
        ("max_model_len", "-4096", "max_model_len: not a whole number in range: '-4096'"),
        ("max_model_len", "1.5", "max_model_len: not a whole number in range: '1.5'"),
        ("max_model_len", "1e30", "max_model_len: not a whole number in range: '1e30'"),
        ("gpu_count", "nan", "gpu_count: not a whole number in range: 'nan'"),
        ("gpu_memory_utilization", "1.2", "gpu_memory_utilization: not a number in range: '1.2'"),
        ("enforce_eager", "perhaps", "enforce_eager: not true or false: 'perhaps'"),
        ("gpu_count", "1025", "gpu_count: not a whole number in range: '1025'"),
        ("max_model_len", "9007199254740992", "max_model_len: not a whole number in range: '9007199254740992'"),
        ("max_num_seqs", "70000", "max_num_seqs: not a whole number in range: '70000'"),
        ("engine_core", "v2", "engine_core: not one of v0, v1: 'v2'"),
        ("model_id", "", "model_id: is required"),
        ("precision", "", "precision: is required"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_cell(column, cell, reason):
    assert read(**{column: cell})["error"] == reason


@pytest.mark.parametrize(
    ("cells", "count", "tensor", "pipeline"),
    [
        ({}, 1, 1, 1),
        ({"gpu_count": "4"}, 4, 4, 1),
        ({"tensor_parallel": "2", "pipeline_parallel": "2"}, 4, 2, 2),
        ({"gpu_count": "8", "pipeline_parallel": "2"}, 8, 4, 2),
        ({"gpu_count": "8", "data_parallel": "8"}, 8, 1, 1),
    ],
)
def test_parallel_sizes_and_gpus_complete_each_other(cells, count, tensor, pipeline):
    rows = pl.DataFrame({"model_id": ["a/b"], "precision": ["BF16"]} | {k: [v] for k, v in cells.items()})
    row = with_defaults(read_scenarios(rows), PRECISIONS).row(0, named=True)
    assert (row["gpu_count"], row["tensor_parallel"], row["pipeline_parallel"]) == (count, tensor, pipeline)
    assert row["engine"] == "vllm"


@pytest.mark.parametrize("cell", ["banana", "q8_0/", "q8_0/q4_0/f16", "/"])
def test_a_kv_precision_of_no_engine_is_refused(cell):
    assert str(read(kv_cache_dtype=cell)["error"]).startswith("kv_cache_dtype: not one of bf16, ")


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        ({"gpu_count": "2", "tensor_parallel": "4"}, "2 GPUs for 4"),
        ({"gpu_count": "4", "tensor_parallel": "4", "pipeline_parallel": "2"}, "4 GPUs for 8"),
        ({"tensor_parallel": "1024", "data_parallel": "1024"}, "1024 GPUs for 1048576"),
        ({"gpu_count": "1", "tensor_parallel": "4", "engine": "llama.cpp"}, None),
    ],
)
def test_more_ranks_than_gpus_are_an_error(cells, error):
    rows = pl.DataFrame({"model_id": ["a/b"], "precision": ["bf16"]} | {k: [v] for k, v in cells.items()})
    found = with_defaults(read_scenarios(rows), PRECISIONS)["error"][0]
    assert found is None if error is None else error in found


def test_gpus_beyond_the_parallel_sizes_are_idle():
    cells = {"model_id": ["a/b"], "precision": ["bf16"], "gpu_count": ["8"], "data_parallel": ["3"]}
    row = with_defaults(read_scenarios(pl.DataFrame(cells)), PRECISIONS).row(0, named=True)
    assert (row["gpu_count"], row["tensor_parallel"]) == (6, 2)


@pytest.mark.parametrize(
    ("engine", "precision", "file"),
    [("llama.cpp", "bf16", "gguf-bf16"), ("llama.cpp", "fp16", "gguf-f16"), ("mlx", "bf16", "mlx-bf16"),
     ("llama.cpp", "gguf-q4_k_m", "gguf-q4_k_m"), ("vllm", "bf16", "bf16")],
)  # fmt: skip
def test_a_plain_dtype_is_the_engine_s_own_file(engine, precision, file):
    rows = pl.DataFrame({"model_id": ["a/b"], "precision": [precision], "engine": [engine]})
    assert with_defaults(read_scenarios(rows), PRECISIONS)["precision"].to_list() == [file]


def test_a_blank_engine_is_the_precision_s():
    rows = pl.DataFrame({"model_id": ["a/b"], "precision": ["gguf-q4_k_m"]})
    assert to_deployments(with_defaults(read_scenarios(rows), PRECISIONS))["engine_id"].to_list() == ["llama.cpp"]


cell = st.text(max_size=12)


@given(
    st.lists(
        st.fixed_dictionaries(dict.fromkeys(("model_id", "precision", "gpu_count", "max_model_len"), cell)),
        min_size=1,
        max_size=8,
    )
)
def test_one_row_in_is_one_row_out_in_order(rows):
    original = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
    typed = read_scenarios(original)
    answers = to_answers(original, typed, pl.DataFrame({"row": typed["row"], "users": typed["row"] + 1}))
    assert answers.select(original.columns).equals(original)
    good = answers["error"].is_null()
    assert answers.filter(good)["users"].to_list() == [r + 1 for r in typed.filter(good)["row"]]
    assert answers.filter(~good)["users"].null_count() == (~good).sum()
    assert [c for c in OUTPUT if c not in answers.columns] == []


def test_the_contract_s_columns_are_all_known():
    # DESIGN of the scenarios: every column is accepted from the first version on
    assert len(INPUT) == 37
    assert len(set(OUTPUT)) == len(OUTPUT)
