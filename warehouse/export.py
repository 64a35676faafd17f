"""The catalog's tables as Parquet or CSV files for other tools, with a data package that describes their columns."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb

from fitmart.warehouse.connection import connect, quoted
from fitmart.warehouse.describe import Column, Relation, describe
from fitmart.warehouse.errors import CatalogError, one_line
from fitmart.warehouse.files import replacing

ExportFormat = Literal["parquet", "csv"]
_COPY = {"parquet": "FORMAT parquet, COMPRESSION zstd", "csv": "FORMAT csv, HEADER"}
_MEDIATYPE = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}
# SQL type (its beginning) -> Frictionless type; anything else is a string.
_FIELD_TYPES = (
    (("BIGINT", "INTEGER", "SMALLINT"), "integer"),
    (("DOUBLE", "FLOAT", "DECIMAL"), "number"),
    (("BOOLEAN",), "boolean"),
    (("DATE",), "date"),
    (("TIMESTAMP",), "datetime"),
)


@dataclass(frozen=True, slots=True)
class Exported:
    """One written file."""

    name: str
    path: Path
    rows: int


def export(
    place: Path | str, folder: Path, *, file_format: ExportFormat = "parquet", tables: Sequence[str] = ()
) -> list[Exported]:
    """Write `<table>.<format>` for every table, or the named tables and views, and `datapackage.json`, into `folder`.

    Rows keep the catalog's order: the same catalog gives the same bytes. Each file replaces the one of its name when it
    is whole, the description last. Raises CatalogError: no catalog, an unknown name, a folder that cannot be written.
    """
    with closing(connect(place)) as con:
        known = {r.name: r for r in describe(con) if r.kind != "macro"}
        wanted = list(dict.fromkeys(tables)) or [name for name, r in known.items() if r.kind == "table"]
        if unknown := [name for name in wanted if name not in known]:
            raise CatalogError(f"no table or view {', '.join(unknown)}: there are {', '.join(known)}")
        written = [_write(con, name, folder / f"{name}.{file_format}", file_format) for name in wanted]
        package = _package(con, [known[name] for name in wanted], written, file_format)
    with replacing(folder / "datapackage.json") as temporary:
        temporary.write_text(json.dumps(package, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return written


def _write(con: duckdb.DuckDBPyConnection, name: str, path: Path, file_format: ExportFormat) -> Exported:
    with replacing(path) as temporary:
        try:
            rows = con.execute(f"COPY (FROM {name}) TO {quoted(temporary)} ({_COPY[file_format]})").fetchall()[0][0]
        except duckdb.Error as error:
            raise CatalogError(f"cannot write {path}: {one_line(error)}") from None
    return Exported(name, path, rows)


def _package(
    con: duckdb.DuckDBPyConnection, relations: list[Relation], written: list[Exported], file_format: ExportFormat
) -> dict[str, Any]:
    """A Frictionless data package: https://datapackage.org/standard/data-package/"""
    build = con.execute("SELECT build_id, schema_version, built_at FROM build").fetchall()
    sources = con.execute(
        "SELECT publisher, coalesce(url, ''), coalesce(license, '') FROM source ORDER BY source_id"
    ).fetchall()
    package: dict[str, Any] = {
        "name": "fitmart",
        "title": "fitmart: which model fits which GPU, how fast, at what price",
        "sources": [{"title": title, "path": url, "license": terms} for title, url, terms in sources],
        "resources": [_resource(r, w, file_format) for r, w in zip(relations, written, strict=True)],
    }
    for build_id, version, built_at in build:
        package |= {"id": build_id, "version": str(version), "created": f"{built_at:%Y-%m-%dT%H:%M:%SZ}"}
    return package


def _resource(relation: Relation, written: Exported, file_format: ExportFormat) -> dict[str, Any]:
    with written.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "name": relation.name,
        "path": written.path.name,
        "format": file_format,
        "mediatype": _MEDIATYPE[file_format],
        "encoding": "utf-8",
        "description": relation.comment or "",
        "rows": written.rows,
        "bytes": written.path.stat().st_size,
        "hash": f"sha256:{digest}",
        "schema": {"fields": [_field(column) for column in relation.columns]},
    }


def _field(column: Column) -> dict[str, str]:
    kind = next((name for starts, name in _FIELD_TYPES if column.type.startswith(starts)), "string")
    described = {
        "name": column.name,
        "type": "string" if column.type.endswith("[]") else kind,
        "description": column.comment or "",
    }
    return described | ({"unit": column.unit} if column.unit else {})
