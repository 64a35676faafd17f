"""What can go wrong with a source: what to retry is a type, not a string."""

from fitmart.estimator.errors import FitmartError


class SourceError(FitmartError):
    """A source could not be read; the message says what it answered."""


class TransientError(SourceError):
    """It may work later. `retry_after_s` is the pause that the server asked for, if it did."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TerminalError(SourceError):
    """Asking again would get the same answer."""


class UnreachableError(TerminalError):
    """There is no way to the host: not the source's fault, and not worth a second try in this run."""
