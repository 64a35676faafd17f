"""A real HTTP server on loopback that can fail in the ways servers fail."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0  # before the first byte
    cut: int | None = None  # so many bytes of the body, then the connection breaks
    drip_s: float = 0.0  # between bytes of the body


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Clients that break off are part of the game."""


class LoopbackServer:
    """`routes` answer for paths; `faults[path]` are given first, one a request; `hits` counts "METHOD path"."""

    def __init__(self, routes: dict[str, Answer | Callable[[Request], Answer]] | None = None) -> None:
        self.routes = routes or {}
        self.faults: dict[str, list[Answer]] = {}
        self.hits: Counter[str] = Counter()
        self.requests: list[Request] = []
        self.busy, self.busiest = 0, 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def do_GET(self):
                outer._serve(self)

            do_POST = do_HEAD = do_GET  # noqa: N815

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: Request) -> Answer:
        route = self.routes.get(request.path, Answer(404, b"not here"))
        return route(request) if callable(route) else route

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = Request(handler.command, parts.path, parse_qs(parts.query), headers, body)
        with self._lock:
            self.hits[f"{request.method} {request.path}"] += 1
            self.requests.append(request)
            self.busy += 1
            self.busiest = max(self.busiest, self.busy)
            queue = self.faults.get(request.path) or self.faults.get("*")
            fault = queue.pop(0) if queue else None
        try:
            self._send(handler, request, fault or self.answer(request))
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True
        finally:
            with self._lock:
                self.busy -= 1

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, request: Request, answer: Answer) -> None:
        time.sleep(answer.wait_s)
        handler.send_response(answer.status)
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if request.method == "HEAD":
            return
        body = answer.body if answer.cut is None else answer.body[: answer.cut]
        for i in range(len(body)) if answer.drip_s else ():
            handler.wfile.write(body[i : i + 1])
            time.sleep(answer.drip_s)
        if not answer.drip_s:
            handler.wfile.write(body)
        if answer.cut is not None:
            handler.close_connection = True
