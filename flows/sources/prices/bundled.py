"""The offers that ship with fitmart: warehouse/seeds/offer.csv, dated, each row with its own source."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from fitmart.flows.records import Offer, RowError, Sifted, sift
from fitmart.flows.settings import Settings
from fitmart.flows.sources.contract import Rejected
from fitmart.warehouse.snapshot import SEED_SCHEMAS, SEEDS, read_table

NAME = "bundled offers"
SOURCE_ID = "bundled-offers"
MAX_AGE_HOURS = 8760
PATH = SEEDS / "offer.csv"

SAME = (
    *("provider_id", "instance_type", "gpu_name_raw", "gpu_id", "is_gpu_assumed", "gpu_count", "min_gpu_count"),
    *("max_gpu_count", "price_scope", "seller", "vcpus", "host_memory_bytes", "region", "country", "commitment"),
    *("commit_term", "tier", "billing_granularity", "url", "source_id", "date_kind"),
)


def read(path: Path = PATH) -> Sifted[Offer]:
    """All bundled offers, and the rows that do not pass."""
    return sift(read_table(path, SEED_SCHEMAS["offer"]).to_dicts(), _offer, Offer, source_id=SOURCE_ID)


def survey(settings: Settings) -> tuple[int, list[Rejected]]:
    """How many there are, and what could not be read."""
    sifted = read()
    return len(sifted.good), sifted.rejected


def _offer(row: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    if row["amount"] is None or row["observed_on"] is None:
        raise RowError("no amount or no date")
    yield {field: row[field] for field in SAME} | {
        "gpu_memory_gb": row["gpu_memory_gib"],
        "product_kind": row["product_kind"] or "vm",
        "amount": Decimal(str(row["amount"])),
        "currency": row["currency"] or "USD",
        "quality_flags": tuple((row["quality_flags"] or "").split("|")) if row["quality_flags"] else (),
        "origin": "seed",
        "observed_at": datetime.combine(row["observed_on"], time(), UTC),
    }
