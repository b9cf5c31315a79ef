"""A person's SQL sees the tables of the store: no other file, no network, and it changes nothing."""

import duckdb
import pytest

from tests.examples import cases
from tests.shell import Cortex


def test_an_unsealed_duckdb_does_write_in_a_select(tmp_path):
    duckdb.sql(f"with x as (copy (select 1) to '{tmp_path}/out.csv') from x").fetchall()
    assert (tmp_path / "out.csv").is_file()


@pytest.mark.parametrize(
    "query",
    [
        "with m as (from memories) select count(*) from m",
        "describe memories",
        "summarize memories",
        "show tables",
        "pragma table_info('memories')",
        "explain select * from memories",
        "EXPLAIN ANALYZE select count(*) from turns",
        "pivot memories on memory_type using count(*) group by status",
        "select * from memories where text ilike '%copy%' -- copy",
        "select 1; select 2",
    ],
)
def test_what_only_reads_is_answered(cortex: Cortex, samples, query):
    answer = cortex("sql", query, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["columns"]


def test_a_query_without_end_is_stopped_after_the_time_that_a_person_gives_it(cortex: Cortex, samples):
    endless = "select sum(a.range * b.range) from range(10000000) a, range(10000000) b"
    answer = cortex("sql", endless, "--timeout", "0.5", "--json")
    assert answer.json["error"]["code"] == "CORTEX_E208"


SECRET = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"


@cases(
    "query",
    [
        f"select '{SECRET}' from nothing",  # the excerpt begins in the secret
        f"select '{SECRET}'::integer",
        f"select 1 as '{SECRET}",
    ],
)
def test_an_error_does_not_repeat_a_secret_of_its_query(cortex: Cortex, samples, query):
    for words in (("sql", query), ("sql", query, "--json")):
        answer = cortex(*words)
        assert answer.code == 2 and "DuckDB says: " in answer.out + answer.err
        assert SECRET[-8:] not in answer.out + answer.err and SECRET[:8] not in answer.out + answer.err
