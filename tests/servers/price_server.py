"""Price lists over real HTTP on loopback, in the shape that each publisher documents. All figures are made up.

Shapes: gpuhunt "published catalogs v3" (version file, zip with one CSV), SkyPilot "catalog CSV" (vms.csv a cloud),
OpenRouter "list models", LiteLLM "model_prices_and_context_window.json", genai-prices "prices/new_data/v2/data.json".
"""

import contextlib
import csv
import hashlib
import io
import json
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GPUHUNT = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com"
RAW_GITHUB = "https://raw.githubusercontent.com"
OPENROUTER = "https://openrouter.ai"
SKYPILOT_V8 = "/skypilot-org/skypilot-catalog/master/catalogs/v8"
LITELLM = "/BerriAI/litellm/main/model_prices_and_context_window.json"
GENAI_PRICES = "/pydantic/genai-prices/refs/heads/main/prices/new_data/v2/data.json"

GPUHUNT_COLUMNS = (
    *("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot"),
    *("disk_size", "gpu_vendor", "flags", "cpu_arch", "provider_data"),
)


@dataclass
class PriceServer:
    """What is asked for is served from `files` by path; `faults` answer first: a status, or bytes sent as they are."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, int | bytes] = field(default_factory=dict)
    hits: Counter[str] = field(default_factory=Counter)
    base: str = ""

    @property
    def mirrors(self) -> tuple[tuple[str, str], ...]:
        """For Settings.mirrors: the publishers' hosts lead here."""
        return ((GPUHUNT, f"{self.base}/gpuhunt"), (RAW_GITHUB, f"{self.base}/raw"), (OPENROUTER, f"{self.base}/or"))

    def put_gpuhunt(self, provider: str, version: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.files[f"/gpuhunt/v3/{provider}/version"] = f"{version}\n".encode()
        self.files[f"/gpuhunt/v3/{provider}/{version}/catalog.zip"] = gpuhunt_zip(provider, rows)

    def put_skypilot(self, cloud: str, text: str) -> None:
        self.files[f"/raw{SKYPILOT_V8}/{cloud}/vms.csv"] = text.encode()

    def put_json(self, path: str, value: Any) -> None:
        self.files[path] = json.dumps(value).encode()


def gpuhunt_zip(provider: str, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A catalog.zip: `{provider}.csv` with the published columns; a missing cell is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, GPUHUNT_COLUMNS, restval="")
    writer.writeheader()
    writer.writerows(rows)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(f"{provider}.csv"), text.getvalue())
    return packed.getvalue()


@contextlib.contextmanager
def serve_prices() -> Iterator[PriceServer]:
    """A running server; stopped and joined at the end."""
    state = PriceServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            state.hits[path] += 1
            fault = state.faults.get(path)
            if isinstance(fault, int):
                self._answer(fault, b"fault")
            elif fault is not None:
                self._answer(200, fault)
            elif path not in state.files:
                self._answer(404, b"404: Not Found")
            else:
                body = state.files[path]
                etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
                if self.headers.get("If-None-Match") == etag:
                    self._answer(304, b"", etag)
                else:
                    self._answer(200, body, etag)

        def _answer(self, status: int, body: bytes, etag: str = "") -> None:
            self.send_response(status)
            if etag:
                self.send_header("ETag", etag)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
