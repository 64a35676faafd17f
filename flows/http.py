"""One HTTP client for all sources but the Hub: time-outs, a size cap, retries, conditional requests.

An answer is bytes or an error of fitmart.flows.errors. Messages name the host and path, never the query, which may hold
a key.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

import httpx

from fitmart.flows.errors import SourceError, TerminalError, TransientError, UnreachableError
from fitmart.flows.reach import CONNECT_S, Reach
from fitmart.flows.settings import Settings

__all__ = ["Http", "Memory", "SourceError", "TerminalError", "TransientError", "UnreachableError", "retrying"]

Expect = Literal["json", "csv", "any"]
T = TypeVar("T")
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
FIRST_WAIT_S = 0.5
MAX_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave to recognise an answer by (RFC 9110 section 8.8), and the hash of that answer."""

    etag: str | None
    last_modified: str | None
    payload_sha256: str


class Memory(Protocol):
    """Where the answers of earlier runs are remembered: landing, in a refresh (flows/memory.py)."""

    def recall(self, url: str) -> Validators | None: ...

    def body(self, payload_sha256: str) -> bytes | None: ...

    def remember(self, url: str, etag: str | None, last_modified: str | None, content: bytes) -> None: ...


def retrying(call: Callable[[], T], *, tries: int, max_wait_s: float, deadline_s: float = float("inf")) -> T:
    """`call`, again after each TransientError, with doubling pauses or the pause that the server asked for.

    Gives up, with the last error, after `tries`, where the server asks for more than `max_wait_s`, or where a pause
    would end later than `deadline_s` from the start.
    """
    start = time.monotonic()
    for attempt in range(1, tries + 1):
        try:
            return call()
        except TransientError as error:
            jitter = random.uniform(0.75, 1.25)
            wait_s = (
                error.retry_after_s if error.retry_after_s is not None else FIRST_WAIT_S * 2 ** (attempt - 1) * jitter
            )
            if attempt == tries or wait_s > max_wait_s or time.monotonic() - start + wait_s > deadline_s:
                raise
            time.sleep(wait_s)
    raise AssertionError("tries is at least 1")


class Http:
    """Ask by `get` and `post`. Safe in threads; close it, or use it as a context."""

    def __init__(self, settings: Settings, *, memory: Memory | None = None, parent: "Http | None" = None) -> None:
        self.settings = settings
        self.reach: Reach = parent.reach if parent else Reach()
        self._memory = memory
        self._memory_lock = threading.Lock()
        self._client: httpx.Client = parent._client if parent else _make_client(settings)

    def with_memory(self, memory: Memory) -> "Http":
        """The same connections, asking conditionally for what `memory` holds."""
        return Http(self.settings, memory=memory, parent=self)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> "Http":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        expect: Expect = "any",
        max_bytes: int | None = None,
    ) -> bytes:
        """The body of `url`. `expect` refuses what is not even in that format, such as an error page with status 200.

        `max_bytes` lifts or lowers the cap of FITMART_MAX_PAYLOAD_BYTES. An unchanged answer (304) comes from landing.
        """
        cap = max_bytes or self.settings.max_payload_bytes
        is_public = not params and not headers  # else the key of the memory might hold a secret

        def attempt() -> bytes:
            known = self._recall(url) if is_public else None
            asked = dict(headers or {}) | _conditions(known)
            status, answer_headers, body = self._exchange("GET", url, params, asked, None, cap, follow=not headers)
            if status == httpx.codes.NOT_MODIFIED:
                return self._remembered(url, known)
            _check_format(url, body, expect)
            if is_public and self._memory is not None:
                with self._memory_lock:
                    self._memory.remember(url, answer_headers.get("etag"), answer_headers.get("last-modified"), body)
            return body

        return self._retry(attempt)

    def post(
        self,
        url: str,
        *,
        body: Any,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        expect: Expect = "json",
        max_bytes: int | None = None,
    ) -> bytes:
        """The answer to `body`, sent as JSON. Only for questions: it is repeated like a GET."""
        cap = max_bytes or self.settings.max_payload_bytes

        def attempt() -> bytes:
            _, _, answer = self._exchange("POST", url, params, dict(headers or {}), body, cap, follow=False)
            _check_format(url, answer, expect)
            return answer

        return self._retry(attempt)

    def get_lines(self, url: str, *, keep: Callable[[bytes], bool], max_bytes: int) -> bytes:
        """Those lines of a large text that `keep` wants, as received; the rest is read and dropped.

        `max_bytes` caps what is read; what is kept is capped like any other answer.
        """

        def attempt() -> bytes:
            lines = _Lines(keep)
            _, _, kept = self._exchange("GET", url, None, {}, None, max_bytes, follow=True, lines=lines)
            return kept

        return self._retry(attempt)

    def _retry(self, attempt: Callable[[], bytes]) -> bytes:
        s = self.settings
        return retrying(attempt, tries=s.http_tries, max_wait_s=s.http_max_wait_s, deadline_s=s.http_deadline_s)

    def _recall(self, url: str) -> Validators | None:
        if self._memory is None:
            return None
        with self._memory_lock:
            return self._memory.recall(url)

    def _remembered(self, url: str, known: Validators | None) -> bytes:
        body = self._memory.body(known.payload_sha256) if self._memory and known else None
        if body is None:
            raise TerminalError(f"{_place(url)}: answered 304 to a request without conditions")
        return body

    def _exchange(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None,
        headers: dict[str, str],
        body: Any,
        cap: int,
        *,
        follow: bool,
        lines: "_Lines | None" = None,
    ) -> tuple[int, httpx.Headers, bytes]:
        """One request and its whole body (or the wanted `lines` of it), errors by type."""
        route, place = self.route(url), _place(url)
        self.reach.check(route)
        start = time.monotonic()
        try:
            with self._client.stream(
                method, route, params=params, headers=headers, json=body, follow_redirects=follow
            ) as response:
                self.reach.answered()
                _check_status(place, response)
                content, received = bytearray(), 0
                for chunk in response.iter_bytes():  # as it comes, so that a dripping answer is seen
                    received += len(chunk)
                    content += chunk if lines is None else lines.feed(chunk)
                    if received > cap or (lines and len(content) > self.settings.max_payload_bytes):
                        raise TerminalError(f"{place}: more than the {cap:,} bytes allowed for one answer")
                    if time.monotonic() - start > self.settings.http_deadline_s:
                        raise TransientError(f"{place}: not finished after {self.settings.http_deadline_s:g} s")
                content += b"" if lines is None else lines.end()
                return response.status_code, response.headers, bytes(content)
        except httpx.ConnectTimeout as error:
            raise self.reach.lost(route, f"no connection in {CONNECT_S:g} s") from error
        except httpx.ConnectError as error:
            raise self._connect_error(route, place, error) from error
        except httpx.TimeoutException as error:
            raise TransientError(f"{place}: nothing for {self.settings.http_timeout_s:g} s") from error
        except httpx.DecodingError as error:
            raise TransientError(f"{place}: the answer is damaged ({error})") from error
        except httpx.TransportError as error:
            raise TransientError(f"{place}: the answer broke off ({error})") from error
        except (httpx.TooManyRedirects, httpx.InvalidURL) as error:
            raise TerminalError(f"{place}: {error}") from error

    def route(self, url: str) -> str:
        """`url`, or the place of a mirror set in FITMART_MIRRORS."""
        for prefix, instead in self.settings.mirrors:
            if url.startswith(prefix):
                return instead + url[len(prefix) :]
        return url

    def _connect_error(self, route: str, place: str, error: httpx.ConnectError) -> Exception:
        text = str(error)
        if "CERTIFICATE" in text.upper() or "SSL" in text.upper():
            return TerminalError(f"{place}: no trusted connection ({text})")
        if any(word in text.lower() for word in ("unreachable", "no route", "name or service", "name resolution")):
            return self.reach.lost(route, text)
        return TransientError(f"{place}: no connection ({text})")


