"""docs/analysis.md: each question's SQL runs, in `cortex sql` and in any DuckDB client, with one result."""

import duckdb
import pytest

from cortex.storage.published.published import ALL_NAMES
from tests.store.cli.test_analysis import QUESTIONS

# The samples hold nothing of these: no contradiction, no failing Bash command said twice, no session that was
# shown a brief.
MAY_BE_EMPTY = {
    "What contradicts what?", "What has to be said again and again?",
    "Which memories are shown and never used?",
}  # fmt: skip


@pytest.mark.parametrize(("question", "query"), QUESTIONS, ids=[title for title, _ in QUESTIONS])
def test_each_question_has_an_answer(cortex, samples, question, query):
    answer = cortex("sql", query, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["rows"] or question in MAY_BE_EMPTY
    with duckdb.connect(str(samples / "published" / "memory.duckdb"), read_only=True) as database:
        assert len(database.sql(query).fetchall()) == len(answer.json["rows"])


def test_as_of_a_day_every_table_is_there(cortex, samples):
    for name in ALL_NAMES:
        answer = cortex("sql", f"select count(*) from {name}", "--as-of", "2026-10-20", "--json")
        assert answer.code == 0, answer.err
