"""Amazon EC2: the public price list, a file a region, and the spot prices of its web page; no key.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-the-aws-price-list-bulk-api.html. `region_index.json`
names each region's newest version. As CSV: five lines of preamble, a header, a line for each term of a machine. Files
have hundreds of megabytes, so that only the lines of machines with accelerators are kept, as received, and only where a
version is new. USD an hour for the whole machine. Capacity blocks stand there at 0: they are sold ahead
(dstackai/gpuhunt#36).

Spot is not in the list. `spot-price.s3.amazonaws.com/spot.js`, which feeds https://aws.amazon.com/ec2/spot/pricing/, is
not documented: a call with JSON in it, old names for old regions, "N/A*" where nothing is sold, zero for some new types
(alexei-led/spotinfo#2). It names no GPUs: see aws_machines.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.flows.errors import SourceError, TerminalError, UnreachableError
from fitmart.flows.records import Offer, RowError, Sifted, sift, unreadable
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading
from fitmart.flows.sources.prices.aws_machines import FAMILY, accelerators, is_accelerated

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "AWS price list"
SOURCE_ID = "aws"
MAX_AGE_HOURS = 48
NEEDS = None

LIST_URL = "https://pricing.us-east-1.amazonaws.com"
INDEX_URL = f"{LIST_URL}/offers/v1.0/aws/AmazonEC2/current/region_index.json"
SPOT_URL = "https://spot-price.s3.amazonaws.com/spot.js"
# Where most accelerators stand. Each of these costs a download of 100 to 300 MB at every new version.
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "eu-north-1", "ap-northeast-1")
MAX_LIST_BYTES = 2 * 1024**3
WANTED = re.compile(rb'"' + FAMILY.encode() + rb'\.[a-z0-9-]+"')
WANTED_CELLS = (b'"Linux"', b'"Shared"', b'"Used"', b'"Hrs"')
LINUX = {
    "Operating System": ("Linux",),
    "Tenancy": ("Shared",),
    "CapacityStatus": ("Used",),
    "Pre Installed S/W": ("NA", ""),
    "Unit": ("Hrs",),
    "Currency": ("USD",),
    "MarketOption": ("OnDemand", ""),
}
TERMS = {"1yr": "12mo", "3yr": "36mo"}
SPOT_REGIONS = {  # names that spot.js keeps from its first years
    **{"us-east": "us-east-1", "us-west": "us-west-1", "eu-ireland": "eu-west-1", "apac-sin": "ap-southeast-1"},
    **{"apac-syd": "ap-southeast-2", "apac-tokyo": "ap-northeast-1"},
}
JSONP = re.compile(rb"^\s*(?:/\*.*?\*/\s*)?[\w.$]+\((.*)\)\s*;?\s*$", re.DOTALL)


def fetch(http: "Http", since: Since) -> Iterator[Payload]:
    """Spot prices, then the list of every region that has a new version. What fails holds back no other."""
    failures: list[str] = []
    try:
        yield asking.with_offers(Payload(name="spot.js", content=http.get(SPOT_URL), url=SPOT_URL), parse)
    except UnreachableError:
        raise
    except SourceError as error:
        failures.append(f"spot: {error}")
    regions = _regions(http.get(INDEX_URL, expect="json"))
    for region in REGIONS:
        try:
            yield from _fetch_region(http, since, region, regions[region])
        except UnreachableError:
            raise
        except KeyError:
            failures.append(f"{region}: not in the index")
        except SourceError as error:
            failures.append(f"{region}: {error}")
    if failures:
        raise TerminalError(f"{len(failures)} of {len(REGIONS) + 1} price lists failed: {'; '.join(failures)}")


def _regions(index: bytes) -> dict[str, str]:
    """Region → URL of its newest list as CSV."""
    try:
        regions = json.loads(index)["regions"]
        return {
            region: LIST_URL + str(entry["currentVersionUrl"]).removesuffix(".json") + ".csv"
            for region, entry in regions.items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise TerminalError(f"region_index.json: of another shape ({type(error).__name__}: {error})") from error


def _fetch_region(http: "Http", since: Since, region: str, url: str) -> Iterator[Payload]:
    version, prices = f"{region}/version", f"{region}/prices.csv"
    if since.read(version) == url.encode() and prices in since.landed:
        return
    content = http.get_lines(url, keep=_is_wanted, max_bytes=MAX_LIST_BYTES)
    # The list first: a run that dies between the two asks for both again.
    yield asking.with_offers(Payload(name=prices, content=content, url=url), parse)
    yield Payload(name=version, content=url.encode(), url=INDEX_URL)


def _is_wanted(line: bytes) -> bool:
    return line.startswith(b'"SKU"') or (all(c in line for c in WANTED_CELLS) and WANTED.search(line) is not None)


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """A region's lines, or spot.js → offers on demand, reserved without payment ahead, and spot."""
    if name.endswith("/version"):
        return Sifted([], [])
    if name == "spot.js":
        return _parse_spot(content, seen_at)
    common = reading.direct(SOURCE_ID, seen_at, url=LIST_URL)
    try:
        rows = list(cells.csv_rows(content))
    except (UnicodeDecodeError, csv.Error) as error:
        return unreadable(SOURCE_ID, content, f"{name}: not readable as CSV ({error})")

    def make(row: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        commitment = _commitment(row)
        machine = row["Instance Type"]
        if commitment is None or not is_accelerated(machine) or any(row[k] not in v for k, v in LINUX.items()):
            return
        yield (
            common
            | commitment
            | {
                "instance_type": machine,
                "gpu_name_raw": machine,
                "gpu_count": _gpu_count(machine, row.get("GPU")),
                "vcpus": cells.number(row["vCPU"], what="vCPU"),
                "host_memory_bytes": reading.host_bytes(str(row["Memory"]).replace(",", "").removesuffix(" GiB")),
                "region": row["Region Code"],
                "amount": reading.price(row["PricePerUnit"]),
            }
        )

    return sift(rows, make, Offer, source_id=SOURCE_ID)


def _commitment(row: Mapping[str, str]) -> dict[str, str] | None:
    """None for terms that are no price of an hour: what is paid ahead stands in a row of its own."""
    if row["TermType"] == "OnDemand":
        return {"commitment": "on_demand"}
    if row["TermType"] == "Reserved" and (row["PurchaseOption"], row["OfferingClass"]) == ("No Upfront", "standard"):
        return {"commitment": "reserved", "commit_term": TERMS[row["LeaseContractLength"]]}
    return None


def _gpu_count(machine: str, told: str | None = None) -> int:
    gpu_count = accelerators(machine) or cells.whole(told, what="GPU")
    if not gpu_count:
        raise RowError(f"{machine}: how many accelerators it has is not known")
    return gpu_count


def _parse_spot(content: bytes, seen_at: datetime) -> Sifted[Offer]:
    common = reading.direct(SOURCE_ID, seen_at, url=SPOT_URL) | {"commitment": "spot"}

    def make(row: tuple[str, Any]) -> Iterator[Mapping[str, Any]]:
        region, size = row
        machine = size["size"]
        if not is_accelerated(machine):
            return
        linux = next(column for column in size["valueColumns"] if column["name"] == "linux")
        told = linux["prices"]["USD"]
        if str(told).startswith("N/A"):
            return
        yield common | {
            "instance_type": machine,
            "gpu_name_raw": machine,
            "gpu_count": _gpu_count(machine),
            "region": SPOT_REGIONS.get(region, region),
            "amount": reading.price(told, what="spot price"),
        }

    found = JSONP.match(content)
    return reading.parse_rows(found[1] if found else content, _spot_rows, make, source_id=SOURCE_ID)


def _spot_rows(document: Any) -> list[Any]:
    return [
        (region["region"], size)
        for region in document["config"]["regions"]
        for kind in region["instanceTypes"]
        for size in kind["sizes"]
    ]
