"""A Hub on loopback that the real huggingface_hub client accepts.

Forms of requests and answers as in huggingface_hub 2.4 (hf_api.py, utils/_pagination.py, utils/_http.py): listing with
`expand`, `Link` pages, `X-Error-Code` for gated and missing, `resolve/<revision>/<file>`.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from servers.loopback import Answer, LoopbackServer, Request

PAGE = 1000
TOKEN = "hf_loopback"
_MODEL = re.compile(r"^/api/models/([^/]+/[^/]+)$")
_REVISION = re.compile(r"^/api/models/([^/]+/[^/]+)/revision/([^/]+)$")
_RANGE = re.compile(r"^bytes=(\d+)-(\d+)$")
_RESOLVE = re.compile(r"^/([^/]+/[^/]+)/resolve/([^/]+)/(.+)$")


@dataclass
class Repository:
    files: dict[str, bytes]
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def sha(self) -> str:
        return hashlib.sha1(repr(sorted(self.files.items())).encode()).hexdigest()


class HubServer(LoopbackServer):
    def __init__(self, repositories: dict[str, Repository] | None = None) -> None:
        super().__init__()
        self.repositories = repositories or {}

    def add(self, repo_id: str, *, config: Any = None, files: dict[str, bytes] | None = None, **fields: Any) -> None:
        every = dict(files or {})
        if config is not None:
            every["config.json"] = json.dumps(config).encode()
        self.repositories[repo_id] = Repository(every, {"pipeline_tag": "text-generation", "downloads": 1} | fields)

    def file_requests(self) -> list[str]:
        return [key for key, count in self.hits.items() for _ in range(count) if "/resolve/" in key]

    def answer(self, request: Request) -> Answer:
        if request.path == "/api/models":
            return self._list(request)
        if match := _MODEL.match(request.path):
            repository = self.repositories.get(match[1])
            return _json(_expand(self._record(match[1]), request)) if repository else _error(404, "RepoNotFound")
        if match := _REVISION.match(request.path):
            return self._at_revision(*match.groups())
        if match := _RESOLVE.match(request.path):
            return self._resolve(request, *match.groups())
        return _error(404, "EntryNotFound")

    def _record(self, repo_id: str) -> dict[str, Any]:
        repository = self.repositories[repo_id]
        siblings = [{"rfilename": name} for name in sorted(repository.files)]
        base = {
            "id": repo_id,
            "modelId": repo_id,
            "sha": repository.sha,
            "siblings": siblings,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "gated": False,
            "disabled": False,
            "createdAt": "2026-01-02T03:04:05.000Z",
            "lastModified": "2026-01-02T03:04:05.000Z",
        }
        return base | repository.fields

    def _list(self, request: Request) -> Answer:
        query = {name: values[0] for name, values in request.query.items()}
        records = [self._record(repo_id) for repo_id in self.repositories if _is_of(repo_id, query.get("author"))]
        if tag := query.get("pipeline_tag"):
            records = [record for record in records if record.get("pipeline_tag") == tag]
        if query.get("sort") == "downloads":
            records.sort(key=lambda record: (-record["downloads"], record["id"]))
        start, size = int(query.get("cursor", 0)), min(int(query.get("limit", PAGE)), PAGE)
        headers = {}
        if start + size < len(records):
            rest = "&".join(f"{n}={v}" for n, values in request.query.items() if n != "cursor" for v in values)
            headers["Link"] = f'<{self.url}/api/models?{rest}&cursor={start + size}>; rel="next"'
        return _json([_expand(record, request) for record in records[start : start + size]], headers)

    def _resolve(self, request: Request, repo_id: str, revision: str, name: str) -> Answer:
        repository = self.repositories.get(repo_id)
        if repository is None:
            return _error(404, "RepoNotFound")
        if revision not in ("main", repository.sha):
            return _error(404, "RevisionNotFound")
        if repository.fields.get("gated") and request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _error(401, "GatedRepo")
        if name not in repository.files:
            return _error(404, "EntryNotFound")
        body = repository.files[name]
        etag = hashlib.sha1(body).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": repository.sha}
        if found := _RANGE.match(request.headers.get("range", "")):
            start, end = int(found[1]), min(int(found[2]), len(body) - 1)
            if start > end:
                return Answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
            return Answer(206, body[start : end + 1], headers | {"Content-Range": f"bytes {start}-{end}/{len(body)}"})
        return Answer(200, body, headers)

    def _at_revision(self, repo_id: str, revision: str) -> Answer:
        """`blobs=true`: the files with their sizes."""
        repository = self.repositories.get(repo_id)
        if repository is None or revision != repository.sha:
            return _error(404, "RevisionNotFound" if repository else "RepoNotFound")
        files = [{"rfilename": name, "size": len(body)} for name, body in sorted(repository.files.items())]
        return _json(self._record(repo_id) | {"siblings": files})


def _is_of(repo_id: str, author: str | None) -> bool:
    return author is None or repo_id.startswith(f"{author}/")


def _expand(record: dict[str, Any], request: Request) -> dict[str, Any]:
    wanted = request.query.get("expand")
    return {k: v for k, v in record.items() if wanted is None or k in ("id", "modelId", *wanted)}


def _json(value: Any, headers: dict[str, str] | None = None) -> Answer:
    return Answer(200, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})


def _error(status: int, code: str) -> Answer:
    return Answer(status, b'{"error":"no"}', {"X-Error-Code": code, "X-Error-Message": code})
