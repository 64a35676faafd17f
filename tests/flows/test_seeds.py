"""The bundled snapshot, written again from itself, says the same."""

import json

import pytest

from fitmart.flows.seeds import write_seeds
from fitmart.flows.sources.models import bundled
from fitmart.warehouse.reference import load_reference
from fitmart.warehouse.snapshot import SEED_SCHEMAS, read_table


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    return folder, write_seeds(folder / "no-landing", folder, load_reference())


def test_models_are_the_bundled_ones(written):
    folder, counts = written
    again, rejected = bundled.read(folder / "model_config.jsonl")
    before, _ = bundled.read()
    assert rejected == []
    assert counts["model_config.jsonl"] == len(before) == len(again)
    assert {r.model_id: r.config for r in again} == {r.model_id: r.config for r in before}


def test_a_line_holds_fields_and_no_count_or_size(written):
    for line in (written[0] / "model_config.jsonl").read_text(encoding="utf-8").splitlines():
        assert not {"params_total", "stored_params", "weights_total_bytes"} & set(json.loads(line))


@pytest.mark.parametrize("name", ["offer", "api_price"])
def test_prices_are_seeds_again(written, name):
    rows = read_table(written[0] / f"{name}.csv", SEED_SCHEMAS[name])
    assert rows.height == written[1][f"{name}.csv"] > 1000
    assert rows["observed_on"].null_count() == 0
