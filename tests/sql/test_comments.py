import re

import pytest
import tiny_catalog

from fitmart.warehouse.describe import describe

RELATIONS = describe(tiny_catalog.in_memory())
COLUMNS = [(r.name, c) for r in RELATIONS for c in r.columns]
# Words that end a name whose unit is plain; everything else that is numeric says its unit in brackets.
UNITS = {
    "_bytes": "bytes", "_gib": "GiB", "_gb": "GB", "_bytes_per_s": "bytes/s", "_flop_per_s": "FLOP/s",
    "_tokens": "tokens", "_tokens_per_s": "tokens/s", "_ms": "ms", "_share": "share", "_hours": "hours", "_w": "W",
    "_usd": "USD", "usd_per_hour": "USD/h", "usd_per_month": "USD/month", "usd_per_mtok": "USD/Mtok",
    "usd_per_gb": "USD/GB", "usd_per_mtok_blended": "USD/Mtok",
}  # fmt: skip
NUMERIC = re.compile(r"^(BIGINT|INTEGER|SMALLINT|DOUBLE|DECIMAL\(.*\)|HUGEINT)$")


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_every_table_view_and_macro_says_what_it_is_and_where_from(relation):
    assert relation.comment
    assert "source:" in relation.comment
    if relation.kind in ("table", "view"):
        assert relation.comment.startswith("One row"), "the grain comes first"


@pytest.mark.parametrize(("relation", "column"), COLUMNS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_every_column_says_what_it_is_its_unit_and_where_from(relation, column):
    assert column.comment, f"{relation}.{column.name} has no comment"
    assert re.search(r"; source: \S", column.comment)
    if NUMERIC.match(column.type):
        assert column.unit, f"{relation}.{column.name}: no unit in {column.comment!r}"


@pytest.mark.parametrize(("relation", "column"), COLUMNS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_a_unit_in_the_name_is_the_unit_of_the_comment(relation, column):
    name = re.sub(r"_(low|high)$", "", column.name)
    suffix = max((s for s in UNITS if name.endswith(s)), key=len, default=None)
    if suffix and NUMERIC.match(column.type):
        assert column.unit == UNITS[suffix]


def test_the_same_name_is_the_same_unit_and_type_in_all_tables():
    told = {}
    for _, column in COLUMNS:
        told.setdefault(column.name, set()).add(column.unit)
    assert {name: units for name, units in told.items() if len(units) > 1} == {}


def test_booleans_are_named_as_such():
    assert [c.name for _, c in COLUMNS if c.type == "BOOLEAN" and not c.name.startswith(("is_", "has_", "may_"))] == []


def test_times_and_days_are_named_as_such():
    odd = [
        f"{relation}.{column.name} {column.type}"
        for relation, column in COLUMNS
        if (column.type == "TIMESTAMP") != column.name.endswith(("_at", "valid_from", "valid_to"))
        or (column.type == "DATE") != column.name.endswith("_on")
    ]
    assert odd == []
