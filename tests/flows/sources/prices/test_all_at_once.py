"""All price APIs in one harvest, five of them failing in five ways: the others land, and each failure is named."""

from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module

import pytest
from servers.loopback import Answer, LoopbackServer
from servers.price_api import changed, mirrors

from fitmart.flows.errors import SourceError
from fitmart.flows.harvester import Harvester, plan_sources
from fitmart.flows.landing import read_newest
from fitmart.flows.offers import normalise
from fitmart.flows.settings import Settings
from fitmart.flows.sources import registry

MODULES = {
    m.SOURCE_ID: (m, import_module(f"servers.price_api_{m.__name__.rpartition('.')[2]}"))
    for m in registry.live("prices")
    if m.SOURCE_ID not in ("gpuhunt", "skypilot-catalog")
}
FAULTS = {
    "vultr": (Answer(429), "answered 429"),
    "oci": (Answer(500), "answered 500"),
    "runpod": (Answer(200, b'{"data": {"gpuTypes": [', cut=10), "broke off"),
    "ovhcloud": (Answer(200, wait_s=0.8), "nothing for 0.3 s"),
    "lium": (None, "price_per_gpu_hour"),  # the shape has changed
}


@pytest.fixture
def settings(monkeypatch, tmp_path):
    monkeypatch.setattr("fitmart.flows.http.FIRST_WAIT_S", 0.01)
    with ExitStack() as stack:
        leads = []
        for source_id, (module, api) in MODULES.items():
            server = stack.enter_context(LoopbackServer(dict(api.ROUTES)))
            if source_id in FAULTS and (fault := FAULTS[source_id][0]):
                server.faults[api.FIRST] = [fault] * 9
            elif source_id in FAULTS:
                server.routes = changed(
                    api.ROUTES, lambda row, gone=api.NEEDED: {k: v for k, v in row.items() if k != gone}
                )
            for name, value in api.CONSTANTS.items():
                monkeypatch.setattr(module, name, value)
            for name, value in api.KEYS.items():
                monkeypatch.setenv(name, value)
            leads += mirrors(api, server)
        yield replace(
            Settings(), data_dir=tmp_path, mirrors=tuple(leads), http_tries=2, http_timeout_s=0.3, http_max_wait_s=1
        )


def test_five_that_fail_are_named_and_the_others_prices_are_there(settings):
    harvester = Harvester(settings, plan_sources(list(MODULES)))
    for source_id in harvester.source_ids:
        try:
            harvester.run(source_id)
        except SourceError:
            assert source_id in FAULTS
    report = {run.source_id: run for run in harvester.report()}
    harvester.close()

    assert {source_id for source_id, run in report.items() if run.status == "failed"} == set(FAULTS)
    for source_id, (_, message) in FAULTS.items():
        assert message in report[source_id].reason
        assert read_newest(settings.landing_dir, source_id).payloads == []
    offers = []
    for source_id, (module, api) in MODULES.items():
        if source_id not in FAULTS:
            assert (report[source_id].status, report[source_id].reason) == ("ok", "")
            payloads = read_newest(settings.landing_dir, source_id).payloads
            read = [module.parse(p.content, p.landed.observed_at, p.landed.name).good for p in payloads]
            assert sum(map(len, read)) == api.OFFERS
            offers += [offer for part in read for offer in part]
    assert set(normalise(offers).offers["source_id"]) == set(MODULES) - set(FAULTS)
