import json
from pathlib import Path

import pytest

from fitmart.flows.models import read_models
from fitmart.flows.settings import Settings
from fitmart.flows.sources.models import bundled, local

CONFIG = {"model_type": "llama", "num_hidden_layers": 2}


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def test_private_models_are_files_or_folders(tmp_path):
    write(tmp_path / "acme__flat.json", CONFIG)
    write(tmp_path / "acme__deep" / "config.json", CONFIG | {"n": 1})
    write(tmp_path / "acme__deep" / "hf_quant_config.json", {"quantization": {}})
    write(tmp_path / ".hidden", "")
    write(tmp_path / "README.md", "")
    records, rejected = local.read(tmp_path)
    assert rejected == []
    assert [(r.model_id, r.config.get("n"), r.quant_config) for r in records] == [
        ("acme/deep", 1, {"quantization": {}}),
        ("acme/flat", None, None),
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a__b.json", "{", "a__b.json is not JSON: "),
        ("a__b.json", "[1]", "holds a list, not an object"),
        ("a__b.json", "[" * 100_000, "nested too deeply"),
        ("a__b/other.json", "{}", "has no config.json"),
        ("a__b/config.json", "\udcff", "is not UTF-8"),
        ("plain.json", "{}", "the name must be <org>__<name>"),
        ("__b.json", "{}", "the name must be <org>__<name>"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_the_others_serve(tmp_path, name, content, reason):
    write(tmp_path / "good__one.json", CONFIG)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode(errors="surrogateescape"))
    records, rejected = local.read(tmp_path)
    assert [r.model_id for r in records] == ["good/one"]
    assert len(rejected) == 1
    assert reason in rejected[0].reason
    assert "\n" not in rejected[0].reason


def test_a_model_that_is_there_twice_is_named(tmp_path):
    write(tmp_path / "a__b.json", CONFIG)
    write(tmp_path / "a__b" / "config.json", CONFIG)
    records, rejected = local.read(tmp_path)
    assert len(records) == 1
    assert "there twice" in rejected[0].reason


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    assert "No such file" in local.read(tmp_path / "none")[1][0].reason
    assert local.survey(Settings()) == (0, [])


def test_bundled_lines_become_records_and_a_bad_line_is_named(tmp_path):
    path = tmp_path / "model_config.jsonl"
    good = {"model_id": "acme/a", "revision": "abc", "observed_on": "2026-11-30", "license": "mit", "config": CONFIG}
    lines = [json.dumps(good), "", "{", json.dumps(good | {"config": 3}), json.dumps({"model_id": "x"})]
    path.write_text("\n".join(lines))
    records, rejected = bundled.read(path)
    assert [(r.model_id, r.revision, r.metadata["license"]) for r in records] == [("acme/a", "abc", "mit")]
    assert [r.reason.split(":")[0] for r in rejected] == [f"model_config.jsonl line {n}" for n in (2, 3, 4)]
    assert rejected[2].reason.endswith("lacks 'config'")
    assert bundled.list_repositories(path) == ["acme/a"]
    assert bundled.read(tmp_path / "none") == ([], [])


def test_a_private_model_wins_over_a_bundled_one_of_its_name(tmp_path):
    seed = {"model_id": "acme/a", "observed_on": "2026-11-30", "config": CONFIG}
    write(tmp_path / "seed.jsonl", "\n".join(json.dumps(seed | {"model_id": m}) for m in ("acme/a", "acme/b")))
    write(tmp_path / "own" / "acme__a.json", CONFIG | {"mine": True})
    models = read_models(tmp_path / "landing", tmp_path / "own", bundled_path=tmp_path / "seed.jsonl")
    assert [(r.model_id, r.source_id) for r in models.records] == [
        ("acme/a", "local-models"),
        ("acme/b", "bundled-models"),
    ]
