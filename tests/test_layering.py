"""Each room imports only what it may; the estimator stays pure."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fitmart.flows.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
MAY = {  # room -> what its modules may import besides the standard library
    "estimator": {"polars", "pydantic", "gguf", "fitmart.estimator"},
    "warehouse": {"polars", "duckdb", "pyarrow", "rich", "fitmart.estimator", "fitmart.warehouse"},
    "flows": {
        "polars", "duckdb", "prefect", "huggingface_hub", "pydantic", "httpx", "httpx2", "click", "rich", "gguf",
        "pyarrow", "fitmart.estimator", "fitmart.warehouse", "fitmart.flows",
    },
}  # fmt: skip
# Modules that reach outside: no file, clock, environment, chance or network in the estimator.
IMPURE = {
    "os", "io", "time", "random", "secrets", "pathlib", "socket", "subprocess", "urllib", "http", "logging", "shutil",
    "tempfile", "glob", "threading", "multiprocessing", "asyncio", "sqlite3",
}  # fmt: skip
CLOCKS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
NETWORK = {"socket", "urllib", "http", "ssl", "ftplib", "smtplib", "asyncio"}
HEAVY = {"polars", "duckdb", "prefect", "huggingface_hub", "pydantic", "httpx", "pyarrow", "gguf", "fitmart.warehouse"}
MODULES = [p for room in MAY for p in sorted((ROOT / room).rglob("*.py"))]


def _id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", MODULES, ids=_id)
def test_a_room_imports_only_what_it_may(path):
    room = path.relative_to(ROOT).parts[0]
    for name in _imports(path):
        top = name.split(".")[0]
        assert not name.startswith("."), f"relative import {name}"
        assert top not in MAY, f"import fitmart.{name}, not {name}"
        if top in sys.stdlib_module_names:
            assert room != "estimator" or top not in IMPURE, f"the estimator must not import {name}"
            assert room != "warehouse" or top not in NETWORK, f"the warehouse must not import {name}"
        else:
            assert any(name == ok or name.startswith(f"{ok}.") for ok in MAY[room]), f"{room} may not import {name}"


@pytest.mark.parametrize("path", [p for p in MODULES if p.is_relative_to(ROOT / "estimator")], ids=_id)
def test_the_estimator_reads_neither_clock_nor_files(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in CLOCKS, f"line {node.lineno} reads the clock"
            is_polars_io = node.value.id == "pl" and node.attr.startswith(("read_", "scan_"))
            assert not is_polars_io, f"line {node.lineno} reads a file"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("open", "print", "input"), f"line {node.lineno} calls {node.func.id}()"


@pytest.mark.parametrize("name", ["__init__", "options", *(name.replace("-", "_") for name in COMMANDS)])
def test_commands_import_nothing_heavy_before_they_run(name):
    path = ROOT / "flows" / "cli" / f"{name}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not [n for n in names if any(n == h or n.startswith(f"{h}.") for h in HEAVY)], f"line {node.lineno}"


def test_only_sql_files_live_in_sql():
    assert {p.suffix for p in (ROOT / "sql").rglob("*") if p.is_file()} == {".sql"}


def test_modules_stay_small():
    longest = {_id(p): len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES}
    assert {name: lines for name, lines in longest.items() if lines > 500} == {}
