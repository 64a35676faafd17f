"""AWS price list files of regions as CSV, their index, and the file behind the spot page. Figures are made up."""

import csv
import io
import json

from servers.loopback import Answer
from servers.price_api import said

DOCS = "https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-the-aws-price-list-bulk-api.html"
HOSTS = ("https://pricing.us-east-1.amazonaws.com", "https://spot-price.s3.amazonaws.com")
INDEX = "/offers/v1.0/aws/AmazonEC2/current/region_index.json"
FIRST = "/offers/v1.0/aws/AmazonEC2/20260101000000/us-east-1/index.csv"
CONSTANTS = {"REGIONS": ("us-east-1", "eu-west-1")}
NEEDED = "currentVersionUrl"
KEYS: dict[str, str] = {}
PREAMBLE = (
    '"FormatVersion","v1.0"\n"Disclaimer","This pricing list is for informational purposes only."\n'
    '"Publication Date","2026-01-01T00:00:00Z"\n"Version","20260101000000"\n"OfferCode","AmazonEC2"\n'
)
COLUMNS = (
    *("SKU", "OfferTermCode", "RateCode", "TermType", "PriceDescription", "Unit", "PricePerUnit", "Currency"),
    *("LeaseContractLength", "PurchaseOption", "OfferingClass", "Product Family", "Instance Type", "vCPU", "Memory"),
    *("Tenancy", "Operating System", "CapacityStatus", "GPU", "Pre Installed S/W", "Region Code", "MarketOption"),
)


def line(machine="g6.12xlarge", price="4.6016000000", **more):
    return {
        "SKU": "AAAA1111",
        "OfferTermCode": "JRTCKXETXF",
        "TermType": "OnDemand",
        "Unit": "Hrs",
        "PricePerUnit": price,
        "Currency": "USD",
        "Product Family": "Compute Instance",
        "Instance Type": machine,
        "vCPU": "48",
        "Memory": "192 GiB",
        "Tenancy": "Shared",
        "Operating System": "Linux",
        "CapacityStatus": "Used",
        "GPU": "4",
        "Pre Installed S/W": "NA",
        "Region Code": "us-east-1",
        "MarketOption": "OnDemand",
    } | more


def price_list(*lines):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return (PREAMBLE + text.getvalue()).encode()


def spot(*regions):
    """(region, {machine: price}) as spot.js has it."""
    document = {
        "vers": 0.01,
        "config": {
            "rate": "perhr",
            "valueColumns": ["linux", "mswin"],
            "currencies": ["USD"],
            "regions": [
                {
                    "region": region,
                    "instanceTypes": [
                        {
                            "type": "gpuInstances",
                            "sizes": [
                                {
                                    "size": machine,
                                    "valueColumns": [
                                        {"name": "linux", "prices": {"USD": price}},
                                        {"name": "mswin", "prices": {"USD": "99"}},
                                    ],
                                }
                                for machine, price in machines.items()
                            ],
                        }
                    ],
                }
                for region, machines in regions
            ],
        },
    }
    return b"callback(" + json.dumps(document).encode() + b");"


def _index(*regions):
    return {
        "formatVersion": "v1.0",
        "regions": {
            region: {
                "regionCode": region,
                "currentVersionUrl": f"/offers/v1.0/aws/AmazonEC2/20260101000000/{region}/index.json",
            }
            for region in regions
        },
    }


NOISE = [line(f"m7i.{n}xlarge", "0.2", GPU="") for n in range(1, 200)]
US = [*NOISE, line(), line("p5.48xlarge", "55.0400000000", vCPU="192", Memory="2,048 GiB", GPU="8")]
EU = [line("inf2.24xlarge", "6.49", GPU="", vCPU="96", **{"Region Code": "eu-west-1"})]

ROUTES = {
    INDEX: said(_index("us-east-1", "eu-west-1", "ap-south-1")),
    FIRST: Answer(200, price_list(*US)),
    FIRST.replace("us-east-1", "eu-west-1"): Answer(200, price_list(*EU)),
    "/spot.js": Answer(200, spot(("us-east", {"p5.48xlarge": "21.5", "g6.xlarge": "N/A*", "m7i.large": "0.04"}))),
}
EMPTY = {
    **{path: Answer(200, price_list(*NOISE)) for path in ROUTES if path.endswith(".csv")},
    INDEX: ROUTES[INDEX],
    "/spot.js": Answer(200, spot()),
}
OFFERS = 2 + 1 + 1
