"""The cards that raw names are matched against: those of the catalog, and real ones outside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fitmart.estimator.units import GB, GIB
from fitmart.flows.gpu_spelling import Speller


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card, read from its name. `gpu_id` None: a real card outside the catalog."""

    gpu_id: str | None
    name: str
    core: frozenset[str]  # the words that name the chip
    hard: frozenset[str]  # suffixes that make it another product
    soft: frozenset[str]  # words of its generation, often left out
    bus: str
    edition: str | None
    memory_gb: float  # as marketed
    visible_gib: float  # what the driver shows
    speed: tuple[float, float]  # bandwidth, then 16-bit rate: the order among cards of one memory

    @property
    def chip(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """Cards of one chip differ only in bus, edition and memory."""
        return self.core, self.hard, self.soft

    @property
    def rank(self) -> tuple[float, float, float, str]:
        """The lesser card first: less memory, then slower."""
        return self.memory_gb, *self.speed, self.gpu_id or self.name

    def distance(self, memory_gb: float) -> float:
        """How far a stated memory is from this card's, as a share, in the friendlier of its two readings."""
        return min(abs(memory_gb / self.memory_gb - 1), abs(memory_gb / self.visible_gib - 1))


def read_cards(gpus: pl.DataFrame, speller: Speller) -> list[Card]:
    """The cards of `gpus` (GPU_SCHEMA) that have a memory, then those of the rules of kind `card`."""
    listed = [_read_card(row, speller) for row in gpus.iter_rows(named=True) if row["marketed_memory_gb"]]
    unlisted = [
        _named(
            speller,
            name,
            form_factor="PCIe",
            gpu_id=None,
            memory_gb=memory_gb,
            visible_gib=memory_gb,
            speed=(0.0, 0.0),
        )
        for name, memory_gb in speller.unlisted
    ]
    return listed + unlisted


def _read_card(row: Mapping[str, Any], speller: Speller) -> Card:
    memory_gb = float(row["marketed_memory_gb"])
    return _named(
        speller,
        row["name"],
        form_factor=row["form_factor"] or "",
        gpu_id=row["gpu_id"],
        memory_gb=memory_gb,
        visible_gib=(row["memory_bytes"] or memory_gb * GB) / GIB,
        speed=(
            row["bandwidth_bytes_per_s"] or 0.0,
            row["fp16_flop_per_s"] or row["bf16_flop_per_s"] or 0.0,
        ),
    )


def _named(speller: Speller, name: str, *, form_factor: str, **more: Any) -> Card:
    """What the name says, and the form factor where it does not name the bus."""
    reading = speller.read_card(name)
    return Card(
        name=name,
        core=reading.texts("unknown"),
        hard=reading.texts("hard"),
        soft=reading.texts("soft"),
        bus=next(iter(reading.values("bus")), form_factor.lower().rstrip("0123456789")),
        edition=next(iter(reading.values("edition")), None),
        **more,
    )
