"""RunPod's GraphQL: one POST a cloud, chosen by the flag in `lowestPrice`. Figures are made up."""

import json

from servers.loopback import Answer, Request
from servers.price_api import CANARY, said

DOCS = "https://docs.runpod.io/sdks/graphql/manage-pods"
HOSTS = ("https://api.runpod.io",)
FIRST = "/graphql"
CONSTANTS: dict[str, object] = {}
NEEDED = "securePrice"
KEYS: dict[str, str] = {}
OPTIONAL_KEYS = {"RUNPOD_API_KEY": CANARY}


def gpu(**more):
    return {
        "id": "NVIDIA H100 80GB HBM3",
        "displayName": "H100 SXM",
        "memoryInGb": 80,
        "secureCloud": True,
        "communityCloud": True,
        "securePrice": 2.99,
        "communityPrice": 2.69,
        "oneMonthPrice": 2.7,
        "threeMonthPrice": 2.6,
        "sixMonthPrice": None,
        "maxGpuCountSecureCloud": 8,
        "maxGpuCountCommunityCloud": 4,
        "lowestPrice": {
            "minimumBidPrice": 1.75,
            "uninterruptablePrice": 2.99,
            "minVcpu": 20,
            "minMemory": 125,
            "stockStatus": "Low",
        },
    } | more


A40 = gpu(
    id="NVIDIA A40",
    displayName="A40",
    memoryInGb=48,
    communityCloud=False,
    securePrice=0.4,
    communityPrice=0,
    oneMonthPrice=None,
    threeMonthPrice=None,
    lowestPrice=None,
)


def answer_of(*gpus):
    return {"data": {"gpuTypes": list(gpus)}}


def _answer(request: Request) -> Answer:
    query = json.loads(request.body)["query"]
    if "secureCloud: true" in query:
        return said(answer_of(gpu(), A40))
    cheaper = gpu()["lowestPrice"] | {"minimumBidPrice": 1.25, "uninterruptablePrice": 2.69}
    return said(answer_of(gpu(lowestPrice=cheaper), A40))


ROUTES = {FIRST: _answer}
EMPTY = {FIRST: said(answer_of())}
OFFERS = (1 + 1 + 2) + 1 + (1 + 1)  # secure H100 with two terms, secure A40, community H100
