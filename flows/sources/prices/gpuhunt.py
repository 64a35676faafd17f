"""gpuhunt's published catalogs: one zip a provider, made hourly by dstack.

Layout v3 (since August 2026, dstackai/gpuhunt#252): `v3/{provider}/version` is one line, `v3/{provider}/{version}/
catalog.zip` holds one `{provider}.csv`. The file name is the provider. A price is USD an hour for the whole instance;
memory of the host is in GB as the provider writes it, of one GPU in GB. `spot` is the text True or False.
"""

import csv
import io
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.estimator.units import GB, GIB
from fitmart.flows.errors import SourceError, TerminalError, UnreachableError
from fitmart.flows.records import Offer, RowError, Sifted, sift, unreadable
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "gpuhunt catalogs"
SOURCE_ID = "gpuhunt"
MAX_AGE_HOURS = 24
NEEDS = None

BASE_URL = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
PROVIDERS = ("aws", "azure", "gcp", "oci", "verda", "lambdalabs", "nebius", "runpod", "cloudrift")
MAX_CSV_BYTES = 512 * 1024**2  # unpacked; a zip may claim anything
# Lambda's GiB are multiplied by 1.074 in the catalog (provider module of gpuhunt 0.1.34), the others are as quoted.
GIB_AS_GB = frozenset({"lambdalabs"})


def fetch(http: "Http", since: Since) -> Iterator[Payload]:
    """The version file and, where it is another than last time, the zip of every provider.

    One provider that fails does not hold back the others; the failures are raised together at the end.
    """
    failures: list[str] = []
    for provider in PROVIDERS:
        try:
            yield from fetch_provider(http, since, provider)
        except UnreachableError:
            raise
        except SourceError as error:
            failures.append(f"{provider}: {error}")
    if failures:
        raise TerminalError(f"{len(failures)} of {len(PROVIDERS)} providers failed: {'; '.join(failures)}")


def fetch_provider(http: "Http", since: Since, provider: str) -> Iterator[Payload]:
    """The two files of one provider, where its version is another than last time."""
    version_name, zip_name = f"{provider}/version", f"{provider}/catalog.zip"
    version_url = f"{BASE_URL}/{version_name}"
    version = http.get(version_url)
    text = version.decode(errors="replace").strip()
    if not text or len(text) > 64 or any(c in text for c in "/<>{} \n"):
        raise TerminalError(f"{version_name}: not a version but {text[:40]!r}")
    if since.read(version_name) == version and zip_name in since.landed:
        return
    url = f"{BASE_URL}/{provider}/{text}/catalog.zip"
    # The zip first: a run that dies between the two asks for both again.
    yield Payload(name=zip_name, content=http.get(url), url=url)
    yield Payload(name=version_name, content=version, url=version_url)


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """One landed file → offers, one a row with a GPU; rows without one (plain machines) are no offers of ours."""
    provider, _, file = name.partition("/")
    if file == "version":
        return Sifted([], [])
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inside = next((i for i in archive.infolist() if i.filename.endswith(".csv")), None)
            if inside is None or inside.file_size > MAX_CSV_BYTES:
                return unreadable(SOURCE_ID, content, f"{name}: no CSV of sensible size in the zip")
            rows = list(cells.csv_rows(archive.read(inside)))
    except (zipfile.BadZipFile, UnicodeDecodeError, csv.Error, NotImplementedError, RuntimeError, OSError) as error:
        return unreadable(SOURCE_ID, content, f"{name}: not a zip with a CSV in it ({error})")

    def make(row: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        return _offers(row, provider, seen_at)

    return sift(rows, make, Offer, source_id=SOURCE_ID)


def _offers(row: dict[str, Any], provider: str, seen_at: datetime) -> Iterator[Mapping[str, Any]]:
    gpu_count = cells.whole(row["gpu_count"], what="gpu_count")
    gpu_name = cells.text(row["gpu_name"])
    if not gpu_count:
        if gpu_name:
            raise RowError(f"{gpu_name} without a gpu_count")
        return
    if gpu_name is None:
        raise RowError(f"{gpu_count} GPUs without a name")
    price = cells.money(row["price"])
    if not price or price < 0:
        raise RowError(f"price is {price}: a placeholder, not an offer")
    is_spot = {"true": True, "false": False}[str(row["spot"]).strip().lower()]
    flags = (cells.text(row.get("flags")) or "").split()
    memory = cells.number(row.get("memory"), what="memory")
    yield {
        "provider_id": provider,
        "instance_type": cells.text(row["instance_name"]),
        "gpu_name_raw": gpu_name,
        "gpu_memory_gb": cells.number(row.get("gpu_memory"), what="gpu_memory"),
        "gpu_count": gpu_count,
        "price_scope": "instance",
        "product_kind": "vm",
        "vcpus": cells.number(row.get("cpu"), what="cpu"),
        "host_memory_bytes": None if memory is None else int(memory * (GB if provider in GIB_AS_GB else GIB)),
        "region": cells.text(row.get("location")),
        "commitment": "spot" if is_spot else "on_demand",
        "tier": "community" if any("community" in flag for flag in flags) else None,
        "amount": price,
        "url": "https://github.com/dstackai/gpuhunt",
        "source_id": SOURCE_ID,
        "origin": "aggregator",
        "observed_at": seen_at,
    }
