"""`fitmart estimate`: one model, a file of scenarios, and what people get wrong."""

import csv
import json

import pytest

from fitmart.flows.sources.models import bundled

QWEN = "Qwen/Qwen2.5-72B-Instruct"


@pytest.fixture
def config(tmp_path):
    """A config.json of a user's own: Qwen2.5-72B with half the layers."""
    folder = tmp_path / "acme__half"
    folder.mkdir()
    own = next(r.config for r in bundled.read()[0] if r.model_id == QWEN) | {"num_hidden_layers": 40}
    path = folder / "config.json"
    path.write_text(json.dumps(own))
    return path


def answers(run, *arguments):
    code, out, err = run("estimate", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)["answers"]


def test_one_model_on_one_gpu(run, tmp_path):
    (row,) = answers(run, QWEN, "--gpu", "H100 SXM", "--gpu-count", 4, "--precision", "bf16", "--data-dir", tmp_path)
    assert row["gpu_id"] == "nvidia-h100-sxm"
    assert row["weights_total_bytes"] == 145_412_407_296
    assert row["weights_bytes"] == pytest.approx(145_412_407_296 / 4, rel=1e-3)
    assert row["verdict"] == "fits"


def test_the_page_s_two_h100_do_not_hold_it(run, tmp_path):
    # a public page launches BF16 on two 80 GB cards at 0.9: 71.3 − 67.7 GiB a card leave 3.6 for activation and KV
    (row,) = answers(
        run, QWEN, "--gpu", "nvidia-h100-sxm", "--gpu-count", 2, "--precision", "bf16", "--data-dir", tmp_path
    )
    assert (row["verdict"], row["limited_by"]) == ("no", "kv_cache")


def test_a_config_file(run, config, tmp_path):
    (row,) = answers(run, config, "--gpu", "nvidia-l40s", "--context", 4096, "--data-dir", tmp_path)
    assert row["model_id"] == "acme/half"
    # 72,706,203,648 less 40 layers of 877,684,736 parameters
    assert row["params_total"] == 37_598_814_208


def test_without_a_gpu_the_smallest_that_fit(run, tmp_path):
    rows = answers(run, QWEN, "--precision", "awq-int4", "--context", 8192, "--data-dir", tmp_path)
    assert 1 < len(rows) <= 12
    assert {r["verdict"] for r in rows} <= {"fits", "tight"}


def test_the_table_is_for_people(run, tmp_path):
    code, out, err = run("estimate", QWEN, "--gpu", "nvidia-l20", "--users", 5, "--data-dir", tmp_path)
    assert (code, err) == (0, "")
    assert "nvidia-l20" in out
    assert "the weights do not fit" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nobody/nothing",), "fitmart: unknown model 'nobody/nothing'"),
        ((QWEN, "--gpu", "Voodoo 2"), "fitmart: GPU 'Voodoo 2': "),
        ((QWEN, "--gpu", "nvidia-l20", "--precision", "int3.5"), "fitmart: unknown precision 'int3.5'"),
        (("missing/config.json",), "fitmart: missing/config.json: cannot be read"),
    ],
)
def test_one_clear_line(run, tmp_path, arguments, line):
    code, out, err = run("estimate", *arguments, "--data-dir", tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith(line)
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{not json", "is not JSON"),
        ("[1, 2]", "not an object"),
        ("{}", "model_type"),
        ('{"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": "big"}', "hidden_size"),
        ('{"model_type": "qwen2", "hidden_size": 64}', "num_hidden_layers"),
        ("", "is not JSON"),
    ],
)
def test_a_config_that_is_none(run, tmp_path, content, words):
    path = tmp_path / "config.json"
    path.write_text(content)
    code, out, err = run("estimate", path, "--gpu", "nvidia-l20", "--data-dir", tmp_path)
    assert (code, out) == (1, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_wrong_use(run):
    assert run("estimate")[0] == 2
    assert run("estimate", QWEN, "--scenarios", __file__)[0] == 2
    assert run("estimate", QWEN, "--gpu-count", 0)[0] == 2


def scenarios(path, rows):
    fields = list(dict.fromkeys(k for row in rows for k in row))
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fields)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_scenarios_one_row_in_one_row_out(run, tmp_path):
    rows = [
        {"model_id": QWEN, "precision": "bf16", "gpu_name": "NVIDIA H100 80GB HBM3", "gpu_count": "4"},
        {"model_id": "nobody/nothing", "precision": "bf16"},
        {"model_id": QWEN, "precision": "gguf-q4_k_m", "max_model_len": "8192", "mine": "kept"},
        {"model_id": QWEN, "precision": "bf16", "max_model_len": "plenty"},
        {"model_id": QWEN, "precision": "bf16", "gpu_name": "mystery", "gpu_memory_bytes": str(80 * 2**30)},
    ]
    rows = [{"scenario_id": name} | row for name, row in zip("abcde", rows, strict=True)]
    out = tmp_path / "out.csv"
    code, said, err = run(
        "estimate", "--scenarios", scenarios(tmp_path / "in.csv", rows), "-o", out, "--data-dir", tmp_path
    )
    assert (code, said, err) == (0, "", "")
    with out.open(newline="", encoding="utf-8") as stream:
        got = list(csv.DictReader(stream))
    assert [r["scenario_id"] for r in got] == ["a", "b", "c", "d", "e"]
    assert [r["error"] for r in got] == [
        "",
        "unknown model 'nobody/nothing'",
        "",
        "max_model_len: not a whole number in range: 'plenty'",
        "",
    ]
    assert got[0]["verdict"] == "fits"
    assert got[2]["mine"] == "kept"
    # bartowski's file of Qwen2.5-72B-Instruct Q4_K_M: 47.42 GB
    assert float(got[2]["file_bytes"]) == pytest.approx(47.42e9, rel=1e-3)
    # 2 × 80 × 8 × 128 × 2 B × 8,192
    assert got[2]["kv_minimum_bytes"] == "2684354560"
    assert got[4]["verdict"] == "no"


def test_a_file_that_is_no_scenarios(run, tmp_path):
    for content, words in (("", "is empty"), ("a,b\n1,2\n", "has no column model_id")):
        path = tmp_path / "in.csv"
        path.write_text(content)
        code, _, err = run("estimate", "--scenarios", path, "--data-dir", tmp_path)
        assert code == 1
        assert words in err
        assert len(err.splitlines()) == 1


def test_an_output_that_cannot_be_written_leaves_nothing(run, tmp_path):
    source = scenarios(tmp_path / "in.csv", [{"model_id": QWEN, "precision": "bf16"}])
    (tmp_path / "a-file").write_text("")
    code, _, err = run("estimate", "--scenarios", source, "-o", tmp_path / "a-file" / "out.csv", "--data-dir", tmp_path)
    assert code == 1
    assert err.startswith("fitmart: cannot create the folder ")
