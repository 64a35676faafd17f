"""The bundled snapshot: tables of facts under warehouse/seeds/, one CSV each.

A seed is UTF-8 with a header row; an empty cell is null, booleans are true and false, dates YYYY-MM-DD. Tables of the
catalog have a schema here and are read strictly. The rule tables of engines and speed keep columns of their own; their
types follow from the cells.
"""

import hashlib
from pathlib import Path

import polars as pl
from polars._typing import PolarsDataType

from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import GPU_SCHEMA, PRECISION_SCHEMA, schema

SEEDS = Path(__file__).resolve().parent / "seeds"


class SeedError(FitmartError):
    """A seed file that is missing or holds something its schema does not know: names the file and the line."""


_ORIGIN = {"source_id": pl.String, "observed_on": pl.Date}

SEED_SCHEMAS: dict[str, pl.Schema] = {
    "source": schema(
        source_id=pl.String,
        publisher=pl.String,
        url=pl.String,
        license=pl.String,
        license_url=pl.String,
        attribution=pl.String,
        kind=pl.String,  # model, price, token_price, gpu, engine, provider, measurement
        may_ship=pl.Boolean,  # its rows may be handed on with fitmart
        max_age_hours=pl.Int64,
        needs_key=pl.String,  # environment variable that turns it on
    ),
    "gpu": schema(
        **GPU_SCHEMA,
        memory_basis=pl.String,
        torch_memory_basis=pl.String,
        bandwidth_basis=pl.String,
        flop_basis=pl.String,
        unified_basis=pl.String,
        confidence=pl.String,  # high, medium, low
        is_released=pl.Boolean,
        release_year=pl.Int64,
        purchase_basis=pl.String,
        purchased_on=pl.Date,
        notes=pl.String,
        **_ORIGIN,
    ),
    "precision": schema(**PRECISION_SCHEMA, keeps_unquantized=pl.String, notes=pl.String, **_ORIGIN),
    "engine": schema(engine_id=pl.String, name=pl.String, version=pl.String, url=pl.String, **_ORIGIN),
    "engine_default": schema(
        engine_id=pl.String,
        since_version=pl.String,
        until_version=pl.String,
        parameter=pl.String,
        value=pl.String,
        condition=pl.String,
        source_id=pl.String,
        url=pl.String,
        observed_on=pl.Date,
    ),
    "engine_support": schema(
        engine_id=pl.String,
        vendor=pl.String,
        gpu_architecture=pl.String,
        gpu_ids=pl.String,  # joined by |; * is every one, *AMD every one of that vendor
        precision_id=pl.String,
        support=pl.String,  # native, weight_only, emulated, plugin, unsupported, unknown
        since_version=pl.String,
        until_version=pl.String,
        note=pl.String,
        evidence=pl.String,
        url=pl.String,
        **_ORIGIN,
    ),
    "launch_template": schema(
        engine_id=pl.String,
        vendor=pl.String,
        precision_id=pl.String,
        kind=pl.String,  # command, docker, flags, extended, kv_16, kv_8
        template=pl.String,
        source_id=pl.String,
        url=pl.String,
        observed_on=pl.Date,
    ),
    "provider": schema(
        provider_id=pl.String,
        name=pl.String,
        legal_name=pl.String,
        headquarters_country=pl.String,
        jurisdiction=pl.String,
        is_us_cloud_act=pl.Boolean,
        eu_regions=pl.String,
        billing_granularity=pl.String,
        minimum_charge=pl.String,
        egress_usd_per_gb=pl.Float64,
        has_scale_to_zero=pl.Boolean,
        is_marketplace=pl.Boolean,
        has_spot=pl.Boolean,
        certifications=pl.String,
        certification_basis=pl.String,
        url=pl.String,
        basis=pl.String,
        confidence=pl.String,
        note=pl.String,
        **_ORIGIN,
    ),
    "provider_alias": schema(alias=pl.String, provider_id=pl.String),
    "offer": schema(
        provider_id=pl.String,
        instance_type=pl.String,
        gpu_name_raw=pl.String,
        gpu_memory_gib=pl.Float64,
        gpu_id=pl.String,
        is_gpu_assumed=pl.Boolean,
        gpu_count=pl.Int64,
        min_gpu_count=pl.Int64,
        max_gpu_count=pl.Int64,
        price_scope=pl.String,  # instance, per_gpu, gpu_only
        product_kind=pl.String,  # vm, bare_metal, managed, serverless
        seller=pl.String,
        vcpus=pl.Float64,
        host_memory_bytes=pl.Int64,
        region=pl.String,
        country=pl.String,
        is_eu=pl.Boolean,
        commitment=pl.String,  # on_demand, spot, reserved
        commit_term=pl.String,
        tier=pl.String,
        amount=pl.Float64,
        currency=pl.String,
        usd_per_hour=pl.Float64,  # of the whole offer
        billing_granularity=pl.String,
        quality_flags=pl.String,  # joined by |
        url=pl.String,
        source_id=pl.String,
        observed_on=pl.Date,
        date_kind=pl.String,  # exact, approx, matched
    ),
    "api_price": schema(
        provider_id=pl.String,
        model_name_raw=pl.String,
        model_id=pl.String,
        input_usd_per_mtok=pl.Float64,
        output_usd_per_mtok=pl.Float64,
        cached_input_usd_per_mtok=pl.Float64,
        context_tokens=pl.Int64,
        note=pl.String,
        **_ORIGIN,
    ),
}


