"""Models of the Hugging Face Hub: the watched repositories and the most downloaded, their configs by revision.

Landed: `listing`, the figures of all followed repositories that change daily (downloads, likes, gate, revision); and
one document a repository, written again only when its revision changes:
{"repo_id", "sha", "metadata": {…}, "files": {"config.json": text, …}, "missing": {"config.json": why}}, and "headers",
as flows/headers.py describes them, for the repositories whose weight files are to be looked at (FITMART_HUB_HEADERS).
"""

import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fitmart.estimator.architectures.headers_gguf_config import gguf_config
from fitmart.estimator.architectures.headers_records import HeaderError
from fitmart.flows.errors import SourceError, TerminalError, TransientError
from fitmart.flows.headers import fetch_headers, landed_headers
from fitmart.flows.http import Http
from fitmart.flows.settings import Settings
from fitmart.flows.sources.contract import ModelRecord, Payload, Rejected, Since
from fitmart.flows.sources.models import bundled
from fitmart.flows.sources.models.reading import cut, read_object

if TYPE_CHECKING:  # the Hub client takes a second to import; a build only parses
    from huggingface_hub import ModelInfo

    from fitmart.flows.hub_client import HubClient

NAME = "Hugging Face Hub"
SOURCE_ID = "huggingface"
MAX_AGE_HOURS = 72
NEEDS = None
TOKEN = "HF_TOKEN"  # optional: opens gated repositories

LISTING = "listing"
TASKS = ("text-generation", "image-text-to-text")
# Beside config.json: ModelOpt's, AutoGPTQ's and AutoAWQ's side files, and the defaults of sampling.
FILES = ("config.json", "hf_quant_config.json", "quantize_config.json", "quant_config.json", "generation_config.json")
EXPAND = [
    "sha",
    "downloads",
    "likes",
    "gated",
    "disabled",
    "tags",
    "pipeline_tag",
    "library_name",
    "createdAt",
    "lastModified",
    "safetensors",
    "gguf",
    "siblings",
]
BATCH = 64  # repositories asked for before the first of them are handed on
AUTHOR_LIMIT = 1000  # repositories listed of a watched author
FEW = 4  # so many missing of one author are asked for singly, more by a listing
GATED_MARK = "#gated"  # on the URL of a document without files: asked again once there is a token
HEADERS_MARK = "#headers"  # on the URL of a document whose headers were asked for


def fetch(http: Http, since: Since) -> Iterator[Payload]:
    """The listing, then the documents of the repositories whose revision has not landed yet, as they come."""
    from fitmart.flows.hub_client import HubClient

    settings, token = since.settings, os.environ.get(TOKEN) or None
    http.reach.probe(settings.hub_endpoint)
    client = HubClient(settings, http.reach, token=token)
    try:
        watch = {*settings.hub_watch, *bundled.list_repositories()}
        models = _list(client, settings.hub_top, watch, settings.hub_concurrency)
        landed = {name: payload.url for name, payload in since.landed.items()}
        wanted = {name for name in models if _wants_headers(name, settings)}
        changed = [
            m
            for m in models.values()
            if not _is_landed(landed.get(m.id), m, has_token=token is not None, wants_headers=m.id in wanted)
        ]
        yield _listing(client.endpoint, models)
        yield from _documents(client, changed, settings.hub_concurrency, wanted)
    finally:
        client.close()


def _list(client: "HubClient", top: int, watch: set[str], concurrency: int) -> "dict[str, ModelInfo]":
    """repo id -> listing entry of everything followed that has a revision."""
    found: dict[str, ModelInfo] = {}

    def add(models: "Iterable[ModelInfo]", only: set[str] | None = None) -> None:
        found.update({m.id: m for m in models if m.sha and not m.disabled and (only is None or m.id in only)})

    for task in TASKS if top else ():
        add(client.list_models(expand=EXPAND, pipeline_tag=task, sort="downloads", limit=top))
    by_author: dict[str, set[str]] = {}
    for repo_id in watch:
        by_author.setdefault(repo_id.partition("/")[0], set()).add(repo_id)
    for author, wanted in sorted(by_author.items()):
        is_whole = author in wanted
        missing = wanted - found.keys() - {author}
        if is_whole or len(missing) > FEW:
            query = client.list_models(expand=EXPAND, author=author, sort="downloads", limit=AUTHOR_LIMIT)
            add(query, None if is_whole else missing)
    single = sorted(repo_id for repo_id in watch - found.keys() if "/" in repo_id)
    with ThreadPoolExecutor(concurrency, thread_name_prefix="hub") as pool:
        add(model for model in pool.map(lambda repo_id: _one(client, repo_id), single) if model)
    return found


