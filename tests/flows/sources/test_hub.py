import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from servers.hub_server import TOKEN, HubServer
from servers.loopback import Answer

from fitmart.flows.errors import TerminalError, TransientError, UnreachableError
from fitmart.flows.http import Http
from fitmart.flows.landing import land, list_newest, list_versions, read_newest
from fitmart.flows.models import read_models
from fitmart.flows.settings import Settings
from fitmart.flows.sources.contract import ModelRecord, Rejected, Since
from fitmart.flows.sources.models import bundled, hub

T0 = datetime(2026, 12, 1, tzinfo=UTC)
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2}


@pytest.fixture
def server():
    with HubServer() as running:
        yield running


@pytest.fixture
def settings(server, tmp_path):
    return Settings(data_dir=tmp_path, hub_endpoint=server.url, hub_top=100, http_timeout_s=2, http_max_wait_s=2)


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """No bundled models to follow, no token of the machine, short pauses."""
    monkeypatch.setattr(bundled, "list_repositories", list)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("fitmart.flows.http.FIRST_WAIT_S", 0.01)


def harvest(settings: Settings, at: datetime = T0) -> int:
    """Fetch and land in batches as the flow does; the number of new payloads."""
    added = 0
    with Http(settings) as http:
        landed = list_newest(settings.landing_dir, hub.SOURCE_ID)
        since = Since(at=None, landed=landed, read=lambda name: None, settings=settings)
        for payload in hub.fetch(http, since):
            added += land(settings.landing_dir, hub.SOURCE_ID, [payload], at).added
    return added


def records(settings: Settings) -> dict[str, ModelRecord]:
    models = read_models(settings.landing_dir, bundled_path=settings.data_dir / "none")
    return {record.model_id: record for record in models.records}


def rejected(settings: Settings) -> list[str]:
    return [r.reason for r in read_models(settings.landing_dir, bundled_path=settings.data_dir / "none").rejected]


def test_of_five_thousand_listed_and_one_changed_one_config_is_fetched(server, settings):
    for number in range(5000):
        server.add(f"org{number % 50}/model-{number}", config=LLAMA | {"n": number}, downloads=number)
    settings = replace(settings, hub_top=5000)
    landed = hub.SOURCE_ID
    with Http(settings) as http:
        since = Since(at=None, landed={}, read=lambda name: None, settings=settings)
        land(settings.landing_dir, landed, list(hub.fetch(http, since)), T0)
    assert len(server.file_requests()) == 5000
    server.hits.clear()
    server.add("org7/model-7", config=LLAMA | {"n": -7}, downloads=7)
    assert harvest(settings) == 2  # the document and the listing, which names the new revision
    assert server.file_requests() == [
        f"GET /org7/model-7/resolve/{server.repositories['org7/model-7'].sha}/config.json"
    ]
    assert server.busiest <= settings.hub_concurrency
    server.hits.clear()
    assert harvest(settings) == 0
    assert server.file_requests() == []


def test_a_document_becomes_a_model(server, settings):
    server.add(
        "acme/llm",
        config=LLAMA,
        files={"hf_quant_config.json": b'{"quantization": {"quant_algo": "FP8"}}', "README.md": b"x"},
        tags=["license:apache-2.0", "base_model:acme/base", "base_model:quantized:acme/base", "safetensors"],
        downloads=12,
        likes=3,
        library_name="transformers",
        safetensors={"parameters": {"BF16": 6400}, "total": 6400},
    )
    harvest(settings)
    model = records(settings)["acme/llm"]
    assert model.config == LLAMA
    assert model.quant_config == {"quantization": {"quant_algo": "FP8"}}
    assert model.revision == server.repositories["acme/llm"].sha
    assert (model.source_id, model.observed_at) == ("huggingface", T0)
    expected = {
        "license": "apache-2.0",
        "base_model": "acme/base",
        "released_on": "2026-01-02",
        "is_gated": False,
        "downloads": 12,
        "likes": 3,
        "task": "text-generation",
        "library_name": "transformers",
        "safetensors": {"parameters": {"BF16": 6400}, "total": 6400},
    }
    assert model.metadata.items() >= expected.items()
    assert not any("README" in request for request in server.file_requests())


