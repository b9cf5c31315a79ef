"""docs/analysis.md: each question's SQL runs, in `cortex sql` and in any DuckDB client, with one result."""

import re
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.flows.publishing.briefs import brief_inputs
from cortex.flows.run.run import Run
from cortex.storage.published.published import ALL_NAMES, FROM_THE_LAKE, LAKE_VIEWS
from cortex.storage.settings.settings import Settings
from cortex.transforms.brief.candidates import believed

PAGE = Path(__file__).parents[3] / "docs" / "analysis.md"
QUESTIONS = re.findall(
    r"^## \d+\. (.*?)\n\n```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


def test_there_are_twelve_questions():
    assert len(QUESTIONS) == 12


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


def test_the_view_has_what_the_brief_of_each_project_is_chosen_from(samples):
    now = datetime(2026, 10, 20, tzinfo=UTC)
    run = runs.read_only_run(Context(Settings(home=samples), lambda settings: None, lambda: now))
    columns = ["section", "kind", "is_candidate", "memory_id", "rank", "place", "sessions_since", "tier"]
    with duckdb.connect(str(samples / "published" / "memory.duckdb"), read_only=True) as database:
        listed = database.sql(f"select project_id, {', '.join(columns)} from brief_candidates").fetchall()
    projects = sorted(project.project_id for project in run.store.projects.all())
    ranked = {name: believed_of(run, name).select(columns).to_pylist() for name in projects}
    assert listed == [(name, *row.values()) for name in projects for row in ranked[name]]
    assert len(listed) > 10


def believed_of(run: Run, project_id: str) -> pa.Table:
    inputs = brief_inputs(run, project_id)
    is_read_by_model = inputs.is_read_by_model
    return believed(inputs.memories, inputs.sessions, run.policy, is_read_by_model=is_read_by_model)


def test_a_copied_file_keeps_its_tables(samples, tmp_path):
    copy = tmp_path / "elsewhere.duckdb"
    copy.write_bytes((samples / "published" / "memory.duckdb").read_bytes())
    (samples / "published" / "memories.parquet").unlink()
    with duckdb.connect(str(copy), read_only=True) as database:
        for name in set(ALL_NAMES) - {*LAKE_VIEWS, *(table.name for table in FROM_THE_LAKE)}:
            assert database.sql(f"select count(*) from {name}").fetchall()


def test_the_example_for_a_notebook_finds_what_is_near(samples, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    example = example.replace('Path.home() / ".cortex"', "samples")
    exec(example, {"samples": samples})
    near = eval(capsys.readouterr().out)
    assert len(near) == 5 and near[0][0] == 0.0 and near == sorted(near, key=lambda pair: pair[0])
