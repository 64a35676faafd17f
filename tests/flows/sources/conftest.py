"""The loopback server of prices, and a client that is led to it."""

from dataclasses import replace

import pytest
from servers.price_server import serve_prices

from fitmart.flows.http import Http
from fitmart.flows.settings import Settings


@pytest.fixture
def server():
    with serve_prices() as state:
        yield state


@pytest.fixture
def http(server):
    settings = replace(Settings(), mirrors=server.mirrors, http_tries=1, http_timeout_s=5.0)
    with Http(settings) as client:
        yield client
