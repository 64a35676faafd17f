"""A small real catalog, built once, and the command line run in this process."""

import json

import pytest

from fitmart.flows.build import build
from fitmart.flows.cli import main
from fitmart.flows.sources.models import bundled

QWEN_72B = "Qwen/Qwen2.5-72B-Instruct"
SMALL = (QWEN_72B, "deepseek-ai/DeepSeek-V3", "BAAI/bge-m3")


def config_of(model_id: str) -> dict:
    """A bundled config."""
    return next(record.config for record in bundled.read()[0] if record.model_id == model_id)


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory):
    """Private models: one with half the layers, and what people leave lying about."""
    folder = tmp_path_factory.mktemp("models")
    half = config_of(QWEN_72B) | {"num_hidden_layers": 40}
    (folder / "acme__half.json").write_text(json.dumps(half))
    (folder / "acme__broken.json").write_text("{not json")
    (folder / "acme__no-layers.json").write_text(
        json.dumps({k: v for k, v in half.items() if k != "num_hidden_layers"})
    )
    (folder / "acme__words.json").write_text(json.dumps(half | {"hidden_size": "eight thousand"}))
    (folder / "acme__negative.json").write_text(json.dumps(half | {"vocab_size": -1}))
    (folder / "acme__absurd.json").write_text(json.dumps(half | {"num_hidden_layers": 10**9}))
    (folder / "acme__unknown.json").write_text(json.dumps({"model_type": "flux-capacitor", "gigawatts": 1.21}))
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory, models_dir):
    """(data folder, report) of a catalog of a few models."""
    data_dir = tmp_path_factory.mktemp("data")
    return data_dir, build(data_dir, models_dir, include=(*SMALL, "acme/*"))


@pytest.fixture
def run(capsys):
    """Run `fitmart ARGUMENTS` → (exit code, stdout, stderr)."""

    def fitmart(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in arguments])
        told = capsys.readouterr()
        return stopped.value.code or 0, told.out, told.err

    return fitmart
