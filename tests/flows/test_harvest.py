"""The one module with a real Prefect server: the first test starts it, all others use it."""

import os
import types
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest
from servers.loopback import Answer, LoopbackServer
from servers.price_server import GENAI_PRICES, LITELLM, serve_prices

from fitmart.flows import harvester
from fitmart.flows.harvest import harvest
from fitmart.flows.harvester import UnknownSourceError, plan_sources
from fitmart.flows.landing import read_newest
from fitmart.flows.runs import read_runs
from fitmart.flows.settings import Settings
from fitmart.flows.sources import registry
from fitmart.flows.sources.contract import Payload, Rejected
from fitmart.flows.sources.prices import gpuhunt
from fitmart.warehouse.connection import connect

JSON = b'{"rows": []}'


@pytest.fixture(scope="module")
def prefect_home(tmp_path_factory):
    """Prefect reads its settings once a process, so all tests here share a home; the environment is put back."""
    before = dict(os.environ)
    yield tmp_path_factory.mktemp("home")
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def settings(tmp_path, prefect_home, monkeypatch):
    monkeypatch.setattr(Settings, "prefect_home", prefect_home)
    monkeypatch.setattr("fitmart.flows.http.FIRST_WAIT_S", 0.01)
    return Settings(data_dir=tmp_path, http_timeout_s=0.3, http_deadline_s=3, http_max_wait_s=1, http_tries=2)


@pytest.fixture
def server():
    with LoopbackServer({"/good": Answer(200, JSON), "/html": Answer(200, b"<html>")}) as running:
        yield running


@pytest.fixture
def add_source(monkeypatch):
    """Make modules the only sources there are."""
    modules: list[types.ModuleType] = []
    monkeypatch.setattr(registry, "modules", lambda kind: tuple(modules) if kind == "prices" else ())

    def add(source_id: str, fetch: Callable | None = None, *, needs: str | None = None, survey: Callable | None = None):
        module = types.ModuleType(source_id)
        module.NAME, module.SOURCE_ID, module.MAX_AGE_HOURS, module.NEEDS = source_id, source_id, 24, needs
        if fetch:
            module.fetch = fetch
        if survey:
            module.survey = survey
        modules.append(module)

    return add


def get(url: str) -> Callable:
    return lambda http, since: [Payload(name="data", content=http.get(url, expect="json"), url=url)]


def test_a_failing_source_costs_only_itself(settings, server, add_source):
    server.routes |= {"/500": Answer(500), "/cut": Answer(200, JSON, cut=3), "/hung": Answer(200, JSON, wait_s=1)}
    for name in ("good", "500", "cut", "hung", "html", "missing"):
        add_source(name, get(f"{server.url}/{name}"))
    add_source("broken", lambda http, since: [][1])
    add_source("keyed", get(f"{server.url}/good"), needs="FITMART_TEST_KEY")
    add_source("shelf", survey=lambda s: (7, [Rejected(source_id="shelf", raw_text="x", reason="line 3: no price")]))
    runs = {run.source_id: run for run in harvest(settings)}
    assert {name: run.status for name, run in runs.items()} == {
        "good": "ok",
        "500": "failed",
        "cut": "failed",
        "hung": "failed",
        "html": "failed",
        "missing": "failed",
        "broken": "failed",
        "keyed": "skipped",
        "shelf": "ok",
    }
    host = server.url.removeprefix("http://")
    assert runs["500"].reason == f"{host}/500: answered 500 Internal Server Error"
    assert runs["hung"].reason == f"{host}/hung: nothing for 0.3 s"
    assert runs["missing"].reason == f"{host}/missing: answered 404 Not Found"
    assert runs["broken"].reason == "unexpected IndexError: list index out of range"
    assert runs["keyed"].reason == "needs FITMART_TEST_KEY"
    assert (runs["shelf"].payloads, runs["shelf"].reason) == (7, "1 rejected: line 3: no price")
    assert (runs["good"].payloads, runs["good"].added, runs["good"].bytes) == (1, 1, len(JSON))
    assert read_runs(settings.landing_dir) == sorted(runs.values(), key=lambda run: (run.ended_at, run.source_id))
    hits = Counter({name: server.hits[f"GET /{name}"] for name in ("good", "500", "html", "missing")})
    assert hits == {"good": 1, "500": 4, "html": 1, "missing": 1}  # two tries of a request, two of a transient source


