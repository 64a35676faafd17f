"""What the tests of sources share: a moment, and what a source knows of its own last run."""

from datetime import UTC, datetime

from fitmart.flows.settings import Settings
from fitmart.flows.sources.contract import Landed, Since

SEEN_AT = datetime(2026, 11, 30, 6, tzinfo=UTC)


def past(payloads=()):
    """What a source knows of its own last run, as landing would tell it."""
    contents = {p.name: p.content for p in payloads}
    landed = {
        p.name: Landed(
            source_id="x", name=p.name, url=p.url, observed_at=SEEN_AT, payload_sha256="", size_bytes=len(p.content)
        )
        for p in payloads
    }
    at = SEEN_AT if payloads else None
    return Since(at=at, landed=landed, read=contents.get, settings=Settings())


def drain(payloads, into):
    """Collect what a generator yields before it fails."""
    for payload in payloads:
        into.append(payload)
