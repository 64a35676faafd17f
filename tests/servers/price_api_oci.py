"""Oracle's price list and the shapes of its Cost Estimator. Figures are made up, part numbers too."""

from servers.price_api import said

DOCS = "https://docs.oracle.com/en-us/iaas/Content/Billing/Tasks/signingup_topic-Estimating_Costs.htm"
HOSTS = ("https://apexapps.oracle.com", "https://www.oracle.com")
FIRST = "/pls/apex/cetools/api/v1/products/"
SHAPES = "/a/ocom/docs/cloudestimator2/data/shapes.json"
CONSTANTS: dict[str, object] = {}
NEEDED = "metricName"
KEYS: dict[str, str] = {}


def part(number, metric, *values, model="PAY_AS_YOU_GO"):
    return {
        "partNumber": number,
        "displayName": f"OCI - {number}",
        "metricName": metric,
        "serviceCategory": "Compute - GPU",
        "currencyCodeLocalizations": [
            {"currencyCode": "USD", "prices": [{"model": model, "value": value} for value in values]}
        ],
    }


def shape(name, gpus, parts, **more):
    return {
        "name": name,
        "hidden": False,
        "status": "ACTIVE",
        "allowPreemptible": False,
        "bundleMemoryQty": None,
        "gpuQty": gpus,
        "gpuMemoryQty": None,
        "processorType": {"value": "intel"},
        "shapeType": {"value": name[:2].lower()},
        "subType": {"value": "gpu"},
        "products": [{"partNumber": n, "qty": qty, "type": {"value": kind}} for n, qty, kind in parts],
    } | more


PARTS = [
    part("B00001", "GPU Per Hour", 2),
    part("B00002", "GPU Per Hour", 10),
    part("B00003", "OCPU Per Hour", 0.025),
    part("B00004", "Gigabyte Per Hour", 0.0015),
]
A10 = shape("VM.GPU.A10.1", 1, [("B00001", 15, "ocpu")], gpuMemoryQty=24, bundleMemoryQty=240, allowPreemptible=True)
H100 = shape("BM.GPU.H100.8", 8, [("B00002", 112, "ocpu")], gpuMemoryQty=640, bundleMemoryQty=2048)
DENSE = shape("BM.DenseIO.E5.128", None, [("B00003", 128, "ocpu"), ("B00009", 81.6, "disk")], bundleMemoryQty=1536)

ROUTES = {SHAPES: said({"items": [A10, H100, DENSE]}), FIRST: said({"items": PARTS})}
EMPTY = {SHAPES: said({"items": [DENSE]}), FIRST: said({"items": PARTS})}
OFFERS = 3
