"""Is the network there? Found out once a host, within seconds, so that a refresh without network ends soon."""

import ipaddress
import queue
import socket
import threading
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from fitmart.flows.errors import TransientError, UnreachableError

CONNECT_S = 5.0
RESOLVE_S = 5.0  # getaddrinfo has no time-out of its own and may take half a minute
NO_NETWORK = "there is no network"
LOST_HOSTS = 2  # so many hosts out of reach while none has answered: the network is not there


class Reach:
    """What this run has learned about hosts; shared by all sources, safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resolved: set[str] = set()
        self._lost: set[str] = set()
        self._has_answered = False

    def check(self, url: str) -> None:
        """Return if the host of `url` has an address (or a proxy goes there); else raise as `lost` does."""
        host = urlsplit(url).hostname or ""
        with self._lock:
            if host in self._resolved:
                return
            if not self._has_answered and (host in self._lost or len(self._lost) >= LOST_HOSTS):
                raise UnreachableError(f"{host}: not asked, {NO_NETWORK}")
        if not (_is_address(host) or _has_proxy(url, host)):
            self._resolve(host)
        with self._lock:
            self._resolved.add(host)

    def probe(self, url: str) -> None:
        """`check`, and open a connection: for clients that would try for a minute."""
        self.check(url)
        parts = urlsplit(url)
        host = parts.hostname or ""
        if _has_proxy(url, host):
            return
        try:
            socket.create_connection((host, parts.port or (443 if parts.scheme == "https" else 80)), CONNECT_S).close()
        except OSError as error:
            raise self.lost(url, f"no connection ({error.strerror or error})") from error

    def answered(self) -> None:
        """Some host has answered: the network is there, and what fails from now on is that host's fault."""
        with self._lock:
            self._has_answered = True

    def lost(self, url: str, why: str) -> Exception:
        """The error for a host out of reach: transient if the network is known to be there."""
        host = urlsplit(url).hostname or ""
        with self._lock:
            self._lost.add(host)
            self._resolved.discard(host)
            return TransientError(f"{host}: {why}") if self._has_answered else UnreachableError(f"{host}: {why}")

    def _resolve(self, host: str) -> None:
        answers: queue.SimpleQueue[OSError | None] = queue.SimpleQueue()

        def look_up() -> None:
            try:
                socket.getaddrinfo(host, None)
            except (OSError, UnicodeError) as error:
                answers.put(error if isinstance(error, OSError) else OSError(str(error)))
            else:
                answers.put(None)

        threading.Thread(target=look_up, daemon=True, name=f"resolve {host}").start()
        try:
            error = answers.get(timeout=RESOLVE_S)
        except queue.Empty:
            raise self.lost(host_url(host), f"no answer from the name service in {RESOLVE_S:g} s") from None
        if error is not None:
            raise self.lost(host_url(host), f"no address ({error.strerror or error})") from error


def host_url(host: str) -> str:
    """A URL of `host`, for what takes URLs."""
    return f"https://{host}/"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _has_proxy(url: str, host: str) -> bool:
    proxies = getproxies()
    return bool(proxies.get(urlsplit(url).scheme) or proxies.get("all")) and not proxy_bypass(host)
