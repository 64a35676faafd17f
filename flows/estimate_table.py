"""Answers for people: one line a configuration."""

import polars as pl
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fitmart.estimator.units import GIB

_WORDS = {
    "weights": "the weights do not fit",
    "kv_cache": "one sequence does not fit beside the weights",
    "context": "longer than the model's context",
    "tp_divisibility": "the heads cannot be split over so many GPUs",
    "unsupported": "the engine does not run this precision there",
    "unknown": "not known whether the engine runs it there",
}


def to_table(rows: pl.DataFrame, users: int | None, context: int) -> Group:
    """One line a row: what is needed, how many users, how fast, the verdict; then what the reasons mean."""
    table = Table(title=f"{rows['model_id'][0]} at {context:,} tokens", title_justify="left", box=None, pad_edge=False)
    for name in ("precision", "GPUs"):
        table.add_column(name, no_wrap=True)
    for name in ("weights\nGiB", "needed\nGiB", "users", "longest\ncontext", "tokens\nper s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows.iter_rows(named=True):
        table.add_row(
            row["precision"],
            row["gpu_id"] if row["gpu_count"] == 1 else f"{row['gpu_count']} × {row['gpu_id']}",
            _gib(row.get("weights_total_bytes")),
            _gib(row.get("required_bytes")),
            _number(row.get("users")),
            _number(row.get("fit_context_tokens")),
            _number(row.get("decode_tokens_per_s")),
            _verdict(row, users),
        )
    limits = rows["limited_by"].drop_nulls().unique().sort()
    return Group(table, *(Text(f"  {limit}: {_WORDS[limit]}", style="dim") for limit in limits))


def _verdict(row: dict[str, object], users: int | None) -> str:
    verdict, limit = str(row["verdict"]), row.get("limited_by")
    if limit is not None:
        return verdict if limit == verdict else f"{verdict}: {limit}"
    held = row.get("users")
    if users is not None and isinstance(held, int) and held < users:
        return f"no: holds {held} of {users} users"
    return verdict


def _gib(value: object) -> str:
    return f"{value / GIB:,.2f}" if isinstance(value, int) else "–"


def _number(value: object) -> str:
    return "–" if not isinstance(value, int | float) else f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