def seed_names() -> list[str]:
    """Names of the bundled tables (file name without .csv), sorted."""
    return sorted(path.stem for path in SEEDS.glob("*.csv"))


def read_seed(name: str) -> pl.DataFrame:
    """One bundled table, typed by its schema, in the order of the file.

    Raises SeedError where the file is missing, lacks a column, has one the schema does not know, or holds a cell of
    another type (the message names file, line and column).
    """
    return read_table(SEEDS / f"{name}.csv", SEED_SCHEMAS.get(name))


def seeds_hash() -> str:
    """SHA-256 over the names and bytes of all bundled files: changes with any fact."""
    digest = hashlib.sha256()
    for path in sorted(p for p in SEEDS.iterdir() if p.suffix in {".csv", ".jsonl"}):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def read_table(path: Path, want: pl.Schema | None) -> pl.DataFrame:
    """A CSV of the seeds' form as a frame of `want`, or with types found in its cells where `want` is None."""
    try:
        raw = pl.read_csv(path, infer_schema=want is None, infer_schema_length=None, try_parse_dates=want is None)
    except FileNotFoundError:
        raise SeedError(f"seed {path.name}: no such file") from None
    except pl.exceptions.PolarsError as error:
        raise SeedError(f"seed {path.name}: not readable as CSV ({str(error).splitlines()[0]})") from None
    return raw if want is None else _typed(raw, want, file=path.name)


def _typed(raw: pl.DataFrame, want: pl.Schema, *, file: str) -> pl.DataFrame:
    unknown = [c for c in raw.columns if c not in want]
    missing = [c for c in want if c not in raw.columns]
    if unknown or missing:
        raise SeedError(f"seed {file} line 1: unknown columns {unknown}, missing columns {missing}")
    frame = raw.select(_parsed(name, dtype) for name, dtype in want.items())
    for name, dtype in want.items():
        bad = raw[name].is_not_null() & frame[name].is_null()
        if bad.any():
            row = bad.arg_true()[0]
            raise SeedError(f"seed {file} line {row + 2}: {name} is {raw[name][row]!r}, not {dtype}")
    return frame


def _parsed(name: str, dtype: PolarsDataType) -> pl.Expr:
    cell = pl.col(name)
    if dtype == pl.Boolean:
        return cell.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
    if dtype == pl.Date:
        return cell.str.to_date("%Y-%m-%d", strict=False)
    if dtype == pl.Float64:
        number = cell.cast(pl.Float64, strict=False)
        return pl.when(number.is_finite()).then(number).alias(name)  # "nan" and "inf" are no facts
    return cell.cast(dtype, strict=False)
