"""Every price API of the registry, over real HTTP on loopback: what all of them must do."""

import importlib
import time
from dataclasses import replace

import pytest
from servers.loopback import Answer, LoopbackServer
from servers.past import SEEN_AT, drain, past
from servers.price_api import CANARY, changed, mirrors

from fitmart.flows.errors import SourceError
from fitmart.flows.harvester import Harvester, plan_sources
from fitmart.flows.http import Http
from fitmart.flows.landing import list_versions, read_all
from fitmart.flows.offers import normalise
from fitmart.flows.settings import Settings
from fitmart.flows.sources import registry
from fitmart.warehouse.snapshot import read_seed

FILES = {"gpuhunt", "skypilot"}  # published files of others, with tests of their own
MODULES = [m for m in registry.live("prices") if m.__name__.rpartition(".")[2] not in FILES]


def api_of(module):
    return importlib.import_module(f"servers.price_api_{module.__name__.rpartition('.')[2]}")


@pytest.fixture(params=MODULES, ids=lambda m: m.__name__.rpartition(".")[2])
def module(request, monkeypatch):
    api = api_of(request.param)
    monkeypatch.setattr("fitmart.flows.http.FIRST_WAIT_S", 0.01)
    for name, value in api.CONSTANTS.items():
        monkeypatch.setattr(request.param, name, value)
    for name, value in api.KEYS.items():
        monkeypatch.setenv(name, value)
    return request.param


@pytest.fixture
def api(module):
    return api_of(module)


@pytest.fixture
def server(api):
    with LoopbackServer(dict(api.ROUTES)) as running:
        yield running


def settings_for(api, server, **more):
    quick = {"http_tries": 3, "http_timeout_s": 5.0, "http_max_wait_s": 1.0} | more
    return replace(Settings(), mirrors=mirrors(api, server), **quick)


def harvest(module, api, server, **more):
    """What was fetched, and what it says: offers and rejected rows."""
    with Http(settings_for(api, server, **more)) as http:
        payloads = list(module.fetch(http, past()))
    return payloads, read(module, payloads)


def read(module, payloads):
    sifted = [module.parse(p.content, SEEN_AT, p.name) for p in payloads]
    return [o for s in sifted for o in s.good], [r for s in sifted for r in s.rejected]


def failure(module, api, server, **more):
    """The message of a fetch that fails, and what it had given before."""
    got = []
    with Http(settings_for(api, server, **more)) as http, pytest.raises(SourceError) as error:
        drain(module.fetch(http, past()), got)
    return str(error.value), got


def test_all_of_it_is_read_and_known(module, api, server):
    payloads, (offers, rejected) = harvest(module, api, server)
    assert rejected == []
    assert len(offers) == api.OFFERS
    assert len({p.name for p in payloads}) == len(payloads)
    assert {(o.source_id, o.origin) for o in offers} == {(module.SOURCE_ID, getattr(api, "ORIGIN", "direct"))}
    normal = normalise(offers)
    assert [r.reason for r in normal.rejected] == []
    assert api.DOCS.startswith("https://")


@pytest.mark.parametrize(
    "fault",
    [
        Answer(429),
        Answer(429, headers={"Retry-After": "0"}),
        Answer(500),
        Answer(200, b'{"a": [1, 2, 3]}', cut=5),
    ],
    ids=["429", "429 with Retry-After", "500", "broken off"],
)
def test_what_passes_costs_nothing(module, api, server, fault):
    server.faults[api.FIRST] = [fault]
    _, (offers, rejected) = harvest(module, api, server)
    assert (len(offers), rejected) == (api.OFFERS, [])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Answer(200, b"", wait_s=0.8), "nothing for 0.2 s"),
        (Answer(503), "answered 503"),
        (Answer(403, b"<html>no</html>"), "answered 403"),
        (Answer(200, b'{"Items": [', cut=4), "broke off"),
    ],
    ids=["hung", "503", "403", "broken off"],
)
def test_what_stays_is_named_in_time(module, api, server, fault, message):
    server.faults[api.FIRST] = [fault] * 50
    start = time.monotonic()
    text, _ = failure(module, api, server, http_tries=1, http_timeout_s=0.2 if fault.wait_s else 5)
    assert message in text
    assert time.monotonic() - start < 3


def test_fields_that_are_new_change_nothing(module, api, server):
    def more(row):
        is_map = row and all(isinstance(value, dict) for value in row.values())  # of rows by name
        return row if is_map else row | {"zz_new": {"a": [1]}, "zz_flag": None}

    server.routes = changed(api.ROUTES, more)
    _, (offers, rejected) = harvest(module, api, server)
    assert (len(offers), rejected) == (api.OFFERS, [])


def test_a_field_that_is_gone_is_a_failure_with_its_name(module, api, server):
    if not api.NEEDED:
        pytest.skip("another's parser, with tests of its own")
    server.routes = changed(api.ROUTES, lambda row: {name: value for name, value in row.items() if name != api.NEEDED})
    text, got = failure(module, api, server)
    assert api.NEEDED in text
    assert [o for o in read(module, got)[0] if o.commitment != "spot"] == []


def test_an_answer_with_nothing_in_it_is_a_failure_and_lands_nothing(module, api, server):
    server.routes = dict(api.EMPTY)
    text, got = failure(module, api, server)
    assert "no offer" in text
    assert got == []


def test_a_payload_of_another_shape_never_raises(module):
    for content in (b"", b"<html>", b"null", b"3", b"[]", b'{"data": 1}', b"[" * 100_000, b"\xff", b'{"errors": [1]}'):
        good, rejected = module.parse(content, SEEN_AT, "x")
        assert good == []
        assert len(rejected) <= 1


def test_a_key_is_sent_and_kept_nowhere(module, api, server, tmp_path, monkeypatch):
    optional = getattr(api, "OPTIONAL_KEYS", {})
    if not api.KEYS | optional:
        assert module.NEEDS is None
        pytest.skip("asks without a key")
    for name, value in optional.items():
        monkeypatch.setenv(name, value)
    server.faults["*"] = [Answer(403, b"no")]  # the first try fails: its message is kept as well
    settings = settings_for(api, server, data_dir=tmp_path)
    messages = []
    for _ in range(2):
        harvester = Harvester(settings, plan_sources([module.SOURCE_ID]))
        try:
            harvester.run(module.SOURCE_ID)
        except SourceError as error:
            messages.append(str(error))
        messages += [run.reason for run in harvester.report()]
        harvester.close()
    assert any(CANARY in str(r.headers) or CANARY.encode() in r.body for r in server.requests)
    assert all(CANARY not in r.path and CANARY not in str(r.query) for r in server.requests)
    versions = list_versions(settings.landing_dir, module.SOURCE_ID)
    assert versions
    kept = [p.content for p in read_all(settings.landing_dir, module.SOURCE_ID)]
    kept += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert all(CANARY.encode() not in content for content in kept)
    assert CANARY not in f"{messages} {versions}"


def test_the_source_table_says_the_same(module):
    row = read_seed("source").filter(source_id=module.SOURCE_ID).row(0, named=True)
    assert (row["needs_key"], row["max_age_hours"]) == (module.NEEDS, module.MAX_AGE_HOURS)


def test_without_its_key_a_source_is_skipped_with_the_name_of_it(module, monkeypatch):
    if module.NEEDS:
        monkeypatch.delenv(module.NEEDS)
        assert plan_sources([module.SOURCE_ID]).skipped == {module.SOURCE_ID: f"needs {module.NEEDS}"}
    else:
        assert plan_sources([module.SOURCE_ID]).skipped == {}
