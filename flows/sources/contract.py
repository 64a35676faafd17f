"""What a source is: the records that sources, landing and harvest share.

A network source is a module of `flows/sources/{models,prices,tokens}` with

    NAME            words for people, "SkyPilot catalog"
    SOURCE_ID       key of the `source` table
    MAX_AGE_HOURS   older than this, its rows are stale
    NEEDS           name of the environment variable that holds its key, or None
    fetch(http, since) -> Iterable[Payload]
    parse(content, seen_at, name) -> records

`fetch` asks and interprets nothing; what it returns is landed as received. A generator is landed in batches as it goes,
so that a killed run goes on where it stopped; a list is landed whole or not at all. Failures are the errors of
flows/errors.py, of which only TransientError is retried. `parse` is pure and runs at build; the payload's name is for
sources whose files do not say what they are. Neither a name nor a URL may hold a key: both are kept.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from fitmart.estimator.architectures.headers_records import Header
    from fitmart.flows.http import Http
    from fitmart.flows.settings import Settings

RunStatus = Literal["ok", "unchanged", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One document as a source gave it. `name` is unique within the source and stable from run to run."""

    name: str
    content: bytes
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A payload in landing, without its content. `observed_at` (UTC): when this content was first seen."""

    source_id: str
    name: str
    url: str
    observed_at: datetime
    payload_sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedPayload:
    """A payload in landing, with its content."""

    landed: Landed
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """What a source may know of its own past: when it last answered, and its newest version of every name."""

    at: datetime | None
    landed: Mapping[str, Landed]
    read: Callable[[str], bytes | None]  # name -> newest content
    settings: "Settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRun:
    """One row of `source_run`. `payloads` were received (`bytes` in all), `added` of them were new."""

    source_id: str
    started_at: datetime
    ended_at: datetime
    status: RunStatus
    payloads: int = 0
    added: int = 0
    bytes: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """What a parser could not use: never dropped, never in a mart. `reason` is one line for people."""

    source_id: str
    raw_text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """One model as a source describes it: its config, as stored, and what is known about the repository."""

    model_id: str
    source_id: str
    observed_at: datetime
    revision: str | None
    config: dict[str, Any]
    quant_config: dict[str, Any] | None = None
    generation_config: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)  # license, tags, base_model, downloads, likes, gated, …
    headers: tuple["Header", ...] = ()  # of its weight files, where they were read


class Source(Protocol):
    """A module that fetches from the network."""

    NAME: str
    SOURCE_ID: str
    MAX_AGE_HOURS: int
    NEEDS: str | None

    def fetch(self, http: "Http", since: Since) -> Iterable[Payload]: ...


class LocalSource(Protocol):
    """A module that reads from this machine: nothing is landed, the build reads it again."""

    NAME: str
    SOURCE_ID: str
    MAX_AGE_HOURS: int

    def survey(self, settings: "Settings") -> tuple[int, list[Rejected]]:
        """How many records there are, and what could not be read."""
        ...
