"""Asking price APIs: keys, pages, places to walk, and the refusal of answers that hold no offer.

An answer without offers is a failure that is named, never a provider that sells nothing any more: what landed last
stays in use.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fitmart.flows.errors import SourceError, TerminalError, UnreachableError
from fitmart.flows.records import Offer, Sifted
from fitmart.flows.sources.contract import Payload

if TYPE_CHECKING:
    from fitmart.flows.http import Http

Parse = Callable[[bytes, datetime, str], Sifted[Offer]]

MAX_PAGES = 200  # of one list: more is a server that leads in circles
WORKERS = 4  # requests of one source at a time


def key(variable: str) -> str:
    """The secret in environment variable `variable`. It goes into headers or bodies, never into a URL or a message."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise TerminalError(f"needs {variable}")
    return value


def optional_key(variable: str, header: str, form: str = "{}") -> dict[str, str]:
    """The header for an API that answers without a key too: empty where `variable` is not set."""
    value = os.environ.get(variable, "").strip()
    return {header: form.format(value)} if value else {}


def get_pages(
    http: "Http",
    url: str,
    *,
    next_url: Callable[[Any, int], str | None],
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """The page at `url` and all that follow it, as one payload (`join`).

    `next_url(page, pages so far)` says where the next one is. A way to another host, where no key should go, or to a
    page that was read already is an error.
    """
    pages: list[bytes] = []
    seen: set[str] = set()
    place: str | None = url
    while place:
        if place in seen or len(pages) == MAX_PAGES:
            raise TerminalError(f"{_host(url)}: its pages lead in circles")
        if _host(place) != _host(url):
            raise TerminalError(f"{_host(url)}: its next page is at {_host(place)}")
        seen.add(place)
        pages.append(http.get(place, headers=headers, expect="json"))
        try:
            place = next_url(json.loads(pages[-1]), len(pages))
        except (KeyError, TypeError, AttributeError) as error:
            raise TerminalError(f"{_host(url)}: a page of another shape ({type(error).__name__}: {error})") from error
    return join(pages)


def join(documents: Sequence[bytes]) -> bytes:
    """Several JSON documents as a JSON list of them, each as received; one alone stays as it is."""
    return documents[0] if len(documents) == 1 else b"[" + b",\n".join(documents) + b"]"


def with_offers(payload: Payload, parse: Parse) -> Payload:
    """`payload`, if its own parser finds an offer in it; else TerminalError with the first reason."""
    if has_offers(payload, parse):
        return payload
    raise TerminalError(f"{payload.name}: the answer holds no offer")


def has_offers(payload: Payload, parse: Parse) -> bool:
    """Whether there is an offer in `payload`. TerminalError if all that is in it is refused."""
    good, rejected = parse(payload.content, datetime.now(UTC), payload.name)
    if not good and rejected:
        reason = rejected[0].reason
        raise TerminalError(f"{payload.name}: no offer in the answer, {len(rejected)} refused: {reason}")
    return bool(good)


def walk(places: Sequence[str], ask: Callable[[str], Payload], parse: Parse, *, what: str) -> Iterator[Payload]:
    """One payload a place, of places that may well hold nothing. Those that fail hold back no other, and are named.

    A place without an offer lands nothing; TerminalError if none has one.
    """
    failures: list[str] = []
    refused = ""
    found = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        futures = {place: pool.submit(ask, place) for place in places}
        try:
            for place, future in futures.items():
                try:
                    payload = future.result()
                except UnreachableError:
                    raise
                except SourceError as error:
                    failures.append(f"{place}: {error}")
                    continue
                good, rejected = parse(payload.content, datetime.now(UTC), payload.name)
                if good:
                    found += 1
                    yield payload
                elif rejected:
                    refused = f", {rejected[0].reason}"
        finally:
            for future in futures.values():
                future.cancel()
    if failures:
        raise TerminalError(f"{len(failures)} of {len(places)} {what} failed: {'; '.join(failures)}")
    if not found:
        raise TerminalError(f"no offer in any of {len(places)} {what}{refused}")


def _host(url: str) -> str:
    """The host of a URL; a port that goes without saying is not said."""
    parts = urlsplit(url)
    return parts.netloc.lower().removesuffix({"https": ":443", "http": ":80"}.get(parts.scheme, ":443"))
