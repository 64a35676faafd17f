"""The wanted lines of a large text, over real HTTP on loopback."""

import pytest
from servers.loopback import Answer, LoopbackServer

from fitmart.flows.errors import TerminalError, TransientError
from fitmart.flows.http import Http
from fitmart.flows.settings import Settings

TEXT = b"".join(b"%d,%s\n" % (n, b"gpu" if n % 1000 == 0 else b"cpu") for n in range(1, 100_001))


@pytest.fixture
def server():
    with LoopbackServer({"/list.csv": Answer(200, TEXT), "/tail.csv": Answer(200, b"a\ngpu,1\nb\ngpu,2")}) as running:
        yield running


def lines(server, path="/list.csv", *, max_bytes=10**7, **settings):
    with Http(Settings(http_tries=1, **settings)) as http:
        return http.get_lines(f"{server.url}{path}", keep=lambda line: b"gpu" in line, max_bytes=max_bytes)


def test_lines_are_kept_whole_wherever_the_chunks_end(server):
    want = b"".join(line + b"\n" for line in TEXT.split(b"\n") if b"gpu" in line)
    assert lines(server) == want
    assert lines(server, "/tail.csv") == b"gpu,1\ngpu,2"


def test_what_is_read_and_what_is_kept_are_capped(server):
    with pytest.raises(TerminalError, match="more than the 100,000 bytes"):
        lines(server, max_bytes=10**5)
    with pytest.raises(TerminalError, match="more than"):
        lines(server, max_payload_bytes=500)


def test_a_text_that_breaks_off_is_no_shorter_text(server):
    server.routes["/list.csv"] = Answer(200, TEXT, cut=50_000)
    with pytest.raises(TransientError, match="broke off"):
        lines(server)
