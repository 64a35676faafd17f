"""`fitmart build` and `refresh --offline`: what they say, and what they do with a folder they cannot use."""

import pytest

ONE = ("--include", "openai-community/gpt2")


def test_build_says_what_it_holds_and_then_that_nothing_changed(run, tmp_path):
    code, out, err = run("build", *ONE, "--data-dir", tmp_path)
    assert (code, err) == (0, "")
    assert "fit " in out
    assert (tmp_path / "fitmart.duckdb").exists()
    code, out, err = run("build", *ONE, "--data-dir", tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith("Nothing has changed")


@pytest.mark.parametrize("command", [("build",), ("refresh", "--offline")])
def test_a_folder_that_cannot_be_written(run, tmp_path, command):
    (tmp_path / "a-file").write_text("")
    code, _, err = run(*command, *ONE, "--data-dir", tmp_path / "a-file" / "data")
    assert code == 1
    assert len(err.splitlines()) == 1
    assert "a-file" in err


def test_wrong_use(run, tmp_path):
    assert run("build", "--as-of", "yesterday", "--data-dir", tmp_path)[0] == 2
    assert run("refresh", "--only", "nobody", "--data-dir", tmp_path)[0] == 1
