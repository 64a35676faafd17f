"""Revisions of a model over time, from documents as the Hub flow lands them."""

import json
from datetime import UTC, date, datetime, timedelta

import polars as pl

from fitmart.flows.catalog import read_catalog
from fitmart.flows.landing import land
from fitmart.flows.sources.contract import Payload
from fitmart.flows.sources.models import bundled, hub
from fitmart.warehouse.reference import load_reference

START = datetime(2026, 12, 1, tzinfo=UTC)
QWEN = "Qwen/Qwen2.5-72B-Instruct"
SHIPPED = next(record for record in bundled.read()[0] if record.model_id == QWEN)
REFERENCE = load_reference()


def put(data_dir, days, sha, repo_id=QWEN, **changes):
    document = {
        "repo_id": repo_id,
        "sha": sha,
        "metadata": {},
        "files": {"config.json": json.dumps(SHIPPED.config | changes)},
        "missing": {},
    }
    payload = Payload(name=repo_id, content=json.dumps(document).encode(), url="https://example.org")
    land(data_dir / "landing", hub.SOURCE_ID, [payload], START + timedelta(days=days))


def history(data_dir, as_of: date | None = None):
    now = START + timedelta(days=30)
    catalog = read_catalog(data_dir / "landing", None, REFERENCE, now, as_of=as_of, include=(QWEN, "acme/*"))
    day = [((pl.col(c) - START.replace(tzinfo=None)).dt.total_days()).alias(c) for c in ("valid_from", "valid_to")]
    return catalog.frames["model_history"].select("model_id", "revision", *day, "params_total").rows()


SHIPPED_DAY = (SHIPPED.observed_at - START).days
WHOLE, HALF = 72_706_203_648, 37_598_814_208  # 80 and 40 layers of 877,684,736 parameters beside 2,491,424,768


def test_what_ships_is_known_since_its_day(tmp_path):
    assert history(tmp_path) == [(QWEN, SHIPPED.revision, SHIPPED_DAY, None, WHOLE)]


def test_a_new_revision_closes_the_one_before(tmp_path):
    put(tmp_path, 1, "aaaa")
    put(tmp_path, 1, "cccc", repo_id="acme/new")
    put(tmp_path, 3, "bbbb", num_hidden_layers=40)
    expected = [
        (QWEN, SHIPPED.revision, SHIPPED_DAY, 1, None),
        (QWEN, "aaaa", 1, 3, WHOLE),
        (QWEN, "bbbb", 3, None, HALF),
        ("acme/new", "cccc", 1, None, WHOLE),
    ]
    assert history(tmp_path) == expected
    assert history(tmp_path) == expected  # from what was kept
    assert [row[:4] for row in history(tmp_path, as_of=date(2026, 12, 2))] == [
        (QWEN, SHIPPED.revision, SHIPPED_DAY, 1),
        (QWEN, "aaaa", 1, None),
        ("acme/new", "cccc", 1, None),
    ]


def test_a_document_that_changes_without_its_revision_is_no_new_one(tmp_path):
    put(tmp_path, 1, "aaaa")
    put(tmp_path, 2, "aaaa", some_note="read again with headers")
    assert [row[1:4] for row in history(tmp_path)] == [(SHIPPED.revision, SHIPPED_DAY, 1), ("aaaa", 1, None)]
