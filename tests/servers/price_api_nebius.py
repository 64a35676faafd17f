"""The file about Nebius in gpuhunt's bucket. Figures are made up."""

from servers.loopback import Answer
from servers.price_server import gpuhunt_zip

DOCS = "https://github.com/dstackai/gpuhunt"
HOSTS = ("https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com",)
FIRST = "/v3/nebius/version"
ZIP = "/v3/nebius/20261130-7/catalog.zip"
CONSTANTS: dict[str, object] = {}
NEEDED = ""  # no JSON
ORIGIN = "aggregator"
KEYS: dict[str, str] = {}


def row(**more):
    return {
        "instance_name": "gpu-h100-sxm 8gpu-128vcpu-1600gb",
        "location": "eu-north1",
        "price": "23.6",
        "cpu": "128",
        "memory": "1600.0",
        "gpu_count": "8",
        "gpu_name": "H100",
        "gpu_memory": "80.0",
        "spot": "False",
        "gpu_vendor": "nvidia",
    } | more


VERSION = Answer(200, b"20261130-7\n")
ROUTES = {FIRST: VERSION, ZIP: Answer(200, gpuhunt_zip("nebius", [row(), row(spot="True", price="11.6")]))}
EMPTY = {FIRST: VERSION, ZIP: Answer(200, gpuhunt_zip("nebius", []))}
OFFERS = 2
