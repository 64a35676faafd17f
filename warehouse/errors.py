"""What can go wrong with the catalog, as errors whose message is one line for the user."""

from fitmart.estimator.errors import FitmartError


class CatalogError(FitmartError):
    """The catalog is missing, locked, damaged, or was given rows it cannot hold."""


class CheckError(CatalogError):
    """A check of sql/checks/ returned rows: nothing is published."""


class QueryError(CatalogError):
    """A statement that the guard refuses or the catalog cannot answer."""


def first_line(error: Exception) -> str:
    """The first line of DuckDB's message, without its own class name in front."""
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    head, separator, rest = line.partition(" Error: ")
    return rest if separator and head.replace(" ", "").isalpha() else line
