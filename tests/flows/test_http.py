import gzip
import json
import socket
import time
from datetime import UTC, datetime

import pytest
from servers.loopback import Answer, LoopbackServer

from fitmart.flows import reach
from fitmart.flows.errors import TerminalError, TransientError, UnreachableError
from fitmart.flows.http import Http, parse_retry_after
from fitmart.flows.landing import land
from fitmart.flows.memory import LandingMemory
from fitmart.flows.settings import SettingError, Settings
from fitmart.flows.sources.contract import Payload

BODY = b'{"rows": [1, 2, 3]}'
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def server():
    with LoopbackServer({"/data": Answer(200, BODY)}) as running:
        yield running


@pytest.fixture
def http():
    with Http(Settings(http_timeout_s=0.3, http_deadline_s=3, http_tries=3, http_max_wait_s=1)) as client:
        yield client


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("fitmart.flows.http.FIRST_WAIT_S", 0.01)


def test_get_gives_the_body_and_names_itself(server, http):
    assert http.get(f"{server.url}/data", expect="json") == BODY
    assert server.requests[0].headers["user-agent"].startswith("fitmart")


def test_a_compressed_answer_is_unpacked(server, http):
    server.routes["/z"] = Answer(200, gzip.compress(BODY), {"Content-Encoding": "gzip"})
    assert http.get(f"{server.url}/z") == BODY


def test_post_sends_json(server, http):
    server.routes["/ask"] = lambda request: Answer(200, request.body)
    assert json.loads(http.post(f"{server.url}/ask", body={"q": 1})) == {"q": 1}


PASSING = [
    Answer(429),
    Answer(429, headers={"Retry-After": "0"}),
    Answer(500),
    Answer(503, b"busy"),
    Answer(200, BODY, cut=5),
    Answer(200, BODY, {"Transfer-Encoding": "chunked"}),  # not chunked at all
    Answer(200, BODY, wait_s=0.5),
    Answer(200, b'{"rows": [1, 2'),
    Answer(200, b""),
    Answer(200, b"not gzip", {"Content-Encoding": "gzip"}),
]


@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_what_may_pass_is_asked_again(server, http, fault):
    server.faults["/data"] = [fault]
    assert http.get(f"{server.url}/data", expect="json") == BODY
    assert server.hits["GET /data"] == 2


@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_what_does_not_pass_is_a_transient_error_after_all_tries(server, http, fault):
    server.faults["/data"] = [fault] * 3
    with pytest.raises(TransientError):
        http.get(f"{server.url}/data", expect="json")
    assert server.hits["GET /data"] == 3


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(404), "/data: answered 404"),
        (Answer(401), "answered 401"),
        (Answer(200, b"<html>sign in</html>"), "not JSON, begins b'<html>"),
        (Answer(302, headers={"Location": "/data"}), "redirects"),
        (Answer(304), "304 to a request without conditions"),
    ],
)
def test_what_will_not_pass_is_asked_once(server, http, answer, message):
    server.routes["/data"] = answer
    with pytest.raises(TerminalError, match=message):
        http.get(f"{server.url}/data?key=SECRET", expect="json")
    assert server.hits["GET /data"] <= 6  # a redirect in circles is followed five times


def test_messages_never_hold_the_query(server, http):
    with pytest.raises(TerminalError) as error:
        http.get(f"{server.url}/none", params={"key": "SECRET"})
    assert "SECRET" not in str(error.value)


def test_a_page_instead_of_csv_is_refused(server, http):
    server.routes["/csv"] = Answer(200, b"\n <!DOCTYPE html>")
    with pytest.raises(TerminalError, match="not CSV"):
        http.get(f"{server.url}/csv", expect="csv")


def test_a_key_is_not_carried_to_another_place(server, http):
    server.routes["/moved"] = Answer(301, headers={"Location": f"{server.url}/data"})
    assert http.get(f"{server.url}/moved") == BODY
    with pytest.raises(TerminalError, match="not followed with a key"):
        http.get(f"{server.url}/moved", headers={"X-API-KEY": "k"})


def test_the_pause_that_a_server_asks_for_is_kept(server, http):
    server.faults["/data"] = [Answer(429, headers={"Retry-After": "0.4"})]
    start = time.monotonic()
    http.get(f"{server.url}/data")
    assert time.monotonic() - start >= 0.4


def test_a_pause_too_long_ends_the_source_at_once(server, http):
    server.faults["/data"] = [Answer(429, headers={"Retry-After": "3600"})]
    with pytest.raises(TransientError) as error:
        http.get(f"{server.url}/data")
    assert (error.value.retry_after_s, server.hits["GET /data"]) == (3600, 1)


def test_an_answer_beyond_the_cap_is_refused_while_it_comes(server, http):
    server.routes["/big"] = Answer(200, b"x" * 300_000)
    with pytest.raises(TerminalError, match="more than the 1,000 bytes"):
        http.get(f"{server.url}/big", max_bytes=1000)


