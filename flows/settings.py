"""What the environment decides: FITMART_* for us, quiet defaults for Prefect. The only reader of FITMART_*."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from fitmart.estimator.errors import FitmartError

PREFECT_OWNER = "FITMART_PREFECT_OWNER"  # handed down to Prefect's server: the process that started it


class SettingError(FitmartError):
    """An environment variable that cannot be understood; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One run's settings. Each field is FITMART_<NAME> in the environment; the command line overrides."""

    data_dir: Path = Path("data")
    models_dir: Path | None = None
    hub_endpoint: str = "https://huggingface.co"
    hub_top: int = 500  # most downloaded models of each task to follow
    hub_watch: tuple[str, ...] = ()  # repositories (org/name) and authors (org) to follow as well
    hub_headers: str = "watch"  # whose weight files' headers to read: watch (hub_watch), all, none
    hub_concurrency: int = 8  # requests to the Hub at a time
    source_concurrency: int = 8  # sources fetched at a time
    http_timeout_s: float = 20.0  # to wait for the next byte
    http_deadline_s: float = 180.0  # for one whole answer
    http_tries: int = 4
    http_max_wait_s: float = 30.0  # the longest pause a server may ask for
    max_payload_bytes: int = 128 * 1024**2
    mirrors: tuple[tuple[str, str], ...] = ()  # URL prefix -> prefix asked instead: "https://a=http://b,…"
    lock_wait_s: float = 0.0  # how long to wait for another refresh

    @property
    def landing_dir(self) -> Path:
        return self.data_dir / "landing"

    @property
    def prefect_home(self) -> Path:
        return self.data_dir / "prefect"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, **overrides: Any) -> "Settings":
        """Settings from FITMART_*; `overrides` that are not None win. SettingError names a variable that is wrong."""
        given: dict[str, Any] = {}
        for name in (f.name for f in fields(cls)):
            variable = f"FITMART_{name.upper()}"
            if text := environ.get(variable, "").strip():
                given[name] = _read(variable, text, name)
        given.setdefault("hub_endpoint", environ.get("HF_ENDPOINT", "").strip().rstrip("/") or cls().hub_endpoint)
        chosen = {name: value for name, value in overrides.items() if value is not None}
        return replace(cls(**given), **chosen)


HUB_HEADERS = ("watch", "all", "none")
_COUNTS = ("hub_top", "hub_concurrency", "source_concurrency", "http_tries", "max_payload_bytes")
_SECONDS = ("http_timeout_s", "http_deadline_s", "http_max_wait_s", "lock_wait_s")
_MAY_BE_ZERO = ("hub_top", "lock_wait_s", "http_max_wait_s")


def _read(variable: str, text: str, name: str) -> Any:
    if name in ("data_dir", "models_dir"):
        return Path(text)
    if name == "hub_watch":
        return tuple(word for word in text.replace(",", " ").split() if word)
    if name == "hub_headers":
        return _read_choice(variable, text, HUB_HEADERS)
    if name == "mirrors":
        return tuple(_read_mirror(variable, pair) for pair in text.split(",") if pair.strip())
    if name in _COUNTS + _SECONDS:
        return _read_number(variable, text, int if name in _COUNTS else float, zero=name in _MAY_BE_ZERO)
    return text.rstrip("/")


def _read_choice(variable: str, text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise SettingError(f"{variable} must be one of {', '.join(choices)}, not '{text}'")
    return text


def _read_mirror(variable: str, pair: str) -> tuple[str, str]:
    prefix, equals, instead = pair.strip().partition("=")
    if not (equals and prefix and instead):
        raise SettingError(f"{variable} must be prefix=replacement pairs with commas between, not '{pair.strip()}'")
    return prefix, instead


def _read_number(variable: str, text: str, kind: type[int] | type[float], *, zero: bool) -> int | float:
    wanted = "a whole number" if kind is int else "a number of seconds"
    try:
        number = kind(text)
    except ValueError:
        raise SettingError(f"{variable} must be {wanted}, not '{text}'") from None
    if not (0 <= number < float("inf")) or (number == 0 and not zero):
        raise SettingError(f"{variable} must be {wanted} above zero, not '{text}'")
    return number


def quiet_prefect(settings: Settings) -> None:
    """Prefect's defaults for us; call before the first `import prefect`. What the user has set stays.

    The run is reported from our own records, so Prefect's loggers are silenced, those of its server as well: it prints
    tracebacks when it is stopped with events in flight. A first start makes its database and takes up to 20 s.
    """
    defaults = {
        "PREFECT_HOME": str(settings.prefect_home.resolve()),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_LOGGERS_PREFECT_FLOW_RUNS_LEVEL": "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    os.environ[PREFECT_OWNER] = str(os.getpid())


def quiet_hub() -> None:
    """The Hub client's defaults for us; call before the first `import huggingface_hub`. What the user has set stays."""
    for name in ("TELEMETRY", "PROGRESS_BARS", "UPDATE_CHECK", "IMPLICIT_TOKEN", "XET"):
        os.environ.setdefault(f"HF_HUB_DISABLE_{name}", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
