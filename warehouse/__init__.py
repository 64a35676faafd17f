"""The DuckDB file: load, build, checks, publish, guarded queries, export.

`from fitmart.warehouse import connect` opens the published catalog read-only.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fitmart.warehouse.connection import connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    """`connect`, imported when it is first asked for, so that `fitmart --help` needs no DuckDB."""
    if name == "connect":
        from fitmart.warehouse.connection import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
