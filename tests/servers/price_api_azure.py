"""Azure Retail Prices: pages of items, `NextPageLink` with the port in it, a region a question. Figures are made up."""

from servers.loopback import Answer, Request
from servers.price_api import said

DOCS = "https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices"
HOSTS = ("https://prices.azure.com:443", "https://prices.azure.com")
FIRST = "/api/retail/prices"
CONSTANTS = {"REGIONS": ("eastus", "westeurope", "westindia")}
NEEDED = "retailPrice"
KEYS: dict[str, str] = {}


def item(size, price, meter="", **more):
    series = size.removeprefix("Standard_").replace("_", " ")
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": "eastus",
        "location": "US East",
        "effectiveStartDate": "2026-01-01T00:00:00Z",
        "meterId": "00000000-0000-0000-0000-000000000000",
        "meterName": f"{series}{meter}",
        "productId": "DZH318Z0",
        "skuId": "DZH318Z0/0001",
        "productName": f"Virtual Machines {series.split()[0]} Series",
        "skuName": f"{series}{meter}",
        "serviceName": "Virtual Machines",
        "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
    } | more


H100 = "Standard_ND96isr_H100_v5"
ITEMS = [
    item(H100, 98.32),
    item(H100, 32.1, " Spot"),
    item(H100, 19.66, " Low Priority"),
    item("Standard_NC24ads_A100_v4", 3.673),
]


def page(items, next_link=None):
    return {
        "BillingCurrency": "USD",
        "CustomerEntityId": "Default",
        "CustomerEntityType": "Retail",
        "Items": items,
        "NextPageLink": next_link,
        "Count": len(items),
    }


def _answer(request: Request) -> Answer:
    asked = request.query["$filter"][0]
    region = next((r for r in CONSTANTS["REGIONS"] if f"armRegionName eq '{r}'" in asked), None)
    if region in (None, "westindia"):  # a region without such machines
        return said(page([]))
    items = [one | {"armRegionName": region} for one in ITEMS]
    if "$skip" in request.query:
        return said(page(items[2:]))
    link = f"https://prices.azure.com:443{FIRST}?$filter={asked}&$skip=2"
    return said(page(items[:2], link))


ROUTES = {FIRST: _answer}
EMPTY = {FIRST: said(page([]))}
OFFERS = 2 * 3
