"""Every source in the folders, whatever it is: the contract of flows/sources/contract.py."""

import inspect

import pytest

from fitmart.flows.sources import registry
from fitmart.warehouse.snapshot import read_seed

LIVE = [m for kind in ("prices", "tokens") for m in registry.live(kind)]
ALL = [m for kind in ("prices", "tokens") for m in registry.modules(kind)]


def test_the_first_sources_are_found():
    assert {m.SOURCE_ID for m in ALL} >= {
        *("gpuhunt", "skypilot-catalog", "bundled-offers"),
        *("openrouter", "litellm", "genai-prices", "bundled-token-prices"),
    }


@pytest.mark.parametrize("module", ALL, ids=lambda m: m.__name__.rpartition(".")[2])
def test_a_source_says_who_it_is(module):
    assert module.NAME
    assert module.__doc__
    assert module.SOURCE_ID.lower() == module.SOURCE_ID
    assert module.MAX_AGE_HOURS > 0
    assert module.SOURCE_ID in set(read_seed("source")["source_id"])
    assert [m.SOURCE_ID for m in ALL].count(module.SOURCE_ID) == 1


@pytest.mark.parametrize("module", LIVE, ids=lambda m: m.__name__.rpartition(".")[2])
def test_a_live_source_fetches_and_parses(module):
    assert module.NEEDS is None or module.NEEDS.isupper()
    assert list(inspect.signature(module.fetch).parameters) == ["http", "since"]
    assert list(inspect.signature(module.parse).parameters) == ["content", "seen_at", "name"]
