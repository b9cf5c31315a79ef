"""docs/analysis.md: each question's SQL runs, in `cortex sql` and in any DuckDB client, with one result."""

import re
from pathlib import Path

import duckdb

from cortex.storage.published.published import ALL_NAMES, FROM_THE_LAKE, LAKE_VIEWS

PAGE = Path(__file__).parents[3] / "docs" / "analysis.md"
QUESTIONS = re.findall(
    r"^## \d+\. (.*?)\n\n```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


def test_there_are_eleven_questions():
    assert len(QUESTIONS) == 11


def test_every_table_and_column_has_a_comment(samples):
    with duckdb.connect(str(samples / "published" / "memory.duckdb"), read_only=True) as database:
        tables = database.sql("select table_name, comment from duckdb_tables()").fetchall()
        views = database.sql("select view_name, comment from duckdb_views() where not internal").fetchall()
        columns = database.sql(
            "select table_name, column_name from duckdb_columns() where not internal and comment is null"
        ).fetchall()
    assert {name for name, _ in (*tables, *views)} == set(ALL_NAMES)
    assert [name for name, comment in (*tables, *views) if not comment] == []
    assert columns == []


def test_a_call_has_its_result_beside_it(cortex, samples):
    query = "select count(*), count(status), count(distinct turn_id) from tool_calls"
    [[calls, answered, turns]] = cortex("sql", query, "--json").json["rows"]
    [[known]] = cortex("sql", "select count(*) from turns where kind = 'tool_call'", "--json").json["rows"]
    assert calls == turns == known > 0 and answered > 0


def test_a_copied_file_keeps_its_tables(samples, tmp_path):
    copy = tmp_path / "elsewhere.duckdb"
    copy.write_bytes((samples / "published" / "memory.duckdb").read_bytes())
    (samples / "published" / "memories.parquet").unlink()
    with duckdb.connect(str(copy), read_only=True) as database:
        for name in set(ALL_NAMES) - {*LAKE_VIEWS, *(table.name for table in FROM_THE_LAKE)}:
            assert database.sql(f"select count(*) from {name}").fetchall()