def test_daily_figures_come_from_the_last_listing_without_landing_the_document_again(server, settings):
    server.add("acme/llm", config=LLAMA, downloads=10)
    harvest(settings)
    server.add("acme/llm", config=LLAMA, downloads=99, gated="manual")
    assert harvest(settings) == 1
    assert records(settings)["acme/llm"].metadata.items() >= {"downloads": 99, "is_gated": True}.items()


@pytest.mark.parametrize(
    ("file", "content", "quantization"),
    [
        (
            "quantize_config.json",
            {"bits": 4, "group_size": 128},
            {"quant_method": "gptq", "bits": 4, "group_size": 128},
        ),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 64}, {"quant_method": "awq", "bits": 4, "group_size": 64}),
    ],
)
def test_a_quantization_named_only_in_a_side_file_reaches_the_config(server, settings, file, content, quantization):
    server.add("acme/q", config=LLAMA, files={file: json.dumps(content).encode()})
    harvest(settings)
    assert records(settings)["acme/q"].config["quantization_config"] == quantization


def test_the_most_downloaded_of_both_tasks_and_the_watched_are_followed(server, settings):
    for number in range(8):
        server.add(f"acme/t{number}", config=LLAMA, downloads=number)
        server.add(f"acme/v{number}", config=LLAMA, downloads=number, pipeline_tag="image-text-to-text")
        server.add(f"many/m{number}", config=LLAMA, pipeline_tag="other")
    server.add("few/asr", config=LLAMA, pipeline_tag="other")
    server.add("all/one", config=LLAMA, pipeline_tag="other")
    watch = ("few/asr", "few/gone", "all", *(f"many/m{n}" for n in range(6)))
    harvest(replace(settings, hub_top=2, hub_watch=watch))
    expected = {"acme/t7", "acme/t6", "acme/v7", "acme/v6", "few/asr", "all/one", *(f"many/m{n}" for n in range(6))}
    assert set(records(settings)) == expected


def test_a_gated_model_is_recorded_without_a_token_and_read_with_one(server, settings, monkeypatch):
    server.add("meta/closed", config=LLAMA, gated="manual")
    assert harvest(settings) == 2
    assert records(settings) == {}
    assert rejected(settings) == [
        "meta/closed/config.json: gated, needs the token of an account that accepted its terms"
    ]
    assert harvest(settings) == 0
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert harvest(settings) == 1
    assert records(settings)["meta/closed"].metadata["is_gated"]


def test_the_gate_shows_on_a_bundled_model_too(server, settings, tmp_path):
    server.add("meta/closed", config=LLAMA, gated="auto", downloads=5)
    harvest(settings)
    row = {"model_id": "meta/closed", "observed_on": "2026-11-01", "config": LLAMA, "license": "llama3"}
    (tmp_path / "seed.jsonl").write_text(json.dumps(row))
    (model,) = read_models(settings.landing_dir, bundled_path=tmp_path / "seed.jsonl").records
    assert model.source_id == "bundled-models"
    assert model.metadata.items() >= {"is_gated": True, "downloads": 5, "license": "llama3"}.items()


@pytest.mark.parametrize("path", ["/api/models", "file"])
@pytest.mark.parametrize(
    "fault",
    [
        Answer(429, headers={"Retry-After": "0"}),
        Answer(429),
        Answer(500),
        Answer(200, b"x" * 50, cut=10),
    ],
    ids=["429 with Retry-After", "429", "500", "truncated"],
)
def test_what_passes_is_waited_for(server, settings, monkeypatch, path, fault):
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    server.add("acme/llm", config=LLAMA)
    if path == "file":
        path = f"/acme/llm/resolve/{server.repositories['acme/llm'].sha}/config.json"
    server.faults[path] = [fault]
    harvest(settings)
    assert records(settings)["acme/llm"].config == LLAMA