def test_an_answer_that_drips_ends_at_the_deadline(server):
    server.routes["/slow"] = Answer(200, b"x" * 1000, drip_s=0.05)
    with (
        Http(Settings(http_timeout_s=1, http_deadline_s=0.3, http_tries=3)) as http,
        pytest.raises(TransientError, match="not finished after"),
    ):
        http.get(f"{server.url}/slow")
    assert server.hits["GET /slow"] == 1


def test_a_mirror_is_asked_in_the_place_of_a_host(server):
    with Http(Settings(mirrors=(("https://prices.example.org/", f"{server.url}/"),))) as http:
        assert http.get("https://prices.example.org/data") == BODY


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7), ("0", 0), ("-5", 0), ("Tue, 01 Dec 2026 12:00:30 GMT", 30), ("soon", None), ("", None), (None, None)],
)
def test_retry_after_is_read_in_seconds_or_as_a_date(text, seconds):
    assert parse_retry_after(text, NOW) == seconds


# ---- no network -----------------------------------------------------------------------------------------------------


def no_address(*_args, **_kwargs):
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_a_network_that_is_not_there_is_found_out_once(http, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *a, **k: asked.append(host) or no_address())
    start = time.monotonic()
    for host in ("a.example", "b.example", "a.example", "c.example", "d.example"):
        with pytest.raises(UnreachableError, match=host):
            http.get(f"https://{host}/x")
    assert asked == ["a.example", "b.example"]
    assert time.monotonic() - start < 1


def test_a_name_service_that_is_silent_costs_seconds_not_minutes(http, monkeypatch):
    monkeypatch.setattr(reach, "RESOLVE_S", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: time.sleep(2))
    start = time.monotonic()
    with pytest.raises(UnreachableError, match="no answer from the name service"):
        http.get("https://a.example/x")
    assert time.monotonic() - start < 1


def test_one_host_out_of_reach_while_others_answer_is_that_host_s_fault(server, http, monkeypatch):
    http.get(f"{server.url}/data")
    monkeypatch.setattr(socket, "getaddrinfo", no_address)
    with pytest.raises(TransientError, match=r"a\.example"):
        http.get("https://a.example/x")


def test_behind_a_proxy_names_are_left_to_it(http, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(socket, "getaddrinfo", no_address)
    http.reach.check("https://a.example/x")
    monkeypatch.setenv("NO_PROXY", "a.example,b.example")
    with pytest.raises(UnreachableError, match=r"b\.example"):
        http.reach.check("https://b.example/x")


def test_a_closed_port_is_transient(http):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(TransientError, match="no connection"):
            http.get(f"http://127.0.0.1:{held.getsockname()[1]}/")


# ---- conditional requests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "asked"),
    [({"ETag": '"v1"'}, "if-none-match"), ({"Last-Modified": "Tue, 01 Dec 2026 12:00:30 GMT"}, "if-modified-since")],
)
def test_an_unchanged_answer_comes_from_landing(server, http, tmp_path, given, asked):
    server.routes["/data"] = lambda r: Answer(304) if r.headers.get(asked) else Answer(200, BODY, given)
    url = f"{server.url}/data"

    def run() -> bytes:
        memory = LandingMemory(tmp_path, "acme")
        content = http.with_memory(memory).get(url)
        land(tmp_path, "acme", [Payload(name="data", content=content, url=url)], NOW)
        memory.save()
        return content

    assert (run(), run()) == (BODY, BODY)
    assert [asked in request.headers for request in server.requests] == [False, True]


def test_what_never_landed_is_asked_for_whole(server, http, tmp_path):
    server.routes["/data"] = lambda r: (
        Answer(304) if r.headers.get("if-none-match") else Answer(200, BODY, {"ETag": "1"})
    )
    for _ in range(2):
        memory = LandingMemory(tmp_path, "acme")
        assert http.with_memory(memory).get(f"{server.url}/data") == BODY
        memory.save()


# ---- settings -------------------------------------------------------------------------------------------------------


def test_settings_come_from_the_environment_and_the_command_line_wins(tmp_path):
    environ = {
        "FITMART_DATA_DIR": "/d",
        "FITMART_HUB_TOP": "0",
        "FITMART_HUB_WATCH": "Qwen, org/name",
        "FITMART_MIRRORS": "https://a.org/=http://b/a/,https://c=http://d",
        "HF_ENDPOINT": "http://hub/",
    }
    settings = Settings.from_environment(environ, data_dir=tmp_path, models_dir=None)
    assert (settings.data_dir, settings.hub_top, settings.hub_watch) == (tmp_path, 0, ("Qwen", "org/name"))
    assert settings.mirrors == (("https://a.org/", "http://b/a/"), ("https://c", "http://d"))
    assert settings.hub_endpoint == "http://hub"


@pytest.mark.parametrize(
    ("name", "text"),
    [("HUB_TOP", "many"), ("HUB_TOP", "-1"), ("HTTP_TRIES", "0"), ("HTTP_TIMEOUT_S", "nan"), ("MIRRORS", "https://a")],
)
def test_a_setting_that_is_wrong_is_named(name, text):
    with pytest.raises(SettingError, match=f"FITMART_{name} must be"):
        Settings.from_environment({f"FITMART_{name}": text})
