import pytest
import tiny_catalog

from fitmart.warehouse.checks import must_pass, run_checks
from fitmart.warehouse.errors import CheckError
from fitmart.warehouse.sqlfiles import sql_files

# One fault for each check: the statement that puts it into the tiny catalog.
_TWICE = "INSERT INTO {0} SELECT * FROM {0} LIMIT 1"
FAULTS = {
    "build__is_one_row": "DELETE FROM build",
    "source__is_known": "UPDATE offer SET source_id = 'hearsay'",
    "provider__is_known": "UPDATE api_price SET provider_id = 'nobody'",
    "model__counts_are_plausible": "UPDATE model SET params_active = params_total + 1",
    "model__params_are_its_tensors": (
        "INSERT INTO model_tensor BY NAME SELECT model_id, 'mlp' AS component, 'w' AS tensor, 1 AS layer_count, "
        "2 AS rows, 3 AS columns, 6 AS params, true AS is_in_memory FROM model LIMIT 1"
    ),
    "model_tensor__params_are_the_product": (
        "INSERT INTO model_tensor BY NAME SELECT model_id, 'mlp' AS component, 'w' AS tensor, 2 AS layer_count, "
        "2 AS rows, 3 AS columns, 6 AS params FROM model LIMIT 1"
    ),
    "gpu__figures_are_plausible": "UPDATE gpu SET memory_bytes = memory_bytes // 1000",
    "precision__grid_has_an_engine": "UPDATE precision SET engine_id = NULL",
    "offer__figures_are_plausible": "UPDATE offer SET observed_at = TIMESTAMP '2026-12-02'",
    "offer__price_per_gpu_is_the_share": "UPDATE offer SET usd_per_gpu_hour = usd_per_hour / 8",
    "best_offer__serves_gpu_and_count": "UPDATE best_offer SET gpu_count = 4 WHERE offer_id = 'h100-one'",
    "best_offer__can_be_rented_now": "UPDATE best_offer SET offer_id = 'h100-bare' WHERE offer_id = 'h100-one'",
    "offer__dear_spot_is_flagged": "UPDATE offer SET usd_per_hour = 2.99 WHERE offer_id = 'h100-spot'",
    "offer_history__one_price_at_a_time": "UPDATE offer_history SET valid_to = NULL",
    "offer_history__prices_are_plausible": "UPDATE offer_history SET usd_per_hour = 0 WHERE offer_id = 'h100-gone'",
    "api_price_history__one_price_at_a_time": (
        "INSERT INTO api_price_history BY NAME SELECT provider_id, model_name_raw, source_id, "
        "TIMESTAMP '2026-11-01' AS valid_from FROM api_price, range(2)"
    ),
    "footprint__has_bytes_or_a_reason": "UPDATE footprint SET weights_total_bytes = NULL",
    "footprint__parts_add_up": (
        "UPDATE footprint SET embedding_bytes = 1, attention_bytes = 1, mlp_bytes = 1, experts_bytes = 0, "
        "norm_bytes = 1, lm_head_bytes = 1, vision_bytes = 0"
    ),
    "kv_cache__grows_with_context": "UPDATE kv_cache SET minimum_bytes = 1 WHERE context_tokens = 32768",
    "capacity__band_holds_its_figure": "UPDATE capacity SET kv_available_bytes_low = kv_available_bytes + 1",
    "fit__verdict_has_its_reason": "UPDATE fit SET limited_by = NULL WHERE verdict = 'no'",
    "fit__has_weights_and_cache": "DELETE FROM kv_cache WHERE context_tokens = 32768",
    "speed__is_of_what_fits": "DELETE FROM speed WHERE gpu_count = 2",
    "speed__band_holds_its_figure": "UPDATE speed SET ttft_ms_high = ttft_ms / 2",
    "cost__is_of_what_is_fast": "DELETE FROM cost WHERE gpu_count = 2",
    "cost__offer_serves_gpu_and_count": "UPDATE cost SET on_demand_offer_id = 'h100-one' WHERE gpu_count = 2",
    "cost__figures_agree": "UPDATE cost SET usd_per_month = usd_per_hour * 121.6",
}
FAULTS |= {
    f"{table}__key_is_unique": _TWICE.format(table)
    for table in (
        "source", "model", "gpu", "engine", "provider", "offer", "best_offer", "footprint", "kv_cache",
        "capacity", "fit", "speed", "cost",
    )
}  # fmt: skip
FAULTS["precision__key_is_unique"] = "INSERT INTO precision BY NAME SELECT * EXCLUDE (format) FROM precision LIMIT 1"
FAULTS["provider_alias__key_is_unique"] = "INSERT INTO provider_alias VALUES ('L', 'lambda'), ('L', 'vast')"
FAULTS["finetune__key_is_unique"] = (
    "INSERT INTO finetune BY NAME SELECT 'Qwen/Qwen2.5-72B-Instruct' AS model_id, 'lora' AS method, "
    "'adamw' AS optimizer, 2048 AS sequence_tokens, 1 AS gpu_count FROM range(2)"
)


@pytest.fixture(scope="module")
def catalog():
    con = tiny_catalog.in_memory()
    yield con
    con.close()


@pytest.fixture
def con(catalog):
    catalog.begin()
    yield catalog
    catalog.rollback()


def test_the_tiny_catalog_is_whole(con):
    must_pass(con)


@pytest.mark.parametrize("check", [p.stem for p in sql_files("checks")])
def test_check_finds_its_fault(con, check):
    con.execute(FAULTS[check])
    found = {failure.check: failure for failure in run_checks(con)}
    assert check in found
    assert found[check].rows


def test_a_failure_names_the_check_and_its_rows(con):
    con.execute("UPDATE cost SET on_demand_offer_id = 'mi300x-one' WHERE on_demand_offer_id = 'h100-one'")
    with pytest.raises(CheckError) as caught:
        must_pass(con)
    message = str(caught.value)
    assert message.startswith("1 checks failed, nothing published: cost__offer_serves_gpu_and_count: ")
    assert "gpu_id nvidia-h100-sxm" in message
    assert "\n" not in message
