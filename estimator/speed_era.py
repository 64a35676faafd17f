"""Which measurements describe an engine version: those of the builds of 2024 (`old`) or of today's (`current`).

Versions come as the engines and benchmarks write them: `0.11.0`, `0.6.x (2024-11)`, `b4500`, `4500`, `2024-05`,
`2024 (paper)`. What cannot be read counts as current, as a blank does.
"""

import polars as pl

from fitmart.estimator.engines.versions import version_key

OLD, CURRENT = "old", "current"
# Engines whose versions are build numbers.
_NUMBERED = ("llama.cpp",)
_BUILD = r"^\s*b?(\d{3,5})(?:[^0-9-].*|-[^0-9].*|-\d+-.*)?$"
_YEAR, _MONTH = r"\b(20\d\d)\b", r"\b20\d\d-(\d\d)\b"
_BARE_YEAR = r"^\s*20[23]\d(?:-\d\d)?(?:\s.*|-\d\d)?$"


def _number(engine_id: pl.Expr, version: pl.Expr) -> pl.Expr:
    """Sortable number of a version or build; null where the text names none."""
    build = version.str.extract(_BUILD, 1).cast(pl.Int64)
    number = pl.when(engine_id.is_in(_NUMBERED)).then(build).otherwise(version_key(version))
    return pl.when(~version.str.contains(_BARE_YEAR)).then(number)


def _month(version: pl.Expr) -> pl.Expr:
    """Months since year 0 of a date in the text; a year alone counts as its January."""
    year, month = version.str.extract(_YEAR, 1).cast(pl.Int64), version.str.extract(_MONTH, 1).cast(pl.Int64)
    return year * 12 + month.fill_null(1)


def era(engine_id: pl.Expr, engine_version: pl.Expr, eras: pl.DataFrame) -> pl.Expr:
    """`old` or `current` [String].

    eras (warehouse/seeds/speed_era.csv): engine_id, since_version and since_on of the first current build; an engine
    without a row has one era.
    """
    number, month = _number(engine_id, engine_version), _month(engine_version)
    is_old = pl.lit(value=False)
    for row in eras.iter_rows(named=True):
        since = pl.lit(str(row["since_version"]))
        first = _number(pl.lit(row["engine_id"]), since)
        on = row["since_on"]
        before = pl.coalesce(number < first, month < on.year * 12 + on.month)
        is_old |= (engine_id == row["engine_id"]) & before.fill_null(value=False)
    return pl.when(is_old).then(pl.lit(OLD)).otherwise(pl.lit(CURRENT))
