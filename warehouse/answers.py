"""Answers of queries as text and files: table, CSV, JSON, Parquet."""

import csv
import json
import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TextIO, get_args

from fitmart.warehouse.errors import QueryError
from fitmart.warehouse.guard import Answer

Format = Literal["table", "csv", "json", "parquet"]
FORMATS: tuple[str, ...] = get_args(Format)
TABLE_ROWS = 1000  # a table needs all its rows to know how wide it is
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL", "NUMBER")
# Types whose values the csv module writes as we would.
_PLAIN = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UBIGINT",
    "DOUBLE",
    "DATE",
    "TIMESTAMP",
    "VARCHAR",
    "ENUM",
)


def write_csv(answer: Answer, out: TextIO) -> None:
    """Header row, then the rows; null is empty, lists and maps are JSON."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.names)
    # Millions of rows: only columns whose Python text is not the one wanted are touched.
    odd = [i for i, kind in enumerate(answer.types) if not kind.startswith(_PLAIN) or kind.endswith("]")]
    writer.writerows(_with_cells(row, odd) if odd else row for row in answer.rows)


def _with_cells(row: tuple[Any, ...], odd: list[int]) -> list[Any]:
    cells = list(row)
    for i in odd:
        cells[i] = _cell(cells[i])
    return cells


def write_json(answer: Answer, out: TextIO) -> None:
    """An array of objects, one row a line. Raises QueryError where two columns share a name."""
    must_differ(answer.names)
    separator = "[\n"
    for row in answer.rows:
        record = {name: _jsonable(value) for name, value in zip(answer.names, row, strict=True)}
        out.write(separator + json.dumps(record, ensure_ascii=False))
        separator = ",\n"
    out.write("\n]\n" if separator != "[\n" else "[]\n")


def write_parquet(reader: Any, path: Path) -> None:
    """A pyarrow.RecordBatchReader into one file. Raises QueryError where two columns share a name."""
    import pyarrow.parquet

    must_differ(reader.schema.names)
    with pyarrow.parquet.ParquetWriter(path, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)


def write_table(answer: Answer, out: TextIO, *, is_terminal: bool) -> bool:
    """Columns under their names: ruled on a terminal, plain elsewhere. True where rows beyond TABLE_ROWS are left."""
    rows = [[_shown(value) for value in row] for row in islice(answer.rows, TABLE_ROWS)]
    is_cut = next(iter(answer.rows), None) is not None
    is_number = [kind.startswith(_NUMBERS) for kind in answer.types]
    if is_terminal:
        _rich_table(answer.names, rows, is_number, out)
    else:
        _plain_table(answer.names, rows, is_number, out)
    return is_cut


def must_differ(names: Sequence[str]) -> None:
    """Raise QueryError where two columns share a name."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise QueryError(f"two columns are named {twice[0]}: give one another name with AS")


def _rich_table(names: list[str], rows: list[list[str]], is_number: list[bool], out: TextIO) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name, right in zip(names, is_number, strict=True):
        table.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(file=out).print(table)


def _plain_table(names: list[str], rows: list[list[str]], is_number: list[bool], out: TextIO) -> None:
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]

    def line(cells: Iterable[str]) -> str:
        padded = (c.rjust(w) if n else c.ljust(w) for c, w, n in zip(cells, widths, is_number, strict=True))
        return "  ".join(padded).rstrip() + "\n"

    out.write(line(names))
    out.write(line("-" * width for width in widths))
    out.writelines(line(row) for row in rows)


def _shown(value: Any) -> str:
    """A cell of a table. DESCRIBE spells a key's type out with all its values: its kind is enough."""
    cell = _cell(value)
    return "ENUM" if cell.startswith("ENUM('") else " ".join(cell.split("\n"))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Decimal):
        return format(value.normalize() if value else Decimal(0), "f")
    if isinstance(value, list | dict | tuple):
        return json.dumps(_jsonable(value), ensure_ascii=False)
    return str(value)


def _jsonable(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): _jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | bool | None) else str(value)
