"""`query`: SQL that only reads, within limits, on the rows that the caller may see."""

import pytest

from tests.store.mcp.test_tools import error_of


@pytest.mark.parametrize(
    "sql",
    [
        "delete from memories",
        "create table t as select 1",
        "copy memories to '/tmp/stolen.parquet'",
        "with x as (copy memories to '/tmp/stolen.csv') select 1",
        "attach '/tmp/other.duckdb'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "pragma enable_profiling",
        "export database '/tmp/stolen'",
        "select 1; drop view turns",
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from glob('/**')",
        "select * from read_parquet('https://example.com/a.parquet')",
        "call pragma_database_size()",
        "select getenv('HOME')",
        "selec 1",
        "",
        "-- nothing",
    ],
)
def test_what_does_more_than_read_the_tables_is_refused(assistant, sql):
    result = assistant.call("query", sql=sql)
    assert result.is_error, result.structured_content
    assert error_of(result)["code"] in ("CORTEX_E_USAGE", "CORTEX_E204")


def test_rows_beyond_the_limit_are_left_out_and_that_is_said(assistant):
    data = assistant.data("query", sql="select * from range(1000)", limit=3)
    assert data["rows"] == [[0], [1], [2]] and data["is_cut"]
    most = assistant.data("query", sql="select * from range(1000)")
    assert len(most["rows"]) == 200 and most["is_cut"]
    wide = assistant.data("query", sql="select repeat('x', 3000) from range(100)")
    assert 0 < len(wide["rows"]) < 100 and wide["is_cut"]
    assert not assistant.data("query", sql="select count(*) from memories")["is_cut"]


def test_values_of_every_kind_are_json(assistant):
    [row] = assistant.data(
        "query",
        sql="select 1.5::decimal(4,2), date '2026-11-01', interval 3 days, 'nan'::double, {'a': [1, null]}, "
        "'x'::blob, true, null, 170141183460469231731687303715884105727::hugeint, uuid(), time '10:00'",
    )["rows"]
    assert row[0] == 1.5 and row[1] == "2026-11-01" and row[3] is None and row[4] == {"a": [1, None]}
    assert row[6] is True and row[7] is None


def test_the_tables_describe_themselves(assistant):
    rows = assistant.data("query", sql="describe memories")["rows"]
    assert "memory_id" in [row[0] for row in rows]
