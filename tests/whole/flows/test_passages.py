"""Claims about passages: a new session costs no other one anything, and what comes out is the same."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import compare
from cortex.flows.publishing import briefs, passages
from cortex.storage.lake import lake
from cortex.storage.tables.lance_tables import lancedb
from cortex.storage.tables.search_file import complete_index
from cortex.storage.tables.tables import HAS_VECTOR, INDEX_TEXT
from cortex.transforms.schemas import PASSAGES
from tests.bench import NOW, Bench
from tests.transcripts import Talk, forked, resumed

# Whole runs, a second or two each.

DAY = timedelta(days=1)


def harvest(name, **chosen):
    """Return a session that shares no turn with those of other names."""
    return (
        Talk(name, **chosen)
        .user(f"How should {name} keep the harvest records?")
        .assistant(f"We keep the harvest records of {name} in SQLite because one writer is enough.")
        .assistant(f"[MEMORY: gotcha] The tide table of {name} counts hours from local midnight, not UTC.")
    )


@pytest.fixture
def begun(bench):
    """Return a bench with one session in its store."""
    harvest("s1").write(bench.projects)
    bench.begin()
    return bench


@pytest.fixture
def cut(monkeypatch):
    """Return the names of the transcripts that passages were cut from, run after run."""
    seen: list[str] = []

    def noting(turns, policy):
        seen.extend(sorted({name.rpartition("/")[2] for name in turns["file"].to_pylist()}))
        return whole(turns, policy)

    # A brief reads what was said in the last twenty sessions whatever changed: as much in any project.
    monkeypatch.setattr(briefs, "_last_passages", lambda run, project_id: PASSAGES.empty())
    whole = passages.passages_of
    monkeypatch.setattr(passages, "passages_of", noting)
    return seen


def indexed(bench):
    """Return all that is kept of passages: rows of the tables, and what the search index has of them."""
    scopes = bench.store.tables.scopes()
    columns = [*PASSAGES.arrow.names, INDEX_TEXT, HAS_VECTOR, "row_hash"]
    rows = {scope: bench.store.tables.open(scope, "passages").read(columns).to_pylist() for scope in scopes}
    index = bench.store.tables.open_index(scopes, "passages")
    found = index.search_words("harvest records tide table", 50, ["passage_id"])
    scored = sorted((row["passage_id"], round(row["score"], 9)) for row in found.to_pylist())
    return rows, index.read().to_pylist(), scored


def has_same_tables(bench):
    """Check that tables made from the lake alone are the live ones."""
    with runs.opened("rebuild", bench.context) as run:
        assert compare(run).differences == []


def histories():
    """Return sessions of all kinds, in the order in which they are written: each a name and its records."""
    first, second = harvest("s3"), harvest("s5")
    grown = harvest("s5").user("And the levels?").assistant("We keep the levels in the same file.")
    copy = [*second.records, *resumed(second.records)[:3]]
    # It stands before what it was made of.
    earlier = next(name for name in map(str, range(99)) if Talk(name).session_id < first.session_id)
    return [
        first,
        second,
        grown,
        forked(first.records, earlier).assistant("The fork says so too."),
        replace_records(Talk("s6"), copy),
        harvest("s7"),
        harvest("s8", cwd="/home/dev/reef"),
    ]


def replace_records(talk, records):
    talk.records = [{**each, "sessionId": talk.session_id} for each in records]
    return talk


def test_only_what_changed_is_cut_again_and_tables_are_as_if_made_at_once(home, tmp_path, monkeypatch, cut):
    monkeypatch.setattr(lake, "MAXIMUM_FILES_PER_PARTITION", 2)  # compacted on the way
    bench = Bench(home, tmp_path / "projects")
    counts = []
    for talk in histories():
        cut.clear()
        bench.backfill(talk.write(bench.projects))
        counts.append(len(cut))
    assert counts == [1, 1, 1, 1, 0, 1, 1]  # what the fork was made of has no turn of its own any more
    at_once = Bench(tmp_path / "other", bench.projects)
    at_once.backfill()
    assert indexed(bench) == indexed(at_once)
    has_same_tables(bench)


def test_what_was_rewound_is_in_no_passage_whether_the_rewind_comes_at_once_or_later(home, tmp_path):
    bench, talk = Bench(home, tmp_path / "projects"), Talk("s1").user("Where is the tide table?")
    talk.assistant("In the archive.").user("Move the gauge to the mole.").assistant("The gauge is moved.")
    talk.call("Bash", "moved", command="mv gauge mole")
    bench.backfill(talk.write(bench.projects))
    assert any("mole" in row["text"] for row in indexed(bench)[1])
    talk.rewind().user("Leave it on the pier.").assistant("It stays.")
    bench.backfill(talk.write(bench.projects))
    at_once = Bench(tmp_path / "other", bench.projects)
    at_once.backfill()
    texts = [row["text"] for row in indexed(bench)[1]]
    assert not any("mole" in text or "moved" in text for text in texts) and "It stays." in texts
    assert indexed(bench) == indexed(at_once)
    has_same_tables(bench)


def test_an_entry_of_the_journal_cuts_nothing(begun, cut):
    begun.run("nightly", NOW + DAY)
    assert cut == []


def test_tables_whose_index_holds_other_rows_are_written_as_a_whole(begun):
    (scope,) = [name for name in begun.store.tables.scopes() if name != "global"]
    tables = begun.store.tables
    rows = tables.open(scope, "passages").read([*PASSAGES.arrow.names, INDEX_TEXT])
    assert tables.update(scope, "passages", rows.select(PASSAGES.arrow.names), {"file": []}) is None
    before = indexed(begun)
    tables.index.drop(scope)
    begun.backfill(harvest("s2").write(begun.projects))
    with_two = indexed(begun)
    assert with_two[0] != before[0]
    assert {row["passage_id"] for row in with_two[1]} == {row["passage_id"] for row in with_two[0][scope]}


def gone(tables, before):
    shutil.rmtree(tables)


def without_table(tables, before):
    for path in tables.glob("*/passages.lance"):
        shutil.rmtree(path)


def without_index(tables, before):
    (tables / "search.sqlite").unlink()


def older_tables(tables, before):
    shutil.rmtree(tables)
    shutil.copytree(before, tables)


def older_table(tables, before):
    for path in tables.glob("*/passages.lance"):
        shutil.rmtree(path)
        shutil.copytree(before / path.relative_to(tables), path)


def older_index(tables, before):
    shutil.copy(before / "search.sqlite", tables / "search.sqlite")


def fewer_rows(tables, before):
    for path in tables.glob("*/passages.lance"):
        lancedb().connect(str(path.parent)).open_table("passages").delete("line < 4")


def other_hashes(tables, before):
    for path in tables.glob("*/passages.lance"):
        lancedb().connect(str(path.parent)).open_table("passages").update(values={"line": 99, "row_hash": 7})


def other_rows_in_the_index(tables, before):
    with closing(sqlite3.connect(tables / "search.sqlite")) as index:
        index.execute("update bodies set hash = 7")
        index.commit()


LOSSES = [gone, without_table, without_index]
OTHERS = [older_tables, older_table, older_index, fewer_rows, other_hashes, other_rows_in_the_index]
LOST = [(each, True) for each in [*LOSSES, *OTHERS]]


# Without a new session a run opens no table that is there: what it holds is not looked at.
@pytest.mark.spread(3)
@pytest.mark.parametrize(("lose", "is_new"), [*((each, False) for each in LOSSES), *LOST])
def test_a_table_that_is_not_the_one_noted_is_made_again_from_all(begun, home, tmp_path, lose, is_new):
    before = tmp_path / "before"
    complete_index(home / "tables" / "search.sqlite")
    shutil.copytree(home / "tables", before)
    begun.backfill(harvest("s2").write(begun.projects))
    complete_index(home / "tables" / "search.sqlite")
    lose(home / "tables", before)
    if is_new:
        begun.stage(harvest("s3").write(begun.projects))
    begun.run()
    at_once = Bench(tmp_path / "other", begun.projects)
    at_once.backfill()
    assert indexed(begun) == indexed(at_once)


def test_killed_before_it_is_noted_the_same_is_cut_again(begun, tmp_path, monkeypatch):
    begun.stage(harvest("s2").write(begun.projects))

    class Killed(BaseException):
        """Stand for a kill."""

    def kill(*given):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("cortex.flows.stages.embed.with_cut", kill)
        with pytest.raises(Killed):
            begun.run()
    begun.run()
    at_once = Bench(tmp_path / "other", begun.projects)
    at_once.backfill()
    assert indexed(begun) == indexed(at_once)


def test_too_many_changed_transcripts_are_cut_with_all_others(begun, monkeypatch, cut):
    monkeypatch.setattr(passages, "TRANSCRIPTS_MOST", 0)
    cut.clear()
    begun.backfill(harvest("s2").write(begun.projects))
    assert len(cut) == 2
    has_same_tables(begun)


def test_a_note_of_other_files_counts_for_nothing(begun, cut):
    store = begun.store
    cuts = {name: each._replace(files="others") for name, each in store.lake.notes.cuts.items()}
    store.lake.note(replace(store.lake.notes, cuts=cuts))
    cut.clear()
    begun.backfill(harvest("s2").write(begun.projects))
    assert len(cut) == 2
