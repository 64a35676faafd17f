import io
import json
from datetime import date, datetime
from decimal import Decimal

import pytest

from fitmart.warehouse.answers import TABLE_ROWS, write_csv, write_json, write_table
from fitmart.warehouse.errors import QueryError
from fitmart.warehouse.guard import Answer

NAMES = ["what", "price", "share", "on", "at", "layers", "is_big"]
TYPES = ["VARCHAR", "DECIMAL(12,6)", "DOUBLE", "DATE", "TIMESTAMP", "INTEGER[]", "BOOLEAN"]
ROWS = [
    ('a "b", c', Decimal("2.790000"), 0.1, date(2026, 12, 1), datetime(2026, 12, 1, 9, 30), [0, 1], True),
    (None, Decimal("100.000000"), float("nan"), None, None, None, False),
]


def _answer(rows=ROWS):
    return Answer(NAMES, TYPES, iter(rows))


def test_csv():
    out = io.StringIO()
    write_csv(_answer(), out)
    assert out.getvalue().splitlines() == [
        "what,price,share,on,at,layers,is_big",
        '"a ""b"", c",2.79,0.1,2026-12-01,2026-12-01 09:30:00,"[0, 1]",true',
        ",100,nan,,,,false",
    ]


def test_json():
    out = io.StringIO()
    write_json(_answer(), out)
    first, second = json.loads(out.getvalue())
    assert first == {
        "what": 'a "b", c', "price": 2.79, "share": 0.1, "on": "2026-12-01", "at": "2026-12-01T09:30:00",
        "layers": [0, 1], "is_big": True,
    }  # fmt: skip
    assert second["share"] is None  # JSON has no NaN


def test_json_of_no_rows():
    out = io.StringIO()
    write_json(_answer([]), out)
    assert json.loads(out.getvalue()) == []


def test_json_needs_different_names():
    with pytest.raises(QueryError, match="two columns are named a"):
        write_json(Answer(["a", "a"], ["INTEGER"] * 2, iter([(1, 2)])), io.StringIO())


@pytest.mark.parametrize("is_terminal", [False, True])
def test_table_shows_numbers_to_the_right(is_terminal):
    out = io.StringIO()
    rows = [("H100", 2.5, "ENUM('a', 'b')"), ("L4", 12, None)]
    assert not write_table(
        Answer(["gpu", "usd", "type"], ["VARCHAR", "DOUBLE", "VARCHAR"], iter(rows)), out, is_terminal=is_terminal
    )
    lines = [line.strip() for line in out.getvalue().splitlines() if line.strip()]
    assert [line.split() for line in (lines[0], *lines[2:])] == [
        ["gpu", "usd", "type"],
        ["H100", "2.5", "ENUM"],
        ["L4", "12"],
    ]
    assert lines[2].index("2.5") + 3 == lines[3].index("12") + 2


def test_table_says_when_rows_are_left_out():
    rows = [(i,) for i in range(TABLE_ROWS + 1)]
    out = io.StringIO()
    assert write_table(Answer(["i"], ["BIGINT"], iter(rows)), out, is_terminal=False)
    assert len(out.getvalue().splitlines()) == TABLE_ROWS + 2
    assert not write_table(Answer(["i"], ["BIGINT"], iter(rows[:-1])), io.StringIO(), is_terminal=False)
