"""What is written down is so: the commands and their help, the public functions and their docstrings."""

import ast
import importlib
import re
from pathlib import Path

import click
import pytest

from fitmart.flows.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
CLI = ROOT / "flows" / "cli"
NO_COMMANDS = {"__init__", "options", "screen"}  # what the commands share
CONTRACT = {"fetch", "parse"}  # of a source module: flows/sources/contract.py says what they do
MODULES = [p for room in ("estimator", "warehouse", "flows") for p in sorted((ROOT / room).rglob("*.py"))]


def test_every_command_has_its_module():
    modules = {p.stem for p in CLI.glob("*.py")} - NO_COMMANDS
    assert modules == {name.replace("-", "_") for name in COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_says_what_it_does(name):
    command = importlib.import_module(f"fitmart.flows.cli.{name.replace('-', '_')}").command
    assert isinstance(command, click.Command)
    assert command.help
    assert COMMANDS[name].endswith(".")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts[0]} has no help"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_public_name_has_a_docstring(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    told = CONTRACT if "sources" in path.parts else set()
    public = [n for n in tree.body if isinstance(n, named) and not n.name.startswith("_") and n.name not in told]
    assert [n.name for n in public if ast.get_docstring(n) is None] == []
    assert ast.get_docstring(tree) or not public


def test_the_readme_names_what_there_is():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    macros = {p.stem for p in (ROOT / "sql" / "macros").glob("*.sql")}
    asked = set(re.findall(r"`(\w+)\((?:model|gpu|since)", text))
    assert len(asked) > 15
    assert asked <= macros
    commands = set(re.findall(r"^fitmart ([a-z-]+)", text, re.MULTILINE)) | set(re.findall(r"`fitmart ([a-z-]+)", text))
    assert commands <= set(COMMANDS)
    for link in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (ROOT / link).exists(), link
