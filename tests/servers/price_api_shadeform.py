"""Shadeform's types of instances of other clouds. Figures are made up."""

from servers.price_api import CANARY, said, with_key

DOCS = "https://docs.shadeform.ai/api-reference/instances/instances-types"
HOSTS = ("https://api.shadeform.ai",)
FIRST = "/v1/instances/types"
CONSTANTS: dict[str, object] = {}
NEEDED = "hourly_price"
KEYS = {"SHADEFORM_API_KEY": CANARY}


def kind(cloud="hyperstack", name="n3-H100-SXM5x8", gpu="H100_sxm5", gpus=8, cents=1920, **more):
    return {
        "cloud": cloud,
        "shade_instance_type": f"{gpu}x{gpus}",
        "cloud_instance_type": name,
        "configuration": {
            "memory_in_gb": 1800,
            "storage_in_gb": 500,
            "vcpus": 192,
            "num_gpus": gpus,
            "gpu_type": gpu,
            "interconnect": "sxm5",
            "vram_per_gpu_in_gb": 80,
            "gpu_manufacturer": "nvidia",
            "nvlink": True,
            "os_options": [],
        },
        "hourly_price": cents,
        "deployment_type": "vm",
        "availability": [
            {"region": "montreal-canada-2", "available": True, "display_name": "Canada"},
            {"region": "oslo-norway-1", "available": False, "display_name": "Norway"},
        ],
    } | more


TYPES = [kind(), kind("lambda", "gpu_1x_h100_sxm5", gpus=1, cents=329, availability=[])]

ROUTES = {FIRST: with_key("X-API-KEY", CANARY, said({"instance_types": TYPES}))}
EMPTY = {FIRST: said({"instance_types": []})}
OFFERS = 3