def test_a_source_that_recovers_is_retried_and_goes_on_where_it_stopped(settings, server, add_source, monkeypatch):
    monkeypatch.setattr(harvester, "LAND_EVERY", 2)
    asked: list[str] = []

    def fetch(http, since):
        for name in "abcde":
            if name in since.landed:
                continue
            asked.append(name)
            yield Payload(name=name, content=http.get(f"{server.url}/{name}"), url="u")

    server.routes |= {f"/{name}": Answer(200, name.encode()) for name in "abcde"}
    server.faults["/d"] = [Answer(500), Answer(500)]
    add_source("batched", fetch)
    (run,) = harvest(settings)
    assert (run.status, run.payloads, run.added) == ("ok", 5, 5)  # three by the first try, two by the second
    assert asked == ["a", "b", "c", "d", "d", "e"]
    assert [p.content for p in read_newest(settings.landing_dir, "batched").payloads] == [b"a", b"b", b"c", b"d", b"e"]


def test_what_landed_before_a_failure_is_counted(settings, server, add_source):
    def fetch(http, since):
        yield Payload(name="a", content=b"a", url="u")
        http.get(f"{server.url}/missing")

    add_source("half", fetch)
    (run,) = harvest(settings)
    assert (run.status, run.added, run.bytes) == ("failed", 1, 1)
    assert [p.content for p in read_newest(settings.landing_dir, "half").payloads] == [b"a"]


def test_a_second_harvest_asks_conditionally_and_adds_only_its_row(settings, server, add_source):
    server.routes["/good"] = lambda r: (
        Answer(304) if r.headers.get("if-none-match") else Answer(200, JSON, {"ETag": '"1"'})
    )
    add_source("good", get(f"{server.url}/good"))
    seen = []
    add_source("other", lambda http, since: seen.append(since) or [])
    first = harvest(settings)
    before = {p: p.read_bytes() for p in settings.landing_dir.rglob("*.parquet")}
    second = harvest(settings)
    assert [run.status for run in (*first, *second)] == ["ok", "unchanged", "unchanged", "unchanged"]
    assert {p: p.read_bytes() for p in settings.landing_dir.rglob("*.parquet")} == before
    assert len(read_runs(settings.landing_dir)) == 4
    assert seen[0].at is None
    assert seen[1].at == first[1].started_at
    assert (seen[1].read("none"), seen[1].settings) == (None, settings)


def test_offline_asks_nothing(settings, server, add_source):
    add_source("good", get(f"{server.url}/good"))
    add_source("shelf", survey=lambda s: (1, []))
    assert [(run.source_id, run.status) for run in harvest(settings, offline=True)] == [
        ("good", "skipped"),
        ("shelf", "ok"),
    ]
    assert server.requests == []


def test_sources_can_be_chosen_and_a_wrong_name_is_one_line(settings, add_source):
    add_source("a", lambda http, since: [])
    add_source("b", lambda http, since: [])
    assert [run.source_id for run in harvest(settings, only=["b"])] == ["b"]
    with pytest.raises(UnknownSourceError, match="no source is named c; there are a, b"):
        harvest(settings, only=["c"])


def test_a_server_that_asks_for_a_long_pause_is_not_asked_twice(settings, server, add_source):
    server.routes["/busy"] = Answer(429, headers={"Retry-After": "600"})
    add_source("busy", get(f"{server.url}/busy"))
    (run,) = harvest(settings)
    assert run.reason.endswith("/busy: answered 429 Too Many Requests")
    assert server.hits["GET /busy"] == 1


