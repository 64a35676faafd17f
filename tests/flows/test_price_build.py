"""A build of the prices alone makes what a whole build makes, and leaves to that what it cannot do."""

import shutil
from contextlib import closing
from datetime import UTC, datetime

import pytest

from fitmart.flows.build import build
from fitmart.flows.landing import land
from fitmart.flows.price_build import build_prices
from fitmart.flows.sources.contract import Payload
from fitmart.flows.sources.prices import skypilot
from fitmart.warehouse.checks import run_checks
from fitmart.warehouse.connection import connect

CSV = b"""InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
zz_1x_h100,H100-SXM,1.0,26,225,1.23,us-east-1,,0.99
"""
SMALL = ("Qwen/Qwen2.5-72B-Instruct", "deepseek-ai/DeepSeek-V3", "BAAI/bge-m3", "acme/*")


@pytest.fixture
def data_dir(built, tmp_path):
    return shutil.copytree(built[0], tmp_path / "data", symlinks=True)


def put(data_dir, content=CSV):
    payload = Payload(name="lambda/vms.csv", content=content, url="https://example.org/vms.csv")
    land(data_dir / "landing", skypilot.SOURCE_ID, [payload], datetime.now(UTC))


def ask(data_dir, sql):
    with closing(connect(data_dir)) as con:
        return con.execute(sql).fetchall()


TABLES = ("offer", "best_offer", "offer_history", "api_price", "cost", "fit", "model", "rejected")


def test_it_makes_what_a_whole_build_makes(data_dir, models_dir, tmp_path):
    put(data_dir)
    whole = shutil.copytree(data_dir, tmp_path / "whole", symlinks=True)
    report = build_prices(data_dir)
    assert report is not None
    assert (report.computed, report.model_count) == (0, 4)
    build(whole, models_dir, include=SMALL)
    for table in TABLES:
        rows = [ask(place, f"SELECT * FROM {table} ORDER BY ALL") for place in (data_dir, whole)]
        assert rows[0] == rows[1], table
        assert rows[0]
    assert ask(data_dir, "SELECT inputs_sha256 FROM build") == ask(whole, "SELECT inputs_sha256 FROM build")
    with closing(connect(data_dir)) as con:
        assert run_checks(con) == []
    cheapest = "SELECT usd_per_hour, spot_usd_per_hour FROM cost WHERE gpu_id = 'nvidia-h100-sxm' AND gpu_count = 1"
    assert {(float(usd), float(spot)) for usd, spot in ask(data_dir, cheapest)} == {(1.23, 0.99)}
    assert ask(data_dir, "SELECT provider_id, usd_per_hour FROM cheapest_offers('nvidia-h100-sxm') LIMIT 1")


def test_nothing_changed_publishes_nothing_and_again_renews(data_dir):
    same = build_prices(data_dir)
    assert same is not None
    assert same.build_id is None
    put(data_dir)
    first = build_prices(data_dir)
    put(data_dir, CSV.replace(b"1.23", b"1.50"))
    second = build_prices(data_dir)
    assert first is not None
    assert second is not None
    assert first.build_id != second.build_id
    where = "instance_type = 'zz_1x_h100' AND commitment = 'on_demand'"
    history = ask(
        data_dir, f"SELECT usd_per_hour, valid_to IS NULL FROM offer_history WHERE {where} ORDER BY valid_from"
    )
    assert [(float(usd), is_open) for usd, is_open in history] == [(1.23, False), (1.5, True)]


def test_what_it_cannot_build_upon_is_left_to_a_whole_build(data_dir, tmp_path, monkeypatch):
    assert build_prices(tmp_path / "empty") is None
    monkeypatch.setattr("fitmart.flows.price_build.code_version", lambda: "another")
    assert build_prices(data_dir) is None
    monkeypatch.undo()
    for path in (data_dir / "marts" / "speed").glob("*.parquet"):
        path.unlink()
    assert build_prices(data_dir) is None


def test_the_command(run, data_dir, models_dir):
    put(data_dir)
    code, out, err = run("build", "--only", "prices", "--data-dir", data_dir)
    assert (code, err) == (0, "")
    assert "Computing marts" not in out
    assert run("build", "--only", "prices", "--as-of", "2026-01-01", "--data-dir", data_dir)[0] == 2
    assert run("build", "--only", "everything", "--data-dir", data_dir)[0] == 2


def test_a_catalog_of_an_earlier_day(built, tmp_path, models_dir):
    data_dir = tmp_path / "data"
    day = datetime(2026, 6, 20).date()
    build(data_dir, include=("BAAI/bge-m3",), as_of=day)
    assert ask(data_dir, "SELECT as_of_on, built_at::DATE FROM build") == [(day, day)]
    assert ask(data_dir, "SELECT count(*) > 100, max(observed_at) < '2026-06-21' FROM offer") == [(True, True)]
    assert ask(data_dir, "SELECT count(*) FROM offer_history WHERE valid_from > '2026-06-21'") == [(0,)]
    assert build_prices(data_dir) is None
