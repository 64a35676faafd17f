"""`fitmart diff`: against the tiny catalog, whose every row is known by heart (built on 2026-12-01)."""

import json
from datetime import UTC, date, datetime

import polars as pl
import pytest
import tiny_catalog

from fitmart.flows.diff import diff, to_lines
from fitmart.warehouse import publish

MODELS = pl.DataFrame(
    [(tiny_catalog.QWEN, datetime(2024, 9, 16)), (tiny_catalog.TINY, datetime(2026, 11, 20))],
    schema=["model_id", "valid_from"],
    orient="row",
).with_columns(source_id=pl.lit("huggingface"))


REJECTED = pl.DataFrame(
    [("lambda", "aws/vms.csv", "quarantined: 3 records after 90 of 2026-11-27 06:00, which stay in use")],
    schema=["source_id", "raw_text", "reason"],
    orient="row",
)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    build_id = "20261201T120000000Z"
    with publish.new_build(folder, build_id) as con:
        tiny_catalog.fill(con, build_id=build_id, model_history=MODELS, rejected=REJECTED)
    publish.publish(folder, build_id)
    return folder


def test_cheaper_offers_new_models_and_stale_sources(data_dir):
    changes = diff(data_dir, date(2026, 11, 1))
    # on 2026-11-01 one H100 cost 2.99; two of them cost 4.00 until 11-20, and nothing cheaper has come since
    assert [
        (r["gpu_id"], r["gpu_count"], float(r["old_usd_per_hour"]), float(r["usd_per_hour"])) for r in changes.cheaper
    ] == [("nvidia-h100-sxm", 1, 2.99, 2.79)]
    assert {r["kind"]: r["offers"] for r in changes.price_changes} == {"new": 4, "cheaper": 1, "gone": 1}
    assert [r["model_id"] for r in changes.new_models] == [tiny_catalog.TINY]
    assert {r["source_id"]: r["status"] for r in changes.stale_sources} == {
        "lambda": "failed",
        "marketplace": "skipped",
    }
    assert not changes.is_empty()


def test_nothing_since_yesterday_but_the_sources(data_dir):
    changes = diff(data_dir, datetime(2026, 11, 30, tzinfo=UTC))
    assert (changes.cheaper, changes.price_changes, changes.new_models) == ([], [], [])


def test_in_words(data_dir):
    lines = to_lines(diff(data_dir, date(2026, 11, 1)))
    assert lines[0] == "Since 2026-11-01 00:00 (catalog of 2026-12-01 12:00, UTC):"
    assert "  1 × nvidia-h100-sxm, on_demand: 2.79 USD/h (lambda) instead of 2.99 (lambda), -7%" in lines
    assert "New models: 1" in lines
    assert any(line.startswith("  lambda: failed, newest row 3 days old (HTTP 503)") for line in lines)
    assert "  lambda aws/vms.csv: quarantined: 3 records after 90 of 2026-11-27 06:00, which stay in use" in lines
    assert len(to_lines(diff(data_dir, date(2026, 1, 1)), most=0)) < len(lines)


def test_the_command(run, data_dir):
    code, out, err = run("diff", "--since", "2026-11-01", "--data-dir", data_dir)
    assert (code, err) == (0, "")
    assert "New models: 1" in out
    code, out, err = run("diff", "--since", "2026-11-01", "--json", "--data-dir", data_dir)
    found = json.loads(out)
    assert (found["since"], found["cheaper"][0]["usd_per_hour"]) == ("2026-11-01T00:00:00", 2.79)
    assert run("diff", "--data-dir", data_dir)[0] == 2
    assert run("diff", "--since", "last week", "--data-dir", data_dir)[0] == 2


def test_without_a_catalog(run, tmp_path):
    code, out, err = run("diff", "--since", "2026-11-01", "--data-dir", tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith("fitmart: no catalog at ")


def test_compact_says_what_it_did(run, tmp_path):
    code, out, err = run("compact", "--data-dir", tmp_path)
    assert (code, err) == (0, "")
    assert out == "Compacted 0 files to 0, 0.0 MB to 0.0 MB\n"
