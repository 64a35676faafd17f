"""Headers read from a Hub on loopback, by ranges, through the real client."""

import json
import struct
from dataclasses import replace
from datetime import UTC, datetime
from math import prod

import gguf
import numpy as np
import pytest
from servers.hub_server import HubServer

from fitmart.estimator.anatomy import count_params
from fitmart.flows import headers
from fitmart.flows.estimates import anatomy_of
from fitmart.flows.http import Http
from fitmart.flows.landing import land, list_newest
from fitmart.flows.models import read_models
from fitmart.flows.settings import SettingError, Settings
from fitmart.flows.sources.contract import ModelRecord, Since
from fitmart.flows.sources.models import bundled, hub
from fitmart.flows.stored_files import stored_files

T0 = datetime(2026, 12, 1, tzinfo=UTC)
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 400, "num_attention_heads": 4,
    "intermediate_size": 64, "vocab_size": 100, "tie_word_embeddings": True, "dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def server():
    with HubServer() as running:
        yield running


@pytest.fixture
def settings(server, tmp_path):
    return Settings(data_dir=tmp_path, hub_endpoint=server.url, hub_headers="all", http_timeout_s=2, http_max_wait_s=2)


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    monkeypatch.setattr(bundled, "list_repositories", list)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("fitmart.flows.http.FIRST_WAIT_S", 0.01)


def harvest(settings: Settings) -> int:
    with Http(settings) as http:
        landed = list_newest(settings.landing_dir, hub.SOURCE_ID)
        since = Since(at=None, landed=landed, read=lambda name: None, settings=settings)
        return land(settings.landing_dir, hub.SOURCE_ID, list(hub.fetch(http, since)), T0).added


def record(settings: Settings, model_id: str) -> ModelRecord:
    found = read_models(settings.landing_dir, bundled_path=settings.data_dir / "none")
    return next(r for r in found.records if r.model_id == model_id)


def safetensors(tensors: dict[str, tuple[int, ...]]) -> bytes:
    described, at = {}, 0
    for name, shape in tensors.items():
        described[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at := at + 2 * prod(shape)]}
    text = json.dumps(described).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


SMALL = {"model.embed_tokens.weight": (100, 64), "model.norm.weight": (64,)}
LARGE = {f"model.layers.{i}.mlp.{n}_proj.weight": (64, 64) for i in range(400) for n in ("gate", "up", "down")}


def files_asked(server: HubServer) -> list[str]:
    return [request.rpartition("/")[2] for request in server.file_requests() if "config.json" not in request]


def ranges(server: HubServer) -> list[str]:
    return [r.headers["range"] for r in server.requests if "range" in r.headers]


def test_a_small_header_is_one_ranged_request_and_its_tensors_are_the_catalogs(server, settings):
    server.add("acme/llm", config=CONFIG, files={"model.safetensors": safetensors(SMALL)})
    harvest(settings)
    assert ranges(server) == [f"bytes=0-{headers.FIRST_RANGE - 1}"]
    anatomy = anatomy_of(record(settings, "acme/llm"))
    assert anatomy.facts.anatomy_basis == "header"
    assert anatomy.facts.stored_bytes == 2 * (6400 + 64)
    assert count_params(anatomy)["stored_params"] == 6400 + 64
    server.requests.clear()
    server.hits.clear()
    assert harvest(settings) == 0  # the same revision is not read again
    assert files_asked(server) == []


def test_a_large_header_takes_a_second_range_and_shards_one_request_each(server, settings):
    one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    index = {"metadata": {}, "weight_map": dict.fromkeys(LARGE, one) | dict.fromkeys(SMALL, two)}
    files = {
        one: safetensors(LARGE),
        two: safetensors(SMALL),
        "model.safetensors.index.json": json.dumps(index).encode(),
    }
    server.add("acme/llm", config=CONFIG, files=files | {"consolidated.safetensors": safetensors(SMALL)})
    assert len(json.dumps(json.loads(files[one][8 : 8 + int.from_bytes(files[one][:8], "little")]))) > 130_000
    harvest(settings)
    assert sorted(files_asked(server)) == [one, one, two, "model.safetensors.index.json"]
    first = files[one]
    length = int.from_bytes(first[:8], "little")
    assert f"bytes={headers.FIRST_RANGE}-{8 + length - 1}" in ranges(server)
    anatomy = anatomy_of(record(settings, "acme/llm"))
    assert anatomy.facts.stored_bytes == 2 * (1200 * 64 * 64 + 6400 + 64)


