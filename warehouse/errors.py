"""What can go wrong with the catalog, as errors whose message is one line for the user."""

from fitmart.estimator.errors import FitmartError


class CatalogError(FitmartError):
    """The catalog is missing, locked, damaged, or was given rows it cannot hold."""


class StorageError(CatalogError):
    """A file or folder that cannot be written or read; the message names it."""


class CheckError(CatalogError):
    """A check of sql/checks/ returned rows: nothing is published."""


class QueryError(CatalogError):
    """A statement that the guard refuses or the catalog cannot answer."""


def one_line(error: Exception) -> str:
    """DuckDB's message on one line: without its class in front, without the excerpt of the statement behind."""
    kept = str(error).strip().split("\nLINE ", 1)[0]
    line = " ".join(kept.split()) or type(error).__name__
    head, separator, rest = line.partition(" Error: ")
    return rest if separator and head.replace(" ", "").isalpha() else line