class _Lines:
    """Lines out of chunks that begin and end anywhere."""

    def __init__(self, keep: Callable[[bytes], bool]) -> None:
        self._keep = keep
        self._begun = b""

    def feed(self, chunk: bytes) -> bytes:
        *whole, self._begun = (self._begun + chunk).split(b"\n")
        return b"".join(line + b"\n" for line in whole if self._keep(line))

    def end(self) -> bytes:
        return self._begun if self._begun and self._keep(self._begun) else b""


def _make_client(settings: Settings) -> httpx.Client:
    return httpx.Client(
        timeout=httpx.Timeout(settings.http_timeout_s, connect=min(CONNECT_S, settings.http_timeout_s)),
        limits=httpx.Limits(max_connections=4 * settings.source_concurrency),
        headers={"User-Agent": user_agent()},
        max_redirects=MAX_REDIRECTS,
    )


def user_agent() -> str:
    """`fitmart/<version>`."""
    try:
        return f"fitmart/{version('fitmart')}"
    except PackageNotFoundError:  # a bare checkout
        return "fitmart"


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def _conditions(known: Validators | None) -> dict[str, str]:
    if known is None:
        return {}
    return ({"If-None-Match": known.etag} if known.etag else {}) | (
        {"If-Modified-Since": known.last_modified} if known.last_modified else {}
    )


def _check_status(place: str, response: httpx.Response) -> None:
    status = response.status_code
    if response.is_success or status == httpx.codes.NOT_MODIFIED:
        return
    if response.is_redirect:
        target = urlsplit(response.headers.get("location", "")).netloc or "another page"
        raise TerminalError(f"{place}: leads on to {target}, which is not followed with a key or a question")
    answer = f"{place}: answered {status} {response.reason_phrase}".rstrip()
    if status in TRANSIENT_STATUS:
        raise TransientError(answer, parse_retry_after(response.headers.get("retry-after"), datetime.now(UTC)))
    raise TerminalError(answer)


def parse_retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds to wait, from a Retry-After header in seconds or as a date; None where it is missing or unreadable."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (at - now).total_seconds()) if at.tzinfo else None


def _check_format(url: str, body: bytes, expect: Expect) -> None:
    place, start = _place(url), body[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        raise TransientError(f"{place}: the answer is empty")
    if expect == "json":
        try:
            json.loads(body)
        except ValueError as error:
            if start[:1] in b"{[":
                raise TransientError(f"{place}: broken JSON ({error})") from error
            raise TerminalError(f"{place}: not JSON, begins {start[:24]!r}") from error
    if expect == "csv" and start[:1] in b"<{[":
        raise TerminalError(f"{place}: not CSV, begins {start[:24]!r}")
