"""Reading the cells of foreign tables: empty means nothing, and what is no number is said."""

import csv
import io
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from fitmart.flows.records import RowError

MICRO = Decimal("0.000001")  # prices are kept to a millionth: 5.8854999999999995 is 5.8855
NOTHING = frozenset({"", "none", "null", "nan", "n/a"})


def text(cell: Any) -> str | None:
    """The cell as text, None where it says nothing."""
    stripped = str(cell).strip() if cell is not None else ""
    return None if stripped.lower() in NOTHING else stripped


def exact(cell: Any, *, what: str) -> Decimal | None:
    """A number as written, unrounded (prices of one token)."""
    said = text(cell)
    if said is None:
        return None
    try:
        value = Decimal(said)
    except InvalidOperation:
        raise RowError(f"{what} is {said!r}, not a number") from None
    if not value.is_finite():
        raise RowError(f"{what} is {said!r}, not a number")
    return value


def money(cell: Any, *, what: str = "price") -> Decimal | None:
    """A price to a millionth; None where there is none. Zero stays zero: the caller knows what it means."""
    value = exact(cell, what=what)
    return None if value is None else value.quantize(MICRO, ROUND_HALF_UP)


def number(cell: Any, *, what: str) -> float | None:
    """A number as a float; None where the cell is blank."""
    value = exact(cell, what=what)
    return None if value is None else float(value)


def whole(cell: Any, *, what: str) -> int | None:
    """A count; "8.0" is 8, 0.5 is an error."""
    value = exact(cell, what=what)
    if value is None:
        return None
    if value != value.to_integral_value():
        raise RowError(f"{what} is {value}, not a whole number")
    return int(value)


def csv_rows(content: bytes) -> Iterator[dict[str, Any]]:
    """Rows by header, whatever the order of the columns; quoted commas and line ends inside cells are data.

    Raises UnicodeDecodeError or csv.Error, a ValueError and an Exception, where it is no CSV in UTF-8.
    """
    yield from csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