@pytest.mark.parametrize("path", ["/api/models", "file"])
def test_a_pause_of_an_hour_ends_the_run_and_not_the_refresh(server, settings, path):
    server.add("acme/llm", config=LLAMA)
    if path == "file":
        path = f"/acme/llm/resolve/{server.repositories['acme/llm'].sha}/config.json"
    server.faults[path] = [Answer(429, headers={"Retry-After": "3600"})]
    with pytest.raises(TransientError, match="asks to wait 3,600 s"):
        harvest(settings)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(200, b'[{"name": "no id"}]'), TerminalError),
        (Answer(403), TerminalError),
        (Answer(200, b"[{"), TransientError),
    ],
)
def test_a_listing_that_cannot_be_read_is_one_line(server, settings, answer, error):
    server.faults["/api/models"] = [answer]
    with pytest.raises(error) as raised:
        harvest(settings)
    assert "\n" not in str(raised.value)


def test_one_repository_that_fails_costs_only_itself(server, settings):
    for name in ("a", "b", "c"):
        server.add(f"acme/{name}", config=LLAMA)
    broken = f"/acme/b/resolve/{server.repositories['acme/b'].sha}/config.json"
    server.faults[broken] = [Answer(500)] * 4
    with pytest.raises(TransientError, match=r"1 of 3 changed repositories.*acme/b/config\.json: answered 500"):
        harvest(settings)
    assert set(records(settings)) == {"acme/a", "acme/c"}
    server.hits.clear()
    harvest(settings)
    assert [r.split("/")[2] for r in server.file_requests()] == ["b"]
    assert set(records(settings)) == {"acme/a", "acme/b", "acme/c"}


def test_a_killed_run_goes_on_where_it_stopped(server, settings, monkeypatch):
    monkeypatch.setattr(hub, "BATCH", 5)
    for number in range(20):
        server.add(f"acme/m{number}", config=LLAMA)
    with Http(settings) as http:
        fetching = hub.fetch(http, Since(at=None, landed={}, read=lambda name: None, settings=settings))
        for _ in range(1 + 10):
            land(settings.landing_dir, hub.SOURCE_ID, [next(fetching)], T0)
        fetching.close()
    server.hits.clear()
    harvest(settings)
    assert len(server.file_requests()) == 10
    assert len(records(settings)) == 20


def test_a_config_that_is_no_json_is_rejected_by_name_and_the_version_before_is_kept_in_history(server, settings):
    server.add("acme/llm", config=LLAMA)
    harvest(settings)
    server.add("acme/llm", files={"config.json": b"<html>"})
    server.add("acme/gguf-only", files={"model.gguf": b"GGUF"})
    harvest(settings, datetime(2026, 12, 2, tzinfo=UTC))
    assert records(settings) == {}
    assert sorted(rejected(settings)) == [
        "acme/gguf-only: no config.json in the repository",
        "acme/llm/config.json: is not JSON: Expecting value: line 1 column 1 (char 0)",
    ]
    assert len([v for v in list_versions(settings.landing_dir, hub.SOURCE_ID) if v.name == "acme/llm"]) == 2


def test_a_side_file_that_is_broken_rejects_the_model_rather_than_its_quantization(server, settings):
    server.add("acme/llm", config=LLAMA, files={"hf_quant_config.json": b"{"})
    harvest(settings)
    assert records(settings) == {}


def test_a_mended_parser_mends_the_past(server, settings, monkeypatch):
    server.add("acme/llm", config=LLAMA, tags=["license:mit"])
    harvest(settings)
    monkeypatch.setattr(hub, "describe", lambda metadata: {"license": "mended"})
    payload = next(p for p in read_newest(settings.landing_dir, hub.SOURCE_ID).payloads if p.landed.name == "acme/llm")
    assert hub.parse(payload.content, T0).metadata == {"license": "mended"}


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"repo_id": 1, "files": {}, "metadata": 3}', b"[" * 100_000])
def test_a_document_of_another_form_is_rejected(content):
    assert isinstance(hub.parse(content, T0, "acme/llm"), Rejected)


def test_without_a_network_it_says_so_at_once(settings):
    with pytest.raises(UnreachableError, match="no connection"):
        harvest(replace(settings, hub_endpoint="http://127.0.0.1:9"))
