"""A person's SQL sees the tables of the store: no other file, no network, and it changes nothing."""

from pathlib import Path

import duckdb
import pytest

from tests.shell import Cortex

LAKE_TABLES = ("turns", "events", "journal", "memories", "edges", "metrics")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.csv"
    file.write_text("word\nabracadabra\n")
    return file


READING = (
    "from '{secret}'",
    "select * from read_csv('{secret}')",
    "select * from read_text('{secret}')",
    "select * from read_blob('/proc/self/environ')",
    "select * from read_text('{home}/config.toml')",
    "select * from read_parquet('{home}/published/memories.parquet')",
    "select * from read_text('{home}/lake/../runs/manifest.json')",
    "select * from glob('{home}/*')",
    "select * from parquet_metadata('{home}/published/memories.parquet')",
    "select * from sniff_csv('{secret}')",
    "from 'https://example.invalid/a.parquet'",
    "select * from read_parquet('s3://example/a.parquet')",
    "select * from sqlite_scan('{secret}', 'a')",
    "select * from st_read('{secret}')",
    "select * from duckdb_secrets()",
    "from memory_of_python",
)


WRITING = (
    "with x as (copy (select 1) to '{out}') from x",
    "with x as (copy (select 1) to '{home}/lake/out.parquet') from x",
    "explain analyze copy (select 1) to '{out}'",
    "/* */ explain (analyze) copy (select 1) to '{out}'",
    "explain analyze create table t as select 1",
    "select 1; copy (select 1) to '{out}'",
    "copy (select 1) to '{out}'",
    "export database '{out}'",
    "attach '{out}'",
    "create temp table t as select 1",
    "insert into memories select * from memories",
    "with x as (delete from memories returning *) from x",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "set autoinstall_known_extensions = true",
    "pragma enable_profiling = 'json'",
    "pragma profiling_output = '{out}'",
    "pragma import_database('{out}')",
    "call enable_logging('QueryLog', storage_path = '{out}')",
    "select * from enable_logging('QueryLog', storage_path = '{out}')",
    "checkpoint",
    "vacuum",
    "call force_checkpoint()",
    "prepare p as select 1",
    "use memory",
    "reset threads",
)


@pytest.mark.parametrize("queries", [READING, WRITING], ids=["reading", "writing"])
@pytest.mark.parametrize("past", [(), ("--as-of", "2026-09-14")], ids=["now", "as of"])
def test_sql_reads_nothing_else_and_writes_nothing(cortex: Cortex, samples, secret, tmp_path, queries, past):
    before = files_in(tmp_path)
    # An earlier day's tables take a second to make, and are asked through the same door.
    for query in queries[:3] if past else queries:
        filled = query.format(secret=secret, home=samples, out=tmp_path / "out")
        answer = cortex("sql", filled, *past, "--json")
        assert (answer.code, answer.json["error"]["code"]) == (2, "CORTEX_E_USAGE"), query
        assert "abracadabra" not in answer.out
        assert files_in(tmp_path) == before, query


def test_sql_and_any_duckdb_client_see_the_same(cortex: Cortex, samples):
    with duckdb.connect(str(samples / "published" / "memory.duckdb"), read_only=True) as database:
        for table in LAKE_TABLES:
            columns = f"select column_name, column_type from (describe {table}) order by all"
            for query in (f"select count(*) from {table}", columns):
                expected = [list(row) for row in database.sql(query).fetchall()]
                assert cortex("sql", query, "--json").json["rows"] == expected


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
