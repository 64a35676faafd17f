"""What is installed is what the checkout holds."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("flows", "estimator", "warehouse", "sql")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOOL = PROJECT["tool"]["setuptools"]


def _files():
    return [p for room in ROOMS for p in (ROOT / room).rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def test_every_folder_is_packaged():
    folders = {"fitmart." + ".".join(p.parent.relative_to(ROOT).parts) for p in _files()}
    assert folders | {"fitmart.sql"} == set(TOOL["packages"])


def test_every_kind_of_file_is_packaged():
    kinds = {pattern.removeprefix("*") for pattern in TOOL["package-data"]["*"]} | {".py"}
    assert {p.name for p in _files() if p.suffix not in kinds and p.name not in kinds} == set()


def test_python_folders_are_packages():
    assert {p.parent for p in _files() if p.suffix == ".py" and not (p.parent / "__init__.py").exists()} == set()


def test_every_import_is_a_declared_dependency():
    """The third-party modules of tests/test_layering.py, by the names that pip knows them by."""
    from test_layering import MAY

    declared = {
        d.split(";")[0].split("[")[0].split(">")[0].split("=")[0].strip() for d in PROJECT["project"]["dependencies"]
    }
    assert {name for room in MAY.values() for name in room if not name.startswith("fitmart")} <= declared
