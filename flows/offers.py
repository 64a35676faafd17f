"""Offers of all sources in one normal form: records in, a frame of OFFER_SCHEMA and the rejected rows out.

Here meet the facts that a price list lacks: which gpu_id the name means, which provider an alias, which country a
region is in, what the amount is in USD, and the key by which the same offer is known again.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl
from polars._typing import AsofJoinStrategy

from fitmart.estimator.offers import OFFER_SCHEMA
from fitmart.flows.gpu_names import Answer, Resolver, bundled_resolver
from fitmart.flows.plausible import implausible
from fitmart.flows.records import Offer, Rejected
from fitmart.flows.regions import EU, Regions, bundled_regions, clean_region
from fitmart.warehouse.snapshot import SEEDS, read_seed, read_table

FX_SCHEMA = pl.Schema(
    {"currency": pl.String, "on": pl.Date, "usd_per_unit": pl.Float64, "source_id": pl.String, "observed_on": pl.Date}
)
KEY = ("provider_id", "instance_key", "gpu_id", "gpu_count", "region_key", "commitment", "commit_term", "tier")
KEY_CHARS = 16  # 64 bits of SHA-256: a clash among a million offers has a chance of 3e-8
# What a machine type says about the product, where the source does not.
PRODUCT_KINDS = (
    (re.compile(r"^ml\."), "managed"),
    (re.compile(r"^vbm-|^bm\.|\.metal\b|bare-?_?metal", re.IGNORECASE), "bare_metal"),
)
AZURE_SERIES = re.compile(r"^n[cdgv]\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Normalised:
    """`offers`: OFFER_SCHEMA, several sources and moments of one offer_id may be in it."""

    offers: pl.DataFrame
    rejected: list[Rejected]


@dataclass(frozen=True, slots=True)
class References:
    """The tables that offers are completed from."""

    resolver: Resolver
    regions: Regions
    providers: frozenset[str]
    provider_aliases: Mapping[str, str]
    rates: pl.DataFrame  # FX_SCHEMA

    def provider(self, name: str) -> str | None:
        """Our id of a provider, by any name it goes by; None for one that we do not know."""
        text = name.strip().lower()
        for candidate in (self.provider_aliases.get(text), text, text.replace("_", "-").replace(" ", "-")):
            if candidate in self.providers:
                return candidate
        return None


@cache
def bundled_references() -> References:
    """The references that ship with fitmart."""
    aliases = read_seed("provider_alias")
    return References(
        bundled_resolver(),
        bundled_regions(),
        frozenset(read_seed("provider")["provider_id"]),
        dict(zip(aliases["alias"], aliases["provider_id"], strict=True)),
        read_table(SEEDS / "fx_rate.csv", FX_SCHEMA),
    )


def normalise(offers: Sequence[Offer], *, references: References | None = None) -> Normalised:
    """Records → OFFER_SCHEMA, and what had to be left out with the reason.

    Left out: unknown providers, GPUs that resolve to none, currencies without a rate, implausible prices. Equal keys of
    one source and moment become one row, the cheapest, flagged `key_clash` where the prices differed.
    """
    refs = references or bundled_references()
    rows, rejected = _rows(offers, refs)
    priced, no_rate = in_usd(rows, refs.rates)
    kept, unlikely = implausible(priced)
    for row in no_rate.iter_rows(named=True):
        rejected[row["source_id"], describe(row), f"no exchange rate for {row['currency']}"] += 1
    for row in unlikely.iter_rows(named=True):
        rejected[row["source_id"], describe(row), row["why"]] += 1
    told = [
        Rejected(source_id=source, raw_text=f"{what} (× {n})" if n > 1 else what, reason=reason)
        for (source, what, reason), n in rejected.items()
    ]
    return Normalised(_one_row_a_key(_with_id(kept)), told)


def identify(offers: Sequence[Offer], *, references: References | None = None) -> pl.DataFrame:
    """The records that are offers of ours, whatever they cost: `number` (which record), OFFER_SCHEMA without usd_*."""
    return _with_id(_rows(offers, references or bundled_references())[0])


def _rows(offers: Sequence[Offer], refs: References) -> tuple[pl.DataFrame, Counter[tuple[str, str, str]]]:
    rejected: Counter[tuple[str, str, str]] = Counter()
    rows = []
    answer = _resolving(refs.resolver)
    for number, offer in enumerate(offers):
        provider_id = refs.provider(offer.provider_id)
        if provider_id is None:
            what = f"{offer.provider_id} {offer.gpu_name_raw}"
            rejected[offer.source_id, what, f"unknown provider {offer.provider_id}"] += 1
            continue
        gpu, is_conflict = answer(offer)
        if gpu.gpu_id is None:
            memory = "" if offer.gpu_memory_gb is None else f", {offer.gpu_memory_gb:g} GB"
            what = f"{provider_id} {offer.gpu_name_raw}{memory}"
            rejected[offer.source_id, what, f"no gpu_id: {gpu.reason}"] += 1
            continue
        rows.append(_row(offer, provider_id, gpu, is_conflict, refs) | {"number": number})
    return pl.DataFrame(rows, schema=_ROW_SCHEMA), rejected


def describe(row: Mapping[str, object]) -> str:
    """An offer in words."""
    return f"{row['provider_id']} {row['instance_type'] or row['gpu_name_raw']}: {row['amount']} {row['currency']}/h"


@cache  # of one resolver all that it has been asked
def _resolving(resolver: Resolver) -> Callable[[Offer], tuple[Answer, bool]]:
    known: dict[tuple[str, str | None, float | None], tuple[Answer, bool]] = {}

    def answer(offer: Offer) -> tuple[Answer, bool]:
        if offer.gpu_id:  # a person has resolved it
            return Answer(offer.gpu_id, bool(offer.is_gpu_assumed), "seed", (offer.gpu_id,)), False
        key = (offer.gpu_name_raw, offer.instance_type, offer.gpu_memory_gb)
        if key not in known:
            known[key] = resolver.resolve_offer(*key)
        return known[key]

    return answer


_ROW_SCHEMA = pl.Schema(
    {
        name: dtype
        for name, dtype in OFFER_SCHEMA.items()
        if name not in ("offer_id", "usd_per_hour", "usd_per_gpu_hour")
    }
    | {"instance_key": pl.String, "region_key": pl.String, "number": pl.Int64}
)


def _row(offer: Offer, provider_id: str, gpu: Answer, is_conflict: bool, refs: References) -> dict[str, object]:
    instance = offer.instance_type
    count = (refs.resolver.speller.gpu_count(instance.lower()) if instance else None) or offer.gpu_count
    region = clean_region(offer.region)
    country = offer.country or refs.regions.country(provider_id, offer.region)
    is_range = offer.price_scope == "per_gpu"
    flags = list(offer.quality_flags)
    flags += ["source_conflict"] if is_conflict and "source_conflict" not in flags else []
    flags += ["memory_differs_from_spec"] if gpu.memory_differs and "memory_differs_from_spec" not in flags else []
    kind = next((kind for pattern, kind in PRODUCT_KINDS if instance and pattern.search(instance)), offer.product_kind)
    return {
        "provider_id": provider_id,
        "instance_type": instance,
        "gpu_name_raw": offer.gpu_name_raw,
        "gpu_memory_gib": offer.gpu_memory_gb,
        "gpu_id": gpu.gpu_id,
        "is_gpu_assumed": gpu.is_assumed,
        "gpu_count": count,
        "min_gpu_count": (offer.min_gpu_count or count) if is_range else count,
        "max_gpu_count": (offer.max_gpu_count or count) if is_range else count,
        "price_scope": offer.price_scope,
        "product_kind": kind if offer.product_kind == "vm" else offer.product_kind,
        "seller": offer.seller,
        "vcpus": offer.vcpus,
        "host_memory_bytes": offer.host_memory_bytes,
        "region": region,
        "country": country,
        "is_eu": None if country is None else country in EU,
        "commitment": offer.commitment,
        "commit_term": offer.commit_term,
        "tier": offer.tier,
        "amount": float(offer.amount),
        "currency": offer.currency,
        "fx_rate": None,
        "fx_on": None,
        "billing_granularity": offer.billing_granularity,
        "quality_flags": "|".join(flags) or None,
        "url": offer.url,
        "source_id": offer.source_id,
        "origin": offer.origin,
        "observed_at": offer.observed_at,
        "date_kind": offer.date_kind,
        "instance_key": _instance_key(provider_id, instance),
        "region_key": (region or "").lower(),
    }


def _instance_key(provider_id: str, instance: str | None) -> str:
    """The machine type without what sources write differently: case, blanks, Azure's `Standard_`."""
    key = re.sub(r"[\s_]+", "_", (instance or "").strip()).lower()
    if provider_id == "azure" and AZURE_SERIES.match(key):
        key = f"standard_{key}"
    return key