def _one(client: "HubClient", repo_id: str) -> "ModelInfo | None":
    from fitmart.flows.hub_client import GatedError, GoneError

    try:
        return client.model_info(repo_id, expand=EXPAND)
    except (GatedError, GoneError):  # renamed or withdrawn since it was put on the list: what has landed stays
        return None


def _wants_headers(repo_id: str, settings: Settings) -> bool:
    """Whether the setting covers the repository: all, the watched ones (or their authors'), none."""
    if settings.hub_headers == "watch":
        return not {repo_id, repo_id.partition("/")[0]}.isdisjoint(settings.hub_watch)
    return settings.hub_headers == "all"


def _is_landed(url: str | None, model: "ModelInfo", *, has_token: bool, wants_headers: bool = False) -> bool:
    if url is None or f"/tree/{model.sha}" not in url:
        return False
    if wants_headers and not url.endswith((HEADERS_MARK, GATED_MARK)):
        return False
    return not (has_token and url.endswith(GATED_MARK))


def _documents(
    client: "HubClient", models: "list[ModelInfo]", concurrency: int, with_headers: set[str]
) -> Iterator[Payload]:
    """A document for each of `models`. One that fails is left for the next run; the failure is raised at the end."""
    failures: list[SourceError] = []

    def read(model: "ModelInfo") -> Payload | SourceError:
        try:
            return _document(client, model, has_headers=model.id in with_headers)
        except SourceError as error:
            return error

    with ThreadPoolExecutor(concurrency, thread_name_prefix="hub") as pool:
        for start in range(0, len(models), BATCH):
            answers = list(pool.map(read, models[start : start + BATCH]))
            yield from (answer for answer in answers if isinstance(answer, Payload))
            failures += [answer for answer in answers if not isinstance(answer, Payload)]
            if len(failures) >= BATCH:
                break
    if failures:
        first = next((f for f in failures if isinstance(f, TransientError)), failures[0])
        raise type(first)(f"{len(failures)} of {len(models)} changed repositories could not be read; {first}")


def _document(client: "HubClient", model: "ModelInfo", *, has_headers: bool) -> Payload:
    from fitmart.flows.hub_client import GatedError, GoneError

    names = {s.rfilename for s in model.siblings or ()}
    files, missing = {}, {}
    for name in FILES:
        if name not in names:
            continue
        try:
            files[name] = client.read_file(model.id, model.sha or "", name)
        except GatedError as error:
            missing[name] = str(error)
            break
        except GoneError as error:
            missing[name] = str(error)
    document = {
        "repo_id": model.id,
        "sha": model.sha,
        "metadata": _figures(model) | _metadata(model, sorted(names)),
        "files": files,
        "missing": missing,
    }
    url = f"{client.endpoint}/{model.id}/tree/{model.sha}"
    if missing and not files:
        url += GATED_MARK
    elif has_headers:
        document["headers"] = _headers(client, model, names)
        url += HEADERS_MARK
    return Payload(name=model.id, content=_to_bytes(document), url=url)


def _headers(client: "HubClient", model: "ModelInfo", names: set[str]) -> dict[str, Any] | None:
    """What to land of the weight files' headers; broken ones as the reason why there are none."""
    try:
        return fetch_headers(client, model.id, model.sha or "", names)
    except (HeaderError, TerminalError) as error:
        return {"missing": str(error)}


def _listing(endpoint: str, models: "dict[str, ModelInfo]") -> Payload:
    figures = {repo_id: {"sha": model.sha} | _figures(model) for repo_id, model in sorted(models.items())}
    return Payload(name=LISTING, content=_to_bytes(figures), url=f"{endpoint}/api/models")


def _figures(model: "ModelInfo") -> dict[str, Any]:
    """What may change without a new revision."""
    return {"downloads": model.downloads, "likes": model.likes, "gated": model.gated}


