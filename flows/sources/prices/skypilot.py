"""SkyPilot's catalog: one `vms.csv` a cloud, refreshed every few hours in the repository skypilot-org/skypilot-catalog.

Columns InstanceType, AcceleratorName, AcceleratorCount, vCPUs, MemoryGiB, Price, Region, GpuInfo, SpotPrice, and for
some clouds more; their order differs, so rows are read by header. Price and SpotPrice are USD an hour of the instance
and stand in one row; an empty or zero SpotPrice means that there is none. GpuInfo comes in four dialects.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fitmart.estimator.units import GIB
from fitmart.flows.errors import SourceError, TerminalError, UnreachableError
from fitmart.flows.records import Offer, RowError, Sifted, sift, unreadable
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "SkyPilot catalog"
SOURCE_ID = "skypilot-catalog"
MAX_AGE_HOURS = 48
NEEDS = None

VERSION = "v8"  # the client's constant since 0.10
BASE_URL = f"https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/{VERSION}"
CLOUDS = (
    *("aws", "azure", "cudo", "daytona", "do", "fluidstack", "gcp", "hyperbolic", "hyperstack", "jarvislabs", "lambda"),
    *("lium", "mithril", "nebius", "oci", "paperspace", "primeintellect", "runpod", "scaleway", "seeweb", "shadeform"),
    *("spheron", "vast", "verda", "yotta"),
)
RESELLERS = frozenset({"primeintellect", "shadeform", "spheron"})  # the price is theirs, the machine another's
GPU_ONLY = frozenset({"daytona"})  # vCPUs and memory are billed on top
MEMORY_IS_TOTAL = frozenset({"vast", "primeintellect"})  # SizeInMiB of all GPUs together, though it stands per GPU
NO_HOST_MEMORY = frozenset({"runpod", "paperspace"})  # MemoryGiB holds the GPU's memory (skypilot#6824)
LEAST_MIB = 1024  # a smaller "MiB" is GiB (RunPod, Shadeform)
SIZE = re.compile(r"SizeInMiB\W+([0-9.]+)")
TPU_SLICE = re.compile(r"^(tpu-v\d+\w*?)-(\d+)$")
CORES_PER_CHIP = {"tpu-v2": 2, "tpu-v3": 2, "tpu-v4": 2, "tpu-v5p": 2}  # these slices are named by cores


def fetch(http: "Http", since: Since) -> Iterator[Payload]:
    """Every cloud's table. A cloud that fails does not hold back the others; failures are raised at the end."""
    failures: list[str] = []
    for cloud in CLOUDS:
        url = f"{BASE_URL}/{cloud}/vms.csv"
        try:
            yield Payload(name=f"{cloud}/vms.csv", content=http.get(url, expect="csv"), url=url)
        except UnreachableError:
            raise
        except SourceError as error:
            failures.append(f"{cloud}: {error}")
    if failures:
        raise TerminalError(f"{len(failures)} of {len(CLOUDS)} clouds failed: {'; '.join(failures)}")


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """One cloud's table → offers: on demand and spot of each row with an accelerator."""
    cloud = name.partition("/")[0]
    try:
        rows = list(cells.csv_rows(content))
    except (UnicodeDecodeError, csv.Error) as error:
        return unreadable(SOURCE_ID, content, f"{name}: not readable as CSV ({error})")
    hosts = _host_prices(rows) if cloud == "gcp" else {}

    def make(row: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        return _offers(row, cloud, hosts, seen_at)

    return sift(rows, make, Offer, source_id=SOURCE_ID)


Host = tuple[str | None, str | None, str | None]


def _host_prices(rows: list[dict[str, Any]]) -> dict[Host, list[dict[str, Any]]]:
    """GCP quotes the host and its GPUs in rows of their own (skypilot-catalog#31): hosts by type, region and zone."""
    hosts: dict[Host, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if cells.text(row.get("AcceleratorName")) is None and cells.text(row.get("InstanceType")):
            hosts[_place(row)].append(row)
    return hosts


def _place(row: dict[str, Any]) -> Host:
    return (
        cells.text(row.get("InstanceType")),
        cells.text(row.get("Region")),
        cells.text(row.get("AvailabilityZone")),
    )


def _offers(
    row: dict[str, Any], cloud: str, hosts: Mapping[Host, list[dict[str, Any]]], seen_at: datetime
) -> Iterator[Mapping[str, Any]]:
    gpu_name = cells.text(row["AcceleratorName"])
    if gpu_name is None:
        return
    count = cells.whole(row["AcceleratorCount"], what="AcceleratorCount")
    if not count:
        raise RowError(f"{gpu_name} without a count")
    host = next(iter(hosts.get(_place(row), ())), None)
    machine = row if host is None else host
    is_gpu_only = cloud in GPU_ONLY or (cloud == "gcp" and host is None)
    memory_gb = _gpu_memory(row, cloud, count)
    gpu_name, count = _chips(gpu_name, count)
    host_gib = None if cloud in NO_HOST_MEMORY else cells.number(machine.get("MemoryGiB"), what="MemoryGiB")
    common = {
        "provider_id": cloud,
        "instance_type": cells.text(row["InstanceType"]),
        "gpu_name_raw": gpu_name,
        "gpu_memory_gb": memory_gb,
        "gpu_count": count,
        "price_scope": "gpu_only" if is_gpu_only else "instance",
        "seller": cloud if cloud in RESELLERS else None,
        "vcpus": cells.number(machine.get("vCPUs"), what="vCPUs"),
        "host_memory_bytes": None if not host_gib else int(host_gib * GIB),
        "region": cells.text(row.get("Region")),
        "tier": _tier(row, cloud),
        "url": f"{BASE_URL}/{cloud}/vms.csv",
        "source_id": SOURCE_ID,
        "origin": "aggregator",
        "observed_at": seen_at,
    }
    columns = (("on_demand", "Price"), ("spot", "SpotPrice"))
    priced = 0
    for commitment, column in columns:
        price = _price(row, host, column)
        if price:
            priced += 1
            yield common | {"commitment": commitment, "amount": price}
    if not priced:
        raise RowError("no price above zero")


def _price(row: dict[str, Any], host: dict[str, Any] | None, column: str) -> Decimal | None:
    """Price of GPU and host together. A host of A4 costs 0: its GPU's price includes it (skypilot#8125)."""
    price = cells.money(row.get(column), what=column)
    if not price or host is None:
        return price
    beside = cells.money(host.get(column), what=f"host {column}")
    return None if beside is None else price + beside


def _gpu_memory(row: dict[str, Any], cloud: str, count: int) -> float | None:
    """Memory of one GPU in GiB from GpuInfo, whatever its dialect; None where it says nothing."""
    found = SIZE.search(row.get("GpuInfo") or "")
    size = float(found[1]) if found else 0.0
    if not size:
        return None
    if cloud in MEMORY_IS_TOTAL:
        size /= count
    return size if size < LEAST_MIB else size / 1024


def _chips(gpu_name: str, count: int) -> tuple[str, int]:
    """A TPU slice "tpu-v5litepod-8" is eight chips, "tpu-v4-8" eight cores on four; others are what they say."""
    found = TPU_SLICE.match(gpu_name)
    if not found:
        return gpu_name, count
    chips, rest = divmod(int(found[2]), CORES_PER_CHIP.get(found[1], 1))
    if rest:
        raise RowError(f"{gpu_name}: {found[2]} cores are no whole chips")
    return found[1], count * chips


def _tier(row: dict[str, Any], cloud: str) -> str | None:
    """RunPod and Yotta write the tier at the end of the instance type."""
    last = (cells.text(row["InstanceType"]) or "").rpartition("_")[2].lower()
    if last in ("secure", "community"):
        return last
    return "marketplace" if cloud in ("vast", "lium") else None
