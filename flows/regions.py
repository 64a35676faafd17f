"""Which country a region is in: the provider's own codes first, then what any provider may write.

The patterns are data, warehouse/seeds/region.csv, tried in the order of the file on the lower-case name.
"""

import re
from functools import cache

import polars as pl

from fitmart.warehouse.snapshot import SEEDS, read_table

REGION_SCHEMA = pl.Schema(
    {
        "provider_id": pl.String,  # empty: any provider
        "pattern": pl.String,
        "country": pl.String,  # ISO 3166, or a group of the pattern
        "source_id": pl.String,
        "observed_on": pl.Date,
    }
)

# The 27 member states (european-union.europa.eu). Norway, Iceland, Switzerland and the United Kingdom are not in it.
_EU = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
EU = frozenset(_EU.split())
# ISO 3166-1: what two letters of a name may be, so that "na" or "dc" is not taken for a country.
_OTHERS = "AE AR AU BH BR CA CH CL CN CO GB HK ID IL IN IS JP KE KR KZ MX MY NO NZ PH QA RS SA SG TH TR TW UA US VN ZA"
COUNTRIES = EU | frozenset(_OTHERS.split())
NOWHERE = frozenset({"", "global", "default", "any", "all", "worldwide", "none", "unknown"})


def clean_region(region: str | None) -> str | None:
    """The region as it was written, None where it names no place (T52 of the field: "global", "default", empty)."""
    text = (region or "").strip().strip(",").strip()
    return None if text.lower() in NOWHERE else text


class Regions:
    """Looks countries up by the rules of region.csv."""

    def __init__(self, rules: pl.DataFrame) -> None:
        self._rules: dict[str, list[tuple[re.Pattern[str], str]]] = {}
        for provider, pattern, country in rules.select("provider_id", "pattern", "country").iter_rows():
            self._rules.setdefault(provider or "", []).append((re.compile(pattern), country))

    def country(self, provider_id: str, region: str | None) -> str | None:
        """ISO code of the region's country; None where its name does not say."""
        text = (region or "").strip().lower()
        for pattern, country in [*self._rules.get(provider_id, ()), *self._rules.get("", ())]:
            if found := pattern.search(text):
                code = found.expand(country).upper()
                code = "GB" if code == "UK" else code
                if code in COUNTRIES:
                    return code
        return None


@cache
def bundled_regions() -> Regions:
    """The rules that ship with fitmart."""
    return Regions(read_table(SEEDS / "region.csv", REGION_SCHEMA))
