"""The sealed database: sees its tables and nothing else of the machine."""

from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pytest

from cortex.transforms import database
from cortex.transforms.database import query
from cortex.transforms.errors import CortexError

NUMBERS = pa.table({"n": [1, 2, 3]})


@pytest.fixture
def sql(monkeypatch):
    """Return a function that runs a text as if it were a query of the package."""

    def run(text, params=None, **tables):
        monkeypatch.setattr(database, "sql_text", lambda name: text)
        return query("sample", params or {}, **tables)

    return run


def test_a_query_reads_the_tables_and_parameters_it_is_given(sql):
    made = sql("select n + $more as n from numbers order by n", {"more": 1}, numbers=NUMBERS)
    assert made.to_pylist() == [{"n": 2}, {"n": 3}, {"n": 4}]


def test_the_same_question_about_the_same_rows_is_answered_once(sql):
    text, rows = "select n + $more as n from numbers order by n", pa.table({"n": [7, 8]})
    answer = sql(text, {"more": 1}, numbers=rows)
    assert sql(text, {"more": 1}, numbers=pa.table({"n": [7, 8]})) is answer
    assert sql(text, {"more": 2}, numbers=rows).to_pylist() == [{"n": 9}, {"n": 10}]
    assert sql(text, {"more": 1}, numbers=pa.table({"n": [8]})).to_pylist() == [{"n": 9}]
    assert sql(f"{text} desc", {"more": 1}, numbers=rows).to_pylist() == [{"n": 9}, {"n": 8}]


@pytest.mark.parametrize(
    "text",
    [
        "select * from NUMBERS_OF_PYTHON",
        "select * from read_text('/etc/hostname')",
        "select * from '/etc/hostname'",
        "select * from glob('/*')",
        "copy (select 1) to 'written.csv'",
        "attach 'other.duckdb'",
        "install fts",
        "load httpfs",
        "set threads = 4",
        "set TimeZone = 'Asia/Tokyo'",
        "set enable_external_access = true",
    ],
)
def test_no_file_extension_setting_or_python_variable_is_reached(sql, text):
    NUMBERS_OF_PYTHON = NUMBERS
    assert NUMBERS_OF_PYTHON.num_rows == 3
    with pytest.raises(CortexError):
        sql(text)


def test_a_failing_query_names_its_file_and_the_wrong_column(sql):
    with pytest.raises(CortexError, match=r'(?s)transforms/sql/sample.sql failed: .*"m"'):
        sql("select m from numbers", numbers=NUMBERS)


def test_a_parameter_the_query_does_not_name_is_an_error(sql):
    with pytest.raises(CortexError, match=r"sample\.sql"):
        sql("select n from numbers", {"unused": 1}, numbers=NUMBERS)


def test_dates_are_those_of_utc_wherever_the_machine_is(sql, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    late = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    assert sql("select cast($now::timestamptz as date)::varchar as day", {"now": late}).to_pylist() == [
        {"day": "2026-03-01"}
    ]


def test_one_call_leaves_nothing_for_the_next(sql):
    sql("select n from numbers", numbers=NUMBERS)
    with pytest.raises(CortexError):
        sql("select n from numbers")
    with pytest.raises(duckdb.Error):
        duckdb.connect(":memory:").sql("select n from numbers")
