"""The token prices that ship with fitmart: warehouse/seeds/api_price.csv, dated, each row with its own source."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from fitmart.flows.records import RowError, Sifted, TokenPrice, sift
from fitmart.flows.settings import Settings
from fitmart.flows.sources.contract import Rejected
from fitmart.warehouse.snapshot import SEED_SCHEMAS, SEEDS, read_table

NAME = "bundled token prices"
SOURCE_ID = "bundled-token-prices"
MAX_AGE_HOURS = 8760
PATH = SEEDS / "api_price.csv"

SAME = ("provider_id", "model_name_raw", "model_id", "context_tokens", "note", "source_id")
PRICES = ("input_usd_per_mtok", "output_usd_per_mtok", "cached_input_usd_per_mtok")


def read(path: Path = PATH) -> Sifted[TokenPrice]:
    """All bundled token prices, and the rows that do not pass."""
    return sift(read_table(path, SEED_SCHEMAS["api_price"]).to_dicts(), _price, TokenPrice, source_id=SOURCE_ID)


def survey(settings: Settings) -> tuple[int, list[Rejected]]:
    """How many there are, and what could not be read."""
    sifted = read()
    return len(sifted.good), sifted.rejected


def _price(row: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    if row["observed_on"] is None:
        raise RowError("no date")
    yield (
        {field: row[field] for field in SAME}
        | {field: None if row[field] is None else Decimal(str(row[field])) for field in PRICES}
        | {"origin": "seed", "observed_at": datetime.combine(row["observed_on"], time(), UTC)}
    )
