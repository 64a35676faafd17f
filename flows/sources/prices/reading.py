"""Reading price APIs: documents, pages, and the units that amounts, memory and counts come in.

Numbers with a point are read as Decimal, so that no price passes through binary fractions.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from fitmart.estimator.units import GIB
from fitmart.flows.records import Offer, RowError, Sifted, sift, unreadable
from fitmart.flows.sources import cells

Make = Callable[[Any], Iterable[Mapping[str, Any]]]

CENT = Decimal("0.01")
GIB_PER_MIB = Decimal(1) / 1024


def parse_rows(content: bytes, rows: Callable[[Any], list[Any]], make: Make, *, source_id: str) -> Sifted[Offer]:
    """A JSON payload → offers: `rows` finds the rows in the document, `make` gives the fields of each one's offers.

    A document of another shape is one rejected row, a row of another shape is rejected alone. Never raises.
    """
    try:
        found = rows(load(content))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        return unreadable(source_id, content, f"an answer of another shape ({type(error).__name__}: {error})")
    return sift(found, make, Offer, source_id=source_id)


def load(content: bytes) -> Any:
    """A JSON document with exact numbers."""
    return json.loads(content, parse_float=Decimal)


def pages(document: Any) -> list[Any]:
    """The documents that fetching joined to one payload, or the one that there was."""
    return document if isinstance(document, list) else [document]


def rows_at(*path: str) -> Callable[[Any], list[Any]]:
    """A reader of the list at `path` in every page of a document."""

    def read(document: Any) -> list[Any]:
        return [row for page in pages(document) for row in listed(page, *path)]

    return read


def listed(page: Any, *path: str) -> list[Any]:
    """The list at `path`; TypeError with the server's own words where there is none."""
    value = page
    for name in path:
        if not isinstance(value, dict) or name not in value:
            raise TypeError(f"no {'.'.join(path)} in it but {json.dumps(page, default=str)[:120]}")
        value = value[name]
    if not isinstance(value, list):
        raise TypeError(f"{'.'.join(path)} is no list")
    return value


def price(cell: Any, *, unit: Decimal = Decimal(1), what: str = "price") -> Decimal:
    """A price in units of `unit` (CENT, 1e-8, …) to a millionth. RowError where there is none, or none above zero."""
    amount = maybe_price(cell, unit=unit, what=what)
    if amount is None:
        raise RowError(f"{what} is {cell!s}: a placeholder, not an offer")
    return amount


def maybe_price(cell: Any, *, unit: Decimal = Decimal(1), what: str = "price") -> Decimal | None:
    """The same; None where nothing or zero says "not sold". RowError for less than zero."""
    value = cells.exact(cell, what=what)
    if not value:
        return None
    if value < 0:
        raise RowError(f"{what} is {value}: less than nothing")
    return (value * unit).quantize(cells.MICRO, ROUND_HALF_UP)


def units_and_nanos(money: Mapping[str, Any]) -> Decimal:
    """Google's Money: whole units as text, and billionths; either may be left out."""
    return Decimal(str(money.get("units") or 0)) + Decimal(str(money.get("nanos") or 0)) / 10**9


def count(cell: Any, *, what: str = "GPU count") -> int:
    """A number of GPUs, at least 0; RowError where it is none or a fraction."""
    value = cells.whole(cell, what=what)
    if value is None or value < 0:
        raise RowError(f"{what} is {cell!s}")
    return value


def of_one(total: Any, gpu_count: int = 1, *, unit: Decimal = Decimal(1)) -> float | None:
    """The memory of one GPU in GB or GiB, from that of `gpu_count`, given in `unit`; None where it is not said."""
    value = cells.exact(total, what="GPU memory")
    return float(value * unit / gpu_count) if value else None


def host_bytes(cell: Any, unit_bytes: int = GIB) -> int | None:
    """Memory of the host in bytes, from a number of `unit_bytes`; None where it is not said."""
    value = cells.exact(cell, what="host memory")
    return int(value * unit_bytes) if value else None


def direct(source_id: str, seen_at: datetime, *, url: str, provider_id: str | None = None) -> dict[str, Any]:
    """The fields that all offers of a provider's own API share."""
    return {
        "provider_id": provider_id or source_id,
        "price_scope": "instance",
        "commitment": "on_demand",
        "url": url,
        "source_id": source_id,
        "origin": "direct",
        "observed_at": seen_at,
    }


def in_regions(regions: Any) -> list[str | None]:
    """The regions an offer is sold in; one without a name where none is named, so that the price is kept."""
    named = [str(r).strip() for r in regions or () if r and str(r).strip()]
    return list(dict.fromkeys(named)) or [None]