def test_too_many_shards_are_left_and_the_index_gives_their_bytes(server, settings, monkeypatch):
    monkeypatch.setattr(headers.fetch_headers, "__kwdefaults__", {"max_shards": 1})
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {"metadata": {"total_size": 12928}, "weight_map": {"a": names[0], "b": names[1]}}
    files = dict.fromkeys(names, b"") | {"model.safetensors.index.json": json.dumps(index).encode()}
    server.add("acme/llm", config=CONFIG, files=files)
    harvest(settings)
    assert files_asked(server) == ["model.safetensors.index.json"]
    facts = anatomy_of(record(settings, "acme/llm")).facts
    assert (facts.anatomy_basis, facts.stored_bytes) == ("config", 12928)


@pytest.mark.parametrize(
    ("choice", "watch", "read"),
    [("watch", (), set()), ("watch", ("acme/llm",), {"acme/llm"}), ("watch", ("acme",), {"acme/llm"}),
     ("all", (), {"acme/llm", "other/llm"}), ("none", ("acme",), set())],
)  # fmt: skip
def test_the_setting_says_whose_headers_are_read(server, settings, choice, watch, read):
    for name in ("acme/llm", "other/llm"):
        server.add(name, config=CONFIG, files={"model.safetensors": safetensors(SMALL)})
    harvest(replace(settings, hub_headers=choice, hub_watch=watch))
    assert {r.path.split("/resolve")[0].strip("/") for r in server.requests if "range" in r.headers} == read


def test_headers_asked_for_later_are_read_then(server, settings):
    server.add("acme/llm", config=CONFIG, files={"model.safetensors": safetensors(SMALL)})
    harvest(replace(settings, hub_headers="none"))
    assert anatomy_of(record(settings, "acme/llm")).facts.anatomy_basis == "config"
    assert harvest(settings) == 1
    assert anatomy_of(record(settings, "acme/llm")).facts.anatomy_basis == "header"


@pytest.mark.parametrize("content", [b"", b"\x10\0\0\0\0\0\0\0{", safetensors(SMALL)[:-1], b"\xff" * 300])
def test_broken_weights_leave_the_config_alone(server, settings, content):
    server.add("acme/llm", config=CONFIG, files={"model.safetensors": content})
    harvest(settings)
    assert anatomy_of(record(settings, "acme/llm")).facts.anatomy_basis == "config"


def test_a_repository_of_gguf_files_is_a_model_and_its_sizes_are_known(server, settings, tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_token_list([f"a long token of the vocabulary, number {i}".encode() for i in range(60_000)])
    writer.add_tensor("token_embd.weight", np.zeros((100, 64), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    content = (tmp_path / "x.gguf").read_bytes()
    assert len(content) > 2 * headers.GGUF_RANGE
    server.add(
        "acme/llm-GGUF",
        files={"llm-Q4_K_M.gguf": content, "llm-Q8_0.gguf": b"12345", "README.md": b""},
        tags=["base_model:acme/llm"],
    )
    harvest(settings)
    assert len(ranges(server)) == -(-len(content) // headers.GGUF_RANGE)
    found = record(settings, "acme/llm-GGUF")
    assert found.metadata["gguf_files"] == {"llm-Q4_K_M.gguf": len(content), "llm-Q8_0.gguf": 5}
    row = ("acme/llm-GGUF", "acme/llm", "gguf-q4_k_m", len(content))
    assert row in stored_files([found]).rows()
    facts = anatomy_of(found).facts
    assert (facts.model_type, facts.layers, facts.native_precision) == ("llama", 1, "gguf-f16")
    assert facts.stored_bytes == 12_800


def test_a_setting_that_is_none_is_named():
    with pytest.raises(SettingError, match="FITMART_HUB_HEADERS must be one of watch, all, none, not 'some'"):
        Settings.from_environment({"FITMART_HUB_HEADERS": "some"})