def test_sources_run_side_by_side_within_the_limit(settings, server, add_source):
    server.routes["/slow"] = Answer(200, JSON, wait_s=0.2)
    for number in range(6):
        add_source(f"s{number}", get(f"{server.url}/slow"))
    harvest(replace(settings, source_concurrency=3))
    assert 2 <= server.busiest <= 3


def test_every_module_of_the_sources_keeps_the_contract():
    modules = plan_sources(offline=False)
    ids = [m.SOURCE_ID for m in modules.chosen] + list(modules.skipped)
    assert {"huggingface", "bundled-models", "local-models"} <= set(ids)
    assert len(ids) == len(set(ids))
    for module in modules.chosen:
        assert module.NAME
        assert module.MAX_AGE_HOURS > 0
        assert hasattr(module, "survey") or (callable(module.parse) and hasattr(module, "NEEDS"))


# ---- the whole refresh --------------------------------------------------------------------------------------------- #

H100 = {
    "instance_name": "zz.h100-8", "location": "zz-1", "price": "20", "cpu": "96", "memory": "1000.0", "gpu_count": "8",
    "gpu_name": "H100", "gpu_memory": "80.0", "spot": "False", "gpu_vendor": "nvidia", "cpu_arch": "x86",
    "provider_data": "{}",
}  # fmt: skip
LIVE = ("gpuhunt", "openrouter", "litellm", "genai-prices")
MODEL = {
    "id": "zz/gpt2",
    "hugging_face_id": "openai-community/gpt2",
    "pricing": {"prompt": "1e-7", "completion": "2e-7"},
}


@pytest.fixture
def publishers(monkeypatch):
    """gpuhunt and OpenRouter answer; LiteLLM is down and genai-prices is cut off."""
    with serve_prices() as server:
        for provider in gpuhunt.PROVIDERS:
            server.put_gpuhunt(provider, "20261130-7", [H100] if provider == "nebius" else [])
        server.put_json("/or/api/v1/models", {"data": [MODEL]})
        server.faults |= {f"/raw{LITELLM}": 500, f"/raw{GENAI_PRICES}": b'[{"id": "aws", "mod'}
        monkeypatch.setenv("FITMART_MIRRORS", ",".join(f"{a}={b}" for a, b in server.mirrors))
        monkeypatch.setenv("FITMART_HTTP_TRIES", "1")
        yield server


def test_refresh_publishes_what_came_and_names_what_failed(run, publishers, settings):
    arguments = ["refresh", "--data-dir", settings.data_dir, "--include", "openai-community/gpt2"]
    arguments += [word for source in LIVE for word in ("--only", source)]
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines() if " failed: " in line}
    assert "answered 500" in lines["litellm"]
    assert lines["genai-prices"].startswith("genai-prices failed: ")
    with closing(connect(settings.data_dir)) as con:
        live = con.execute("SELECT usd_per_hour, gpu_id FROM offer WHERE instance_type = 'zz.h100-8'").fetchall()
        assert [(float(usd), gpu) for usd, gpu in live] == [(20.0, "nvidia-h100-pcie")]
        # LiteLLM failed: the bundled snapshot's rows of it serve
        assert con.execute("SELECT count(*) > 500 FROM api_price WHERE source_id = 'litellm'").fetchall() == [(True,)]
        runs = con.execute("SELECT source_id, status FROM source_run ORDER BY 1").fetchall()
        assert runs == [("genai-prices", "failed"), ("gpuhunt", "ok"), ("litellm", "failed"), ("openrouter", "ok")]
    landed = sorted(p.name for p in settings.landing_dir.rglob("*.parquet"))
    code, out, err = run(*arguments, "--strict")
    assert (code, err) == (3, "")
    assert "Nothing has changed" in out
    # a refresh in which nothing changed adds rows of source_run and nothing else
    assert sorted(p.name for p in settings.landing_dir.rglob("*.parquet")) == landed
    assert len(read_runs(settings.landing_dir)) == 2 * len(LIVE)
