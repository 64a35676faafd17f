"""Engine versions as sortable numbers.

A nightly or candidate (`0.9.1.dev289+g89b`, `0.11.1rc3`) counts as the release it leads to.
"""

import re

import polars as pl

_PARTS = r"^\s*v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[^0-9].*)?$"
# setuptools' name for a build made without tags: it says nothing about the age of the code.
_UNTAGGED = r"^\s*v?0\.1\.dev"
_STEP = 10_000


def parse_version(text: str) -> int:
    """`0.11.2` → 110002; raises ValueError where no version can be read."""
    match = re.match(_PARTS, text)
    if match is None:
        raise ValueError(f"not a version: '{text}'")
    major, minor, patch = (int(part or 0) for part in match.groups())
    return (major * _STEP + minor) * _STEP + patch


def version_key(text: pl.Expr) -> pl.Expr:
    """The same for a column [Int64]; null where blank or unreadable."""
    major, minor, patch = (text.str.extract(_PARTS, i).cast(pl.Int64) for i in (1, 2, 3))
    key = (major * _STEP + minor) * _STEP + patch.fill_null(0)
    return pl.when(~text.str.contains(_UNTAGGED)).then(key)


def version_text(key: pl.Expr) -> pl.Expr:
    """A key as `major.minor.patch` [String]."""
    return pl.format("{}.{}.{}", key // _STEP**2, key // _STEP % _STEP, key % _STEP)
