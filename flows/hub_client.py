"""The Hugging Face Hub through its own client, with our time-outs, our limit of patience and our errors."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from fitmart.flows.errors import SourceError, TerminalError, TransientError
from fitmart.flows.http import TRANSIENT_STATUS, parse_retry_after, retrying, user_agent
from fitmart.flows.reach import CONNECT_S, Reach
from fitmart.flows.settings import Settings, quiet_hub

quiet_hub()  # the client reads its switches when it is imported

import httpx2  # noqa: E402
from huggingface_hub import HfApi, ModelInfo, close_session, get_session, hf_hub_url, set_client_factory  # noqa: E402
from huggingface_hub.errors import (  # noqa: E402
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # noqa: E402
from huggingface_hub.utils._http import default_client_factory  # noqa: E402 (no public name)

MAX_FILE_BYTES = 8 * 1024**2  # of a config; a listing has the client's own pages
LIBRARY = "fitmart"
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)$")


class GoneError(TerminalError):
    """The repository, revision or file is not there (any more)."""


class GatedError(TerminalError):
    """The repository asks for an agreement that our token, if there is one, has not given."""


class HubClient:
    """List repositories and read small files of them. Safe in threads; `close` it."""

    def __init__(self, settings: Settings, reach: Reach, *, token: str | None) -> None:
        self.endpoint = settings.hub_endpoint
        self._settings, self._reach = settings, reach
        self._api = HfApi(endpoint=self.endpoint, token=token or False, library_name=LIBRARY, user_agent=user_agent())
        self._headers = build_hf_headers(token=token or False, library_name=LIBRARY, user_agent=user_agent())
        set_client_factory(self._make_client)

    def close(self) -> None:
        close_session()

    def list_models(self, *, expand: list[str], **query: Any) -> Iterator[ModelInfo]:
        """The listing page by page, as HfApi.list_models; it repeats a page that fails."""
        with self._typed_errors("model listing"):
            yield from self._api.list_models(expand=expand, **query)  # type: ignore[arg-type]

    def model_info(self, repo_id: str, *, expand: list[str]) -> ModelInfo:
        """One repository; GoneError if there is none."""

        def attempt() -> ModelInfo:
            with self._typed_errors(repo_id):
                return self._api.model_info(repo_id, expand=expand)  # type: ignore[arg-type]

        return self._retry(attempt)

    def read_file(self, repo_id: str, revision: str, name: str, *, max_bytes: int = MAX_FILE_BYTES) -> str:
        """The text of a small file at a pinned revision; GatedError, GoneError."""

        def attempt() -> str:
            content, _ = self._get(repo_id, revision, name, {}, max_bytes)
            return content.decode("utf-8", errors="replace")

        return self._retry(attempt)

    def read_range(self, repo_id: str, revision: str, name: str, start: int, length: int) -> tuple[bytes, int]:
        """`length` bytes of a file from `start` on, fewer where it ends before, and the size of the whole file."""
        place, asked = f"{repo_id}/{name}", {"Range": f"bytes={start}-{start + length - 1}"}

        def attempt() -> tuple[bytes, int]:
            content, headers = self._get(repo_id, revision, name, asked, length)
            found = _CONTENT_RANGE.match(headers.get("content-range", ""))
            if not found or int(found[1]) != start:
                raise TerminalError(f"{place}: the server does not serve ranges of files")
            return content, int(found[2])

        return self._retry(attempt)

    def file_sizes(self, repo_id: str, revision: str) -> dict[str, int]:
        """Bytes of each file of a repository."""

        def attempt() -> dict[str, int]:
            with self._typed_errors(repo_id):
                info = self._api.model_info(repo_id, revision=revision, files_metadata=True)
                return {s.rfilename: s.size for s in info.siblings or () if s.size is not None}

        return self._retry(attempt)

    def _get(
        self, repo_id: str, revision: str, name: str, asked: dict[str, str], max_bytes: int
    ) -> tuple[bytes, httpx2.Headers]:
        """The body and the headers of one answer, within the deadline and `max_bytes`."""
        url = hf_hub_url(repo_id, name, revision=revision, endpoint=self.endpoint)
        place, start = f"{repo_id}/{name}", time.monotonic()
        with self._typed_errors(place), get_session().stream("GET", url, headers=self._headers | asked) as response:
            if not response.is_success:
                response.read()
                hf_raise_for_status(response)
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if time.monotonic() - start > self._settings.http_deadline_s:
                    raise TransientError(f"{place}: not finished after {self._settings.http_deadline_s:g} s")
                if len(content) > max_bytes:
                    raise TerminalError(f"{place}: more than the {max_bytes:,} bytes asked for or allowed")
            return bytes(content), response.headers

    def _retry(self, attempt: Any) -> Any:
        s = self._settings
        return retrying(attempt, tries=s.http_tries, max_wait_s=s.http_max_wait_s, deadline_s=s.http_deadline_s)

    def _make_client(self) -> httpx2.Client:
        client = default_client_factory()
        limit = self._settings.http_timeout_s
        client.timeout = httpx2.Timeout(limit, connect=min(CONNECT_S, limit))
        client.event_hooks = {**client.event_hooks, "response": [self._look_at]}
        return client

    def _look_at(self, response: httpx2.Response) -> None:
        """The client sleeps as long as a server asks it to: end the run of this source where that is too long."""
        self._reach.answered()
        wait_s = _asked_pause(response)
        if response.status_code in TRANSIENT_STATUS and wait_s is not None and wait_s > self._settings.http_max_wait_s:
            raise TransientError(f"answered {response.status_code} and asks to wait {wait_s:,.0f} s", wait_s)

    @contextmanager
    def _typed_errors(self, place: str) -> Iterator[None]:
        try:
            yield
        except SourceError:
            raise
        except GatedRepoError as error:
            raise GatedError(f"{place}: gated, needs the token of an account that accepted its terms") from error
        except (RepositoryNotFoundError, RevisionNotFoundError, EntryNotFoundError) as error:
            raise GoneError(f"{place}: not on the Hub") from error
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status in TRANSIENT_STATUS:
                raise TransientError(f"{place}: answered {status}", _asked_pause(error.response)) from error
            raise TerminalError(f"{place}: answered {status}") from error
        except httpx2.ConnectError as error:
            raise self._reach.lost(self.endpoint, f"no connection ({error})") from error
        except httpx2.TimeoutException as error:
            raise TransientError(f"{place}: nothing for {self._settings.http_timeout_s:g} s") from error
        except httpx2.HTTPError as error:
            raise TransientError(f"{place}: the answer broke off ({error})") from error
        except ValueError as error:
            raise TransientError(f"{place}: broken answer ({error})") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise TerminalError(f"{place}: an answer of another form than expected ({error!r})") from error


def _asked_pause(response: httpx2.Response) -> float | None:
    return parse_retry_after(response.headers.get("retry-after"), datetime.now(UTC))
