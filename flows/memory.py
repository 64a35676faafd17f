"""What a source's servers said to recognise their answers by, so that the next run can ask "only if it changed".

A cache beside landing: `landing/<source_id>/validators.json`. Lost, it costs one full download.
"""

import json
from dataclasses import asdict
from pathlib import Path

from fitmart.flows.http import Validators
from fitmart.flows.landing import list_versions, read_one
from fitmart.flows.landing_files import hash_payload
from fitmart.flows.manifest import source_folder
from fitmart.warehouse.files import replacing


class LandingMemory:
    """The memory (flows/http.py) of one source. A body is recalled only if landing still holds it."""

    def __init__(self, landing_dir: Path, source_id: str) -> None:
        self._landing_dir = landing_dir
        self._path = source_folder(landing_dir, source_id) / "validators.json"
        self._landed = {landed.payload_sha256: landed for landed in list_versions(landing_dir, source_id)}
        self._known = _load(self._path)
        self._is_changed = False

    def recall(self, url: str) -> Validators | None:
        known = self._known.get(url)
        return known if known and known.payload_sha256 in self._landed else None

    def body(self, payload_sha256: str) -> bytes | None:
        landed = self._landed.get(payload_sha256)
        return read_one(self._landing_dir, landed) if landed else None

    def remember(self, url: str, etag: str | None, last_modified: str | None, content: bytes) -> None:
        if not (etag or last_modified):
            return
        new = Validators(etag, last_modified, hash_payload(content))
        self._is_changed |= self._known.get(url) != new
        self._known[url] = new

    def save(self) -> None:
        """Keep what is new for the next run."""
        if self._is_changed:
            text = json.dumps({url: asdict(v) for url, v in sorted(self._known.items())}, indent=0)
            with replacing(self._path) as temporary:
                temporary.write_text(text, encoding="utf-8")


def _load(path: Path) -> dict[str, Validators]:
    try:
        return {url: Validators(**fields) for url, fields in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
