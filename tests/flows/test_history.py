"""Landed price lists → what stood when, through the real parsers."""

import json
import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fitmart.flows.compact import compact
from fitmart.flows.landing import land
from fitmart.flows.price_tables import read_price_tables
from fitmart.flows.runs import record_run
from fitmart.flows.sources import registry
from fitmart.flows.sources.contract import Payload, SourceRun
from fitmart.flows.sources.prices import bundled, gpuhunt, skypilot
from fitmart.flows.sources.tokens import openrouter
from fitmart.warehouse.reference import load_reference

START = datetime(2026, 10, 1, 6, tzinfo=UTC)
NOW = START + timedelta(days=60)
REFERENCE = load_reference()
HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"
LIST = "lambda/vms.csv"


def at(hours):
    return START + timedelta(hours=hours)


def csv(prices):
    """{instance type: price of its one H100} → a table as SkyPilot publishes it."""
    rows = [f"{name},H100-SXM,1.0,26,225,{usd},us-east-1,," for name, usd in prices.items()]
    return "\n".join((HEADER, *rows)).encode()


def put(data_dir, hours, prices, name=LIST):
    payload = Payload(name=name, content=csv(prices), url="https://example.org/vms.csv")
    return land(data_dir / "landing", skypilot.SOURCE_ID, [payload], at(hours))


def answered(data_dir, hours, source_id=skypilot.SOURCE_ID):
    run = SourceRun(source_id=source_id, started_at=at(hours), ended_at=at(hours), status="unchanged")
    record_run(data_dir / "landing", run)


@pytest.fixture
def no_seeds(monkeypatch):
    """Without what ships, only what a test lands counts."""
    monkeypatch.setattr(registry, "modules", lambda kind: LIVE[kind])


LIVE = {"prices": (gpuhunt, skypilot), "tokens": (openrouter,), "models": ()}


def tables(data_dir, *, now=NOW, as_of=None, models=()):
    return read_price_tables(data_dir / "landing", models, REFERENCE, now, as_of=as_of)


def spans(data_dir, **more):
    """[(instance type, USD, first hour, hour of the end)] of the source under test."""
    history = tables(data_dir, **more).frames["offer_history"].filter(pl.col("source_id") == skypilot.SOURCE_ID)
    hour = [
        ((pl.col(c) - START.replace(tzinfo=None)).dt.total_minutes() / 60).alias(c) for c in ("valid_from", "valid_to")
    ]
    return sorted(history.select("instance_type", "usd_per_hour", *hour).rows(), key=str)


def test_a_price_that_returns_is_a_new_span_and_a_vanished_offer_closes(tmp_path, no_seeds):
    put(tmp_path, 0, {"a": 3.0, "b": 2.5})
    put(tmp_path, 5, {"a": 3.5, "b": 2.5})
    put(tmp_path, 7, {"a": 3.0, "b": 2.5})
    put(tmp_path, 9, {"a": 3.0})
    assert spans(tmp_path) == [("a", 3.0, 0, 5), ("a", 3.0, 7, None), ("a", 3.5, 5, 7), ("b", 2.5, 0, 9)]
    assert tables(tmp_path).frames["offer"]["instance_type"].to_list() == ["a"]


def test_as_of_an_earlier_day_is_what_was_known_then(tmp_path, no_seeds):
    put(tmp_path, 0, {"a": 3.0, "b": 2.5})
    put(tmp_path, 24, {"a": 3.5})
    found = tables(tmp_path, as_of=at(0).date())
    assert set(found.frames["offer"].select("instance_type", "usd_per_hour").rows()) == {("a", 3.0), ("b", 2.5)}
    assert spans(tmp_path, as_of=at(0).date()) == [("a", 3.0, 0, None), ("b", 2.5, 0, None)]
    assert spans(tmp_path, as_of=at(24).date()) == [("a", 3.0, 0, 24), ("a", 3.5, 24, None), ("b", 2.5, 0, 24)]
    assert tables(tmp_path, as_of=at(-24).date()).frames["offer"].is_empty()


LOOKS = st.dictionaries(
    st.integers(0, 60),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([2.0, 2.5, 3.0]), min_size=1),
    min_size=1,
    max_size=7,
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LOOKS, st.integers(0, 2**31))
def test_late_repeated_and_out_of_order_landings_change_nothing(tmp_path_factory, no_seeds, looks, seed):
    ordered, shuffled = tmp_path_factory.mktemp("ordered"), tmp_path_factory.mktemp("shuffled")
    for hour, prices in sorted(looks.items()):
        put(ordered, hour, prices)
    late = list(looks.items()) + list(looks.items())[:3]
    random.Random(seed).shuffle(late)
    for number, (hour, prices) in enumerate(late):
        put(shuffled, hour, prices)
        if number == 2:
            spans(shuffled)  # a build in between leaves a cache
    expected = spans(ordered)
    assert spans(shuffled) == expected
    compact(shuffled / "landing")
    assert spans(shuffled) == expected


