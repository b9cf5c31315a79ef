"""Claims about folding in part: a session costs its own memories, and the tables are as if made at once."""

import shutil
from datetime import timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import compare
from cortex.flows.run import run as running
from tests.bench import NOW, Bench, here
from tests.transcripts import Talk, forked

# Whole runs, a second or two each.

HOUR = timedelta(hours=1)


def harvest(name):
    """Return a session with facts of its own and one that all of them say."""
    return (
        Talk(name)
        .user(f"We keep the harvest records of {name} in SQLite because one writer is enough.")
        .assistant("[MEMORY: decision] Chose Redis over Memcached for the cache.")
        .assistant(f"[MEMORY: gotcha] The tide table of {name} counts hours from local midnight, not UTC.")
    )


@pytest.fixture
def whole(monkeypatch):
    """Return the scopes that were folded as a whole, run after run."""
    seen: list[str] = []
    fold = running.fold_joined

    def noting(events, journal, policy, scope, **chosen):
        seen.append("global" if scope == "global" else "project")
        return fold(events, journal, policy, scope, **chosen)

    monkeypatch.setattr(running, "fold_joined", noting)
    return seen


pytestmark = pytest.mark.usefixtures("in_kelp")


def is_as_from_the_lake(bench):
    with runs.opened("rebuild", bench.context) as run:
        return compare(run).differences == []


def test_sessions_and_entries_are_folded_in_part_and_nothing_differs(home, tmp_path, whole):
    bench = Bench(home, tmp_path / "projects")
    bench.backfill(harvest("s1").write(bench.projects), harvest("s2").write(bench.projects))
    here().remember("Tides are in metres.", memory_type="decision")  # the first word of this folder
    whole.clear()
    grown = harvest("s1").user("Actually, use Memcached for the cache instead of Redis.")
    for at, talk in enumerate([harvest("s3"), grown, forked(grown.records, "s4").user("Always say so.")]):
        bench.stage(talk.write(bench.projects))
        bench.run(now=NOW + at * HOUR)
    [gotcha, *_] = [row for row in bench.memories() if "midnight" in row["text"]]
    here().pin(gotcha["memory_id"])
    here().remember("Levels are stored as millimetres.", memory_type="decision")
    here().recall("harvest records", all_projects=True)
    bench.stage(harvest("s5").write(bench.projects))
    bench.run(now=NOW + 4 * HOUR)
    assert "project" not in whole
    assert is_as_from_the_lake(bench)
    here().forget(gotcha["memory_id"])
    bench.stage(harvest("s6").write(bench.projects))
    bench.run(now=NOW + 5 * HOUR)
    assert is_as_from_the_lake(bench)


def test_another_policy_folds_all_again(bench, home, whole):
    harvest("s1").write(bench.projects)
    bench.begin()
    whole.clear()
    bench.stage(harvest("s2").write(bench.projects))
    (home / "policy").mkdir()
    rows = "term,is_single,tag,kind,why\nharvest,false,farm,tool,ours\n"
    (home / "policy" / "technologies.csv").write_text(rows)
    bench.run()
    assert "project" in whole
    assert is_as_from_the_lake(bench)


@pytest.mark.parametrize("at", ["with_row_hash", "note"])
def test_killed_while_it_writes_the_next_run_gives_the_same(bench, monkeypatch, at):
    harvest("s1").write(bench.projects)
    bench.begin()
    bench.stage(harvest("s2").write(bench.projects))

    class Killed(BaseException):
        """Stand for a kill."""

    def kill(*given, **chosen):
        raise Killed

    with monkeypatch.context() as patched:
        if at == "note":  # the table is written by then
            patched.setattr(running.Readings, "fold_note", kill)
        else:
            patched.setattr("cortex.storage.tables.search_index.SearchIndex.replace", kill)
        with pytest.raises(Killed):
            bench.run()
    bench.run(now=NOW + HOUR)
    assert is_as_from_the_lake(bench)


def test_tables_of_an_earlier_day_are_folded_from_the_start(bench, home, tmp_path, whole):
    harvest("s1").write(bench.projects)
    bench.begin()
    shutil.copytree(home / "tables", tmp_path / "before")
    bench.backfill(harvest("s2").write(bench.projects))
    shutil.rmtree(home / "tables")
    shutil.copytree(tmp_path / "before", home / "tables")
    whole.clear()
    bench.stage(harvest("s3").write(bench.projects))
    bench.run()
    assert "project" in whole
    assert is_as_from_the_lake(bench)
