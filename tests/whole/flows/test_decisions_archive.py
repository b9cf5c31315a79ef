"""decisions-archive.md: written by render, the same bytes for the same memories, erased by forgetting."""

from datetime import timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import compare
from cortex.storage.published.published import Published
from tests.bench import NOW, fixed_state, here
from tests.present import clock_at
from tests.traces import traces
from tests.transcripts import START, decisions

# Whole runs, two seconds each: together too long for the quick suite.

WORD = "quagsireplum"


@pytest.fixture
def archived(bench, monkeypatch):
    """Return a store in which one later session archives a decision, and one has."""
    (bench.home / "policy").mkdir(parents=True)
    limits = "immortal_full_sessions,1,sessions,test\nimmortal_short_sessions,1,sessions,test\n"
    (bench.home / "policy" / "thresholds.csv").write_text(f"name,value,unit,why\n{limits}")
    fact = f"[MEMORY: decision] The {WORD} gauge reports every six minutes because batteries are small."
    decisions("s1").user("And the gauge?").assistant(fact).write(bench.projects)
    decisions("s2", start=START + timedelta(days=1)).write(bench.projects)
    with clock_at(NOW):
        bench.backfill()
        yield bench


def archive(bench) -> str:
    [project] = bench.store.projects.all()
    return bench.store.published.archive(project.project_id)


def brief(bench) -> str:
    [project] = bench.store.projects.all()
    return bench.store.published.brief(project.project_id)


def test_what_later_sessions_passed_by_stands_in_the_archive_alone(archived):
    assert f"The {WORD} gauge" in archive(archived)
    assert WORD not in brief(archived)
    assert "decisions-archive.md, `cortex brief --archive`" in brief(archived)
    assert "s2 writes levels" in brief(archived)


def test_a_run_with_nothing_new_writes_no_byte_of_it(archived):
    before = fixed_state(archived.home)
    archived.run()
    assert fixed_state(archived.home) == before


def test_a_recall_brings_a_decision_back_into_the_brief(archived):
    here().recall(f"{WORD} gauge", project="kelp", limit=3)
    archived.run()
    assert WORD in brief(archived)
    assert WORD not in archive(archived)


def test_forgotten_it_is_gone_from_the_archive_too(archived):
    [memory] = [row for row in archived.memories() if WORD in row["text"]]
    here().forget(memory["memory_id"])
    assert traces(archived.home, WORD) == []


def test_the_check_compares_the_archive(archived):
    [project] = archived.store.projects.all()
    with runs.opened("rebuild", archived.context) as run:
        assert compare(run).differences == []
        run.store.published.publish_archive(project.project_id, "")
        assert [one.table for one in compare(run).differences] == ["archive"]


def test_an_archive_is_published_where_the_project_has_no_brief(home):
    assert Published(home).publish_archive("kelp", "- Older.\n")
    assert Published(home).archive("kelp") == "- Older.\n"
