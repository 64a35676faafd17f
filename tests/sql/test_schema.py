import polars as pl
import pytest
import tiny_catalog

from fitmart.estimator.anatomy import CACHE_SCHEMA, MODEL_SCHEMA, TENSOR_SCHEMA
from fitmart.estimator.cost import KEY
from fitmart.estimator.fit import LIMITS, VERDICTS
from fitmart.estimator.frames import FOOTPRINT_SCHEMA, GPU_SCHEMA, PRECISION_SCHEMA
from fitmart.estimator.offers import BEST_SCHEMA, CURRENT_SCHEMA, DOUBTS
from fitmart.warehouse.marts import SORT_KEYS

CON = tiny_catalog.in_memory()
TYPES = {
    pl.Int64: {"BIGINT", "INTEGER", "SMALLINT"},
    pl.Float64: {"DOUBLE", "DECIMAL(12,6)", "DECIMAL(18,6)"},
    pl.Boolean: {"BOOLEAN"},
    pl.Date: {"DATE"},
    pl.Datetime: {"TIMESTAMP"},
    pl.List: {"INTEGER[]"},
}
# Frames of the estimator and the tables they are loaded into; what only asks for a row is not part of it.
LOADED = {
    "model": MODEL_SCHEMA,
    "model_tensor": TENSOR_SCHEMA,
    "model_cache": CACHE_SCHEMA,
    "gpu": GPU_SCHEMA,
    "precision": PRECISION_SCHEMA,
    "offer": CURRENT_SCHEMA,
    "best_offer": BEST_SCHEMA,
    "footprint": {n: t for n, t in FOOTPRINT_SCHEMA.items() if n not in ("engine_version", "imatrix")},
}
# The columns that the design promises, in its order.
PROMISED = {
    "kv_cache": "model_id context_tokens kv_precision minimum_bytes vllm_bytes llamacpp_bytes",
    "capacity": "model_id precision_id engine_id gpu_id gpu_count weights_bytes activation_bytes non_torch_bytes "
    "cuda_graph_bytes budget_bytes kv_available_bytes kv_available_bytes_low kv_available_bytes_high support "
    "limited_by",
    "fit": "model_id precision_id engine_id gpu_id gpu_count context_tokens required_bytes taken_bytes headroom_bytes "
    "users users_kv8 verdict limited_by",
    "cost": "model_id precision_id engine_id gpu_id gpu_count context_tokens on_demand_offer_id spot_offer_id "
    "usd_per_hour usd_per_month usd_per_mtok",
}


def _columns(table):
    return dict(
        CON.execute("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [table]).fetchall()
    )


@pytest.mark.parametrize("table", LOADED)
def test_the_table_holds_the_frames_columns(table):
    columns = _columns(table)
    assert [name for name in LOADED[table] if name not in columns] == []
    for name, dtype in LOADED[table].items():
        kinds = TYPES.get(dtype.base_type(), {"VARCHAR"})
        assert columns[name] in kinds or columns[name].startswith("ENUM"), name


@pytest.mark.parametrize("table", PROMISED)
def test_the_promised_columns_come_first(table):
    promised = PROMISED[table].split()
    assert list(_columns(table))[: len(promised)] == promised


@pytest.mark.parametrize(("kind", "words"), [("verdict", VERDICTS), ("limited_by", LIMITS)])
def test_closed_lists_are_the_estimators(kind, words):
    assert CON.execute(f"SELECT enum_range(NULL::{kind})").fetchall() == [(list(words),)]


def test_doubts_are_the_estimators():
    body = CON.execute("SELECT macro_definition FROM duckdb_functions() WHERE function_name = 'is_doubtful'").fetchall()
    assert all(doubt in body[0][0] for doubt in DOUBTS)
    assert body[0][0].count("'") // 2 == len(DOUBTS) + 2  # the empty text and the separator


@pytest.mark.parametrize("table", ["fit", "speed", "cost"])
def test_keys_have_no_null(table):
    assert SORT_KEYS[table] == KEY
    nullable = CON.execute(
        "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND is_nullable", [table]
    ).fetchall()
    assert not {name for (name,) in nullable} & set(KEY)


@pytest.mark.parametrize("table", SORT_KEYS)
def test_marts_are_sorted_by_columns_they_have(table):
    assert set(SORT_KEYS[table]) <= set(_columns(table))


def test_no_column_is_a_reserved_word():
    reserved = CON.execute(
        "SELECT c.table_name, c.column_name FROM duckdb_columns() AS c "
        "INNER JOIN duckdb_keywords() AS k ON lower(c.column_name) = k.keyword_name "
        "WHERE NOT c.internal AND k.keyword_category = 'reserved'"
    ).fetchall()
    assert reserved == []