def _metadata(model: "ModelInfo", names: list[str]) -> dict[str, Any]:
    gguf = {
        key: value for key, value in (model.gguf or {}).items() if key in ("total", "architecture", "context_length")
    }
    return {
        "task": model.pipeline_tag,
        "library_name": model.library_name,
        "tags": sorted(model.tags or ()),
        "created_at": model.created_at.isoformat() if model.created_at else None,
        "last_modified": model.last_modified.isoformat() if model.last_modified else None,
        "safetensors": model.safetensors
        and {"parameters": model.safetensors.parameters, "total": model.safetensors.total},
        "gguf": gguf or None,
        "siblings": names,
    }


def _to_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=0).encode()


# ---- at build -------------------------------------------------------------------------------------------------------


def parse(content: bytes, seen_at: datetime, name: str = "") -> ModelRecord | Rejected:
    """One landed document -> the model, or why it cannot be used (gated, no config.json, broken JSON)."""
    try:
        document = json.loads(content)
        repo_id, files = document["repo_id"], document["files"]
        metadata = dict(document["metadata"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Rejected(
            source_id=SOURCE_ID, raw_text=cut(content.decode(errors="replace")), reason=f"{name}: {error!r}"
        )
    landed = document.get("headers") or {}
    try:
        headers = landed_headers(landed, repo_id)
        own = gguf_config(repo_id, headers) if headers and "config.json" not in files else None
    except (HeaderError, KeyError, TypeError, ValueError):  # `fetch_headers` has read them: only a newer reader may not
        headers, own = (), None
    if own is None and "config.json" not in files:
        why = next(iter(document.get("missing", {}).values()), f"{repo_id}: no config.json in the repository")
        return Rejected(source_id=SOURCE_ID, raw_text=repo_id, reason=why)
    parsed: dict[str, dict[str, Any]] = {}
    for file, text in files.items():
        try:
            parsed[file] = read_object(text)
        except ValueError as error:
            if file != "generation_config.json":  # without its quantization a model would be taken for another
                return Rejected(source_id=SOURCE_ID, raw_text=cut(text), reason=f"{repo_id}/{file}: {error}")
    return ModelRecord(
        model_id=repo_id,
        source_id=SOURCE_ID,
        observed_at=seen_at,
        revision=document.get("sha"),
        config=own or _with_side_files(parsed),
        quant_config=parsed.get("hf_quant_config.json"),
        generation_config=parsed.get("generation_config.json"),
        metadata=describe(metadata) | _sizes(landed),
        headers=headers,
    )


def _sizes(landed: dict[str, Any]) -> dict[str, Any]:
    """What a document's `headers` tell of bytes where they hold no header."""
    names = {"sizes": "gguf_files", "total_size": "stored_bytes"}
    return {name: landed[key] for key, name in names.items() if landed.get(key)}


def parse_listing(content: bytes) -> dict[str, dict[str, Any]]:
    """repo id -> {sha, downloads, likes, gated} of the last listing; empty if it cannot be read."""
    try:
        listing = json.loads(content)
    except ValueError:
        return {}
    return listing if isinstance(listing, dict) else {}


def describe(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata with what the Hub says in tags (license, base_model) and dates under our names."""
    tags = [tag for tag in metadata.get("tags") or () if isinstance(tag, str)]
    created = metadata.get("created_at")
    return metadata | {
        "license": _tagged(tags, "license:"),
        "base_model": _base_model(tags),
        "released_on": created[:10] if isinstance(created, str) else None,
        "is_gated": bool(metadata.get("gated")),
    }


def _tagged(tags: list[str], prefix: str) -> str | None:
    return next((tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)), None)


def _base_model(tags: list[str]) -> str | None:
    """`base_model:org/name`, which the Hub repeats as `base_model:<relation>:org/name`."""
    named = [tag.split(":")[-1] for tag in tags if tag.startswith("base_model:")]
    return named[0] if named else None


def _with_side_files(parsed: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """config.json; a quantization that only AutoGPTQ's or AutoAWQ's side file names goes where newer tools write it."""
    config = parsed["config.json"]
    if "quantization_config" in config:
        return config
    if gptq := parsed.get("quantize_config.json"):
        return config | {"quantization_config": {"quant_method": "gptq"} | gptq}
    if awq := parsed.get("quant_config.json"):
        renamed = {"w_bit": "bits", "q_group_size": "group_size"}
        fields = {renamed.get(key, key): value for key, value in awq.items()}
        return config | {"quantization_config": {"quant_method": "awq"} | fields}
    return config