def in_usd(frame: pl.DataFrame, rates: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`usd_per_hour` by the last rate known on the day observed, or the first one for older rows; and the rest."""
    table = rates.select("currency", "usd_per_unit", rate_on="on").sort("rate_on")
    dated = frame.with_columns(day=pl.col("observed_at").dt.date()).sort("day", maintain_order=True)
    before, after = (_rate(dated, table, strategy) for strategy in ("backward", "forward"))
    is_usd = pl.col("currency") == "USD"
    rated = before.with_columns(
        fx_rate=pl.when(is_usd).then(1.0).otherwise(pl.coalesce("usd_per_unit", after["usd_per_unit"])),
        fx_on=pl.when(~is_usd).then(pl.coalesce("rate_on", after["rate_on"])),
    )
    usd = pl.col("amount") * pl.col("fx_rate")
    priced = rated.filter(pl.col("fx_rate").is_not_null()).with_columns(
        usd_per_hour=usd.round(6), usd_per_gpu_hour=(usd / pl.col("gpu_count")).round(6)
    )
    return priced, rated.filter(pl.col("fx_rate").is_null())


def _rate(dated: pl.DataFrame, table: pl.DataFrame, strategy: AsofJoinStrategy) -> pl.DataFrame:
    """Each row with the rate nearest to its day on one side; both frames are sorted by day."""
    return dated.join_asof(
        table,
        left_on="day",
        right_on="rate_on",
        by="currency",
        strategy=strategy,
        coalesce=False,
        check_sortedness=False,  # it cannot be checked by groups
    )


def _with_id(frame: pl.DataFrame) -> pl.DataFrame:
    """The natural key, hashed: the same offer has the same offer_id in every run and from every source."""
    text = frame.select(
        pl.concat_str([pl.col(k).cast(pl.String).fill_null("") for k in KEY], separator="\x1f")
    ).to_series()
    ids = [hashlib.sha256(t.encode()).hexdigest()[:KEY_CHARS] for t in text]
    return frame.with_columns(offer_id=pl.Series(ids, dtype=pl.String))


def _one_row_a_key(frame: pl.DataFrame) -> pl.DataFrame:
    moment = ["offer_id", "source_id", "observed_at"]
    clashing = pl.col("usd_per_hour").n_unique().over(moment) > 1
    has_flag = pl.col("quality_flags").fill_null("").str.split("|").list.contains("key_clash")
    flagged = pl.concat_str(["quality_flags", pl.lit("key_clash")], separator="|", ignore_nulls=True)
    flags = pl.when(clashing & ~has_flag).then(flagged).otherwise("quality_flags")
    return (
        frame.with_columns(quality_flags=flags)
        .sort(*moment, "usd_per_hour", "vcpus", "host_memory_bytes", nulls_last=True)
        .unique(moment, keep="first", maintain_order=True)
        .select(pl.col(name).cast(dtype) for name, dtype in OFFER_SCHEMA.items())
    )
