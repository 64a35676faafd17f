import pytest
import tiny_catalog

from fitmart.warehouse.connection import open_reader
from fitmart.warehouse.guard import ask
from fitmart.warehouse.sqlfiles import sql_files


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    con = open_reader(tiny_catalog.published(tmp_path_factory.mktemp("data")))
    yield con
    con.close()


@pytest.mark.parametrize("path", sql_files("examples"), ids=lambda p: p.stem)
def test_example_answers_its_question(reader, path):
    sql = path.read_text(encoding="utf-8")
    assert sql.startswith("-- ")
    assert sql.splitlines()[0].endswith("?"), "the question comes first"
    with ask(reader, sql, seconds=20) as answer:
        assert list(answer.rows)
