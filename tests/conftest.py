"""Let `pytest` run from a bare checkout, and keep it off the network."""

import importlib
import socket
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

try:
    importlib.import_module("fitmart.estimator")
except ModuleNotFoundError:
    sys.modules["fitmart"] = types.ModuleType("fitmart")
    sys.modules["fitmart"].__path__ = [str(ROOT)]

LOOPBACK = ("127.", "localhost", "::1", "0.0.0.0")


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch):
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOOPBACK):
            raise OSError(f"tests may only reach loopback, not {address[0]}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
