"""How every command ends: its exit code, and one line where it fails."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from fitmart.flows import cli


@pytest.fixture
def ending(monkeypatch, capsys):
    """Exit code and standard error of a command that raises."""

    def run(error):
        @click.command()
        def broken():
            raise error

        monkeypatch.setattr(cli, "cli", broken)
        with pytest.raises(SystemExit) as stopped:
            cli.main([])
        return stopped.value.code, capsys.readouterr().err

    return run


def test_a_fault_of_ours_is_one_line(ending):
    code, err = ending(KeyError("a\nb"))
    assert code == 1
    assert err.count("\n") == 1
    assert "KeyError" in err


def test_a_file_that_fails_is_named(ending):
    assert ending(PermissionError(13, "Permission denied", "/some/file")) == (
        1,
        "fitmart: /some/file: Permission denied\n",
    )


def test_an_interrupt_stays_one_whatever_a_library_makes_of_it(ending):
    error = RuntimeError("query interrupted")
    error.__cause__ = KeyboardInterrupt()
    assert ending(error) == (130, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_is_full_is_one_line():
    command = [sys.executable, "-c", "from fitmart.flows.cli import main; main(['gpu-names', '-'])"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            command, input="raw_name\nH100 SXM\n", stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "fitmart: No space left on device\n")
