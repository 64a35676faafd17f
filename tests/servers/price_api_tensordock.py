"""TensorDock's locations and their GPUs. Figures are made up."""

from servers.price_api import CANARY, said, with_key

DOCS = "https://dashboard.tensordock.com/api/docs/fetch-hostnodes"
HOSTS = ("https://dashboard.tensordock.com",)
FIRST = "/api/v2/locations"
CONSTANTS: dict[str, object] = {}
NEEDED = "price_per_hr"
KEYS = {"TENSORDOCK_API_KEY": CANARY}


def gpu(name="geforcertx4090-pcie-24gb", shown="NVIDIA GeForce RTX 4090 PCIe 24GB", price=0.37, **more):
    return {
        "v0Name": name,
        "displayName": shown,
        "max_count": 8,
        "price_per_hr": price,
        "resources": {"max_vcpus": 128, "max_ram_gb": 300, "max_storage_gb": 1000},
        "pricing": {"per_vcpu_hr": 0.003, "per_gb_ram_hr": 0.002, "per_gb_storage_hr": 0.00005},
        "network_features": {"dedicated_ip_available": True},
    } | more


def place(*gpus, **more):
    where = {"id": "loc-1", "city": "Austin", "stateprovince": "Texas", "country": "United States", "tier": 3}
    return where | {"gpus": list(gpus)} | more


PLACES = [place(gpu(), gpu("h100-sxm5-80gb", "H100 SXM5 80GB", 2.2)), place(id="loc-2", city="Paris")]

ROUTES = {FIRST: with_key("Authorization", f"Bearer {CANARY}", said({"data": {"locations": PLACES}}))}
EMPTY = {FIRST: said({"data": {"locations": []}})}
OFFERS = 2
