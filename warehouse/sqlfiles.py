"""Where the SQL lives, and its files in the order in which they run."""

import hashlib
from pathlib import Path
from typing import Literal

SQL = Path(__file__).resolve().parent.parent / "sql"

Folder = Literal["schema", "views", "macros", "checks", "examples"]


def sql_files(folder: Folder) -> list[Path]:
    """The .sql files of one folder, sorted by name."""
    return sorted((SQL / folder).glob("*.sql"))


def sql_hash() -> str:
    """Hash of everything under sql/ that makes a catalog: tables, views, macros and checks."""
    digest = hashlib.sha256()
    for folder in ("schema", "views", "macros", "checks"):
        for path in sql_files(folder):
            digest.update(f"{folder}/{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
