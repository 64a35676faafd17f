"""Lambda's instance types: a map by name, with a key. Figures are made up."""

from servers.price_api import CANARY, said, with_key

DOCS = "https://docs.lambda.ai/api/cloud"
HOSTS = ("https://cloud.lambda.ai",)
FIRST = "/api/v1/instance-types"
CONSTANTS: dict[str, object] = {}
NEEDED = "price_cents_per_hour"
KEYS = {"LAMBDA_API_KEY": CANARY}


def instance(name, gpus, cents, description, regions=()):
    return {
        "instance_type": {
            "name": name,
            "description": f"{gpus}x {description}",
            "gpu_description": description,
            "price_cents_per_hour": cents,
            "specs": {"vcpus": 26, "memory_gib": 225, "storage_gib": 2816, "gpus": gpus},
        },
        "regions_with_capacity_available": [{"name": region, "description": "somewhere"} for region in regions],
    }


TYPES = {
    "gpu_1x_h100_sxm5": instance("gpu_1x_h100_sxm5", 1, 329, "H100 (80 GB SXM5)", ("us-west-3", "europe-central-1")),
    "gpu_8x_a100": instance("gpu_8x_a100", 8, 1032, "A100 (40 GB SXM4)"),
    "cpu_4x_general": instance("cpu_4x_general", 0, 8, "N/A"),
}

ROUTES = {FIRST: with_key("Authorization", f"Bearer {CANARY}", said({"data": TYPES}))}
EMPTY = {FIRST: said({"data": {}})}
OFFERS = 3
