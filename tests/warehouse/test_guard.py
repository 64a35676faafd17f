import time

import pytest
import tiny_catalog

from fitmart.warehouse.connection import open_reader
from fitmart.warehouse.errors import QueryError
from fitmart.warehouse.guard import ask, ask_arrow

CLOSED = "a query reads the catalog alone"
KIND = "only queries are answered"


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    con = open_reader(tiny_catalog.published(tmp_path_factory.mktemp("data")), memory="256MB")
    yield con
    con.close()


def _ask(con, sql, seconds=20.0):
    with ask(con, sql, seconds=seconds) as answer:
        return list(answer.rows)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM fit", [(11,)]),
        ("FROM gpu SELECT count(*)", [(3,)]),
        ("WITH a AS (SELECT 1) FROM a;", [(1,)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
        ("-- a comment\nTABLE engine LIMIT 0", []),
        ("SELECT name FROM (SHOW TABLES) WHERE name = 'fit'", [("fit",)]),
        (
            "SELECT * FROM (PIVOT gpu ON vendor IN ('AMD', 'NVIDIA') USING count(*) GROUP BY is_released)",
            [(True, 1, 2)],
        ),
        ("SELECT count(*) FROM cheapest_offers('nvidia-h100-sxm')", [(3,)]),
    ],
)
def test_queries_are_answered(reader, sql, rows):
    assert _ask(reader, sql) == rows


@pytest.mark.parametrize("sql", ["DESCRIBE fit", "SUMMARIZE gpu", "EXPLAIN FROM fit", "EXPLAIN ANALYZE FROM fit"])
def test_questions_about_the_catalog_are_answered(reader, sql):
    assert _ask(reader, sql)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("", "no statement given"),
        ("-- nothing", "no statement given"),
        ("SELECT 1; SELECT 2", "one statement at a time, not 2"),
        ("SELECT 1; DROP TABLE fit", "one statement at a time, not 2"),
        ("DROP TABLE fit", KIND),
        ("DELETE FROM fit", KIND),
        ("CREATE TEMP TABLE t AS SELECT 1", KIND),
        ("SET memory_limit = '8GB'", KIND),
        ("ATTACH '/tmp/other.duckdb'", KIND),
        ("COPY fit TO '/tmp/out.csv'", KIND),
        ("INSTALL httpfs", KIND),
        ("EXPORT DATABASE '/tmp/out'", KIND),
        ("CHECKPOINT", KIND),
        ("PIVOT gpu ON vendor USING count(*)", "PIVOT needs the values"),
        ("EXPLAIN ANALYZE COPY gpu TO '/tmp/out.csv'", CLOSED),
        ("EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1", "read-only mode"),
        ("FROM read_csv('/etc/passwd')", CLOSED),
        ("FROM read_text('/etc/passwd')", CLOSED),
        ("FROM read_parquet('https://example.com/x.parquet')", CLOSED),
        ("FROM glob('/*')", CLOSED),
        ("FROM duckdb_secrets()", CLOSED),
        ("FROM '/etc/passwd'", "does not exist"),
        ("SELECT getenv('HOME')", "does not exist"),
        ("FROM tiny_catalog", "does not exist"),
        ("SELECT nope FROM gpu", 'Referenced column "nope" not found in FROM clause! Candidate bindings: '),
        ("FROM fitt", 'Table with name fitt does not exist! Did you mean "fit"?'),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT 'a'::INT", "Could not convert string 'a'"),
        ("SELECT list(a.range) FROM range(100000000) a", "more memory than it may use"),
    ],
)
def test_what_is_refused_says_why_in_one_line(reader, sql, reason):
    with pytest.raises(QueryError) as caught:
        _ask(reader, sql)
    message = str(caught.value)
    assert reason in message
    assert "\n" not in message
    assert _ask(reader, "SELECT 1") == [(1,)]  # the connection goes on


def test_a_query_is_stopped_in_time(reader):
    began = time.monotonic()
    with pytest.raises(QueryError, match=r"stopped after 0\.3 s"):
        _ask(reader, "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3", 0.3)
    assert time.monotonic() - began < 5
    assert _ask(reader, "SELECT 1") == [(1,)]


def test_rows_are_fetched_as_they_are_asked_for(reader):
    with ask(reader, "SELECT a.range FROM range(1000000) a, range(1000000) b", seconds=20) as answer:
        assert answer.names == ["range"]
        assert next(answer.rows) == (0,)
    assert _ask(reader, "SELECT 1") == [(1,)]


def test_arrow(reader):
    with ask_arrow(reader, "SELECT gpu_id, memory_bytes FROM gpu ORDER BY memory_bytes LIMIT 1", seconds=20) as batches:
        assert batches.read_all().to_pylist() == [{"gpu_id": "nvidia-rtx-4090", "memory_bytes": 25_757_220_864}]
    with pytest.raises(QueryError, match=KIND), ask_arrow(reader, "DROP TABLE fit", seconds=20):
        pass
