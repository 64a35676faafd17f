"""RunPod: `POST api.runpod.io/graphql`, type gpuTypes. Secure and community cloud are tiers, asked for one by one.

https://docs.runpod.io/sdks/graphql/manage-pods. No key is needed; RUNPOD_API_KEY is sent where it is set. Prices are of
one GPU and hour, up to the cloud's largest pod. List prices stand beside `lowestPrice`, what can be had now: its
`minimumBidPrice` is where spot begins, and null where nothing is left. Months paid ahead are of the secure cloud. A 200
may hold `errors` in place of data.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.flows.records import Offer, RowError, Sifted
from fitmart.flows.sources import cells
from fitmart.flows.sources.contract import Payload, Since
from fitmart.flows.sources.prices import asking, reading

if TYPE_CHECKING:
    from fitmart.flows.http import Http

NAME = "RunPod GPU types"
SOURCE_ID = "runpod"
MAX_AGE_HOURS = 12
NEEDS = None

URL = "https://api.runpod.io/graphql"
QUERY = (
    "query GpuTypes {{ gpuTypes {{ id displayName memoryInGb secureCloud communityCloud securePrice communityPrice"
    " oneMonthPrice threeMonthPrice sixMonthPrice maxGpuCountSecureCloud maxGpuCountCommunityCloud"
    " lowestPrice(input: {{gpuCount: 1, secureCloud: {}}})"
    " {{ minimumBidPrice uninterruptablePrice minVcpu minMemory stockStatus }} }} }}"
)
LARGEST = {"secure": "maxGpuCountSecureCloud", "community": "maxGpuCountCommunityCloud"}
MONTHS = (("1mo", "oneMonthPrice"), ("3mo", "threeMonthPrice"), ("6mo", "sixMonthPrice"))


def fetch(http: "Http", since: Since) -> list[Payload]:
    """One answer a tier: `lowestPrice` is of the cloud that the question names."""
    headers = asking.optional_key("RUNPOD_API_KEY", "Authorization", "Bearer {}")
    answers = {
        tier: http.post(URL, headers=headers, body={"query": QUERY.format(is_secure)})
        for tier, is_secure in (("secure", "true"), ("community", "false"))
    }
    payloads = [Payload(name=tier, content=answer, url=URL) for tier, answer in answers.items()]
    return [asking.with_offers(payload, parse) for payload in payloads]


def parse(content: bytes, seen_at: datetime, name: str = "") -> Sifted[Offer]:
    """The answer named "secure" or "community" → that tier's offers for one GPU, on demand, spot and months ahead."""
    tier = "community" if name == "community" else "secure"
    common = reading.direct(SOURCE_ID, seen_at, url=URL) | {"price_scope": "per_gpu", "gpu_count": 1, "tier": tier}

    def make(row: Any) -> Iterator[Mapping[str, Any]]:
        if not row[f"{tier}Cloud"]:
            return
        lowest = row.get("lowestPrice") or {}
        largest = reading.count(row.get(LARGEST[tier]) or 1, what=LARGEST[tier])
        gpu = common | {
            "instance_type": row["id"],
            "gpu_name_raw": row["displayName"],
            "gpu_memory_gb": cells.number(row.get("memoryInGb"), what="memoryInGb") or None,
            "max_gpu_count": largest or 1,
            "vcpus": cells.number(lowest.get("minVcpu"), what="minVcpu"),
            "host_memory_bytes": reading.host_bytes(lowest.get("minMemory")),
        }
        listed = reading.maybe_price(row[f"{tier}Price"], what=f"{tier}Price")
        bid = reading.maybe_price(lowest.get("minimumBidPrice"), what="minimumBidPrice")
        if not listed and not bid:
            raise RowError(f"{row['displayName']}: no price in the {tier} cloud")
        if listed:
            yield gpu | {"amount": listed}
        if bid:
            yield gpu | {"amount": bid, "commitment": "spot"}
        for term, field in MONTHS if tier == "secure" else ():
            if ahead := reading.maybe_price(row.get(field), what=field):
                yield gpu | {"amount": ahead, "commitment": "reserved", "commit_term": term}

    return reading.parse_rows(content, reading.rows_at("data", "gpuTypes"), make, source_id=SOURCE_ID)