def test_a_mended_parser_mends_the_past(tmp_path, no_seeds, monkeypatch):
    put(tmp_path, 0, {"a": 3.0})
    put(tmp_path, 5, {"a": 3.5})
    assert spans(tmp_path) == [("a", 3.0, 0, 5), ("a", 3.5, 5, None)]
    real = skypilot.parse

    def in_cents(content, seen_at, name=""):
        sifted = real(content, seen_at, name)
        return sifted._replace(good=[r.model_copy(update={"amount": r.amount / 2}) for r in sifted.good])

    monkeypatch.setattr(skypilot, "parse", in_cents)
    assert spans(tmp_path) == [("a", 1.5, 0, 5), ("a", 1.75, 5, None)]


def test_what_was_parsed_is_not_parsed_again(tmp_path, no_seeds, monkeypatch):
    for hour in range(30):
        put(tmp_path, hour, {"a": 2 + hour / 100})
    expected = spans(tmp_path)
    contents = []
    monkeypatch.setattr("fitmart.flows.observations._to_frame", lambda *_: contents.append(_) or 1 / 0)
    assert spans(tmp_path) == expected
    assert contents == []


def test_a_lost_or_damaged_cache_is_made_again(tmp_path, no_seeds):
    put(tmp_path, 0, {"a": 3.0})
    put(tmp_path, 30, {"a": 3.5})
    expected = spans(tmp_path)
    for path in (tmp_path / "observations").rglob("*.parquet"):
        path.write_bytes(b"torn")
    assert spans(tmp_path) == expected


def test_a_price_is_as_old_as_the_last_answer_of_its_source(tmp_path, no_seeds):
    put(tmp_path, 0, {"a": 3.0})
    answered(tmp_path, 24 * 59)
    offer = tables(tmp_path).frames["offer"].row(0, named=True)
    assert offer["observed_at"] == at(24 * 59).replace(tzinfo=None)
    assert offer["is_stale"] is False
    assert tables(tmp_path).frames["offer_history"]["last_seen_at"].to_list() == [offer["observed_at"]]
    later = tables(tmp_path, now=at(24 * 150)).frames["offer"].row(0, named=True)
    assert later["is_stale"] is True


def test_a_bundled_price_stands_from_its_day_until_the_offer_is_seen_again(tmp_path, monkeypatch):
    day = (START - timedelta(days=30)).date()
    header = "provider_id,instance_type,gpu_name_raw,gpu_id,gpu_count,price_scope,product_kind,region,commitment,amount"
    columns = [*bundled.read_table(bundled.PATH, bundled.SEED_SCHEMAS["offer"]).columns]
    values = dict(
        zip(
            header.split(","),
            ("lambda", "a", "H100", "nvidia-h100-sxm", "1", "instance", "vm", "us-east-1", "on_demand", "3.2"),
            strict=True,
        )
    )
    values |= {"currency": "USD", "source_id": "provider-price-pages", "observed_on": day.isoformat()}
    seeds = tmp_path / "offer.csv"
    seeds.write_text(",".join(columns) + "\n" + ",".join(values.get(c, "") for c in columns) + "\n")
    read = bundled.read
    monkeypatch.setattr(bundled, "read", lambda: read(seeds))
    monkeypatch.setattr(registry, "modules", lambda kind: {**LIVE, "prices": (bundled, skypilot)}[kind])

    def history():
        found = tables(tmp_path).frames["offer_history"]
        return found.select("usd_per_hour", pl.col("valid_from").dt.date(), pl.col("valid_to").dt.date()).rows()

    assert history() == [(3.2, day, None)]
    put(tmp_path, 0, {"a": 3.0, "b": 3.0})
    put(tmp_path, 48, {"b": 3.0})
    first, second = at(0).date(), at(48).date()
    assert history()[:2] == [(3.2, day, first), (3.0, first, second)] or history()[1:] == [
        (3.2, day, first),
        (3.0, first, second),
    ]
    assert tables(tmp_path).frames["offer"]["instance_type"].to_list() == ["b"]


def test_token_prices_have_a_history(tmp_path, no_seeds):
    for hour, prompt in ((0, "0.000001"), (3, "0.000002")):
        model = {"id": "acme/m-1", "pricing": {"prompt": prompt, "completion": "0.000004"}}
        body = json.dumps({"data": [model]})
        land(
            tmp_path / "landing",
            openrouter.SOURCE_ID,
            [Payload(name="models", content=body.encode(), url="u")],
            at(hour),
        )
    found = tables(tmp_path, models=["acme/M-1"]).frames
    prices = found["api_price_history"].select("model_id", "input_usd_per_mtok", "valid_from", "valid_to").rows()
    first, second = (at(hour).replace(tzinfo=None) for hour in (0, 3))
    assert prices == [("acme/M-1", 1.0, first, second), ("acme/M-1", 2.0, second, None)]
    assert found["api_price"]["input_usd_per_mtok"].to_list() == [2.0]
