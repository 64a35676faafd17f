"""The records that price sources parse to, and the sieve between good rows and bad.

Money is Decimal until it is in a frame. A record says what the source said, in our units; what follows from other
tables (gpu_id, country, USD) is added by flows/offers.py.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from fitmart.flows.sources.contract import Rejected

__all__ = ["Offer", "Origin", "Rejected", "RowError", "Sifted", "TokenPrice", "sift", "unreadable"]

Origin = Literal["direct", "aggregator", "seed"]  # in this order, the first wins over the next for one offer
Commitment = Literal["on_demand", "spot", "reserved"]
PriceScope = Literal["instance", "per_gpu", "gpu_only"]
ProductKind = Literal["vm", "bare_metal", "managed", "serverless"]

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
Count = Annotated[int, Field(ge=1, le=1024)]
Amount = Annotated[Decimal, Field(gt=0, max_digits=16)]
# Beyond these a price is a wrong unit, of a thousand or a million tokens taken for that of one (BerriAI/litellm#23503).
# The dearest real one is o1-pro's, 150 in and 600 out.
InputAmount = Annotated[Decimal, Field(gt=0, le=500)]
OutputAmount = Annotated[Decimal, Field(gt=0, le=1000)]

RAW_TEXT_CHARS = 500  # enough to find a row again


class RowError(ValueError):
    """A row that cannot become a record; the message is the reason, for people."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Offer(_Record):
    """What one provider asks for `gpu_count` GPUs, an hour. `amount` is for the whole offer, in `currency`."""

    provider_id: Text
    instance_type: Text | None = None
    gpu_name_raw: Text
    gpu_memory_gb: Annotated[float, Field(gt=0)] | None = None  # of one GPU, GB or GiB as the source has it
    gpu_id: Text | None = None  # only where a person has resolved it (seeds)
    is_gpu_assumed: bool | None = None
    gpu_count: Count
    min_gpu_count: Count | None = None  # per_gpu: the range one may take; else null
    max_gpu_count: Count | None = None
    price_scope: PriceScope
    product_kind: ProductKind = "vm"
    seller: Text | None = None  # a reseller or marketplace between the customer and provider_id
    vcpus: Annotated[float, Field(ge=0)] | None = None
    host_memory_bytes: Annotated[int, Field(ge=0)] | None = None
    region: Text | None = None
    country: Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")] | None = None
    commitment: Commitment
    commit_term: Text | None = None
    tier: Text | None = None
    amount: Amount
    currency: Currency = "USD"
    billing_granularity: Text | None = None
    quality_flags: tuple[str, ...] = ()
    url: Text | None = None
    source_id: Text
    origin: Origin
    observed_at: AwareDatetime
    date_kind: str | None = None

    @model_validator(mode="after")
    def _counts_agree(self) -> "Offer":
        if self.price_scope == "per_gpu":
            low, high = self.min_gpu_count or self.gpu_count, self.max_gpu_count or self.gpu_count
            if low > high:
                raise ValueError(f"counts from {low} to {high}")
        return self


class TokenPrice(_Record):
    """What one provider asks for tokens of a model, USD for a million."""

    provider_id: Text
    model_name_raw: Text
    model_id: Text | None = None  # Hub repository, where the source names it
    input_usd_per_mtok: InputAmount
    output_usd_per_mtok: OutputAmount | None  # null: an embedding model
    cached_input_usd_per_mtok: Annotated[Decimal, Field(ge=0, le=500)] | None = None
    context_tokens: Annotated[int, Field(ge=1)] | None = None
    note: Text | None = None
    source_id: Text
    origin: Origin
    observed_at: AwareDatetime


R = TypeVar("R", bound=_Record)


class Sifted(NamedTuple, Generic[R]):
    """What a parser made of a payload, in the payload's order."""

    good: list[R]
    rejected: list[Rejected]


def sift(
    rows: Iterable[Any], make: Callable[[Any], Iterable[Mapping[str, Any]]], record: type[R], *, source_id: str
) -> Sifted[R]:
    """Every raw row through `make` (none, one or several records' fields) and the record's checks.

    A row that fails anywhere is rejected with its text and one line of reason; its other records are kept.
    """
    good: list[R] = []
    rejected: list[Rejected] = []
    for raw in rows:
        try:
            for fields in make(raw):
                try:
                    good.append(record.model_validate(fields))
                except ValidationError as error:
                    rejected.append(Rejected(source_id=source_id, raw_text=_text(raw), reason=_reason(error)))
        except RowError as error:
            rejected.append(Rejected(source_id=source_id, raw_text=_text(raw), reason=str(error)))
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError) as error:
            reason = f"{type(error).__name__}: {error}"
            rejected.append(Rejected(source_id=source_id, raw_text=_text(raw), reason=reason))
    return Sifted(good, rejected)


def unreadable(source_id: str, content: bytes, reason: str) -> Sifted[Any]:
    """The answer of a parser that cannot read its payload at all."""
    return Sifted([], [Rejected(source_id=source_id, raw_text=repr(content[:80]), reason=reason)])


def _text(raw: Any) -> str:
    try:
        text = json.dumps(raw, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(raw)
    return text[:RAW_TEXT_CHARS]


def _reason(error: ValidationError) -> str:
    parts = []
    for e in error.errors(include_url=False):
        where = ".".join(str(p) for p in e["loc"]) or "row"
        parts.append(f"{where} is {e['input']!r}: {e['msg']}" if e["loc"] else e["msg"])
    return "; ".join(parts)[:RAW_TEXT_CHARS]
