"""The fold law on whole stores: tables made from the lake again equal the live ones, row for row."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.past import rebuilding
from cortex.flows.past.rebuilding import compare, rebuild
from cortex.storage.store import Store
from cortex.storage.tables.lance_tables import RebuiltTables, lancedb
from cortex.storage.tables.tables import VECTOR
from tests.bench import NOW, SAMPLES, WordEmbedder, contents, difference, here, leftovers
from tests.rows import entry
from tests.transcripts import decisions

# Whole runs, two seconds each: together too long for the quick suite.

DAY = timedelta(days=1)


def compared(bench, now=NOW):
    with runs.opened("rebuild", bench.at(now)) as run:
        return compare(run)


def rebuilt(bench, now=NOW):
    with runs.opened("rebuild", bench.at(now)) as run:
        rebuild(run)


def harvest_talk():
    """Return a session of three memories, each of them tagged."""
    return decisions().assistant("[MEMORY: learned] The gauge of s1 sends a level every ten minutes.")


def journal_of_every_kind(bench):
    """Write one entry of every kind about the memories of the project kelp."""
    rows = sorted(bench.memories(), key=lambda row: row["text"])
    scope, ids = rows[0]["project_id"], [row["memory_id"] for row in rows]
    told = {"text": "Levels are millimetres.", "memory_type": "decision", "category": "project"}
    wishes = [
        ("remember", "mine", told),
        ("import", "theirs", {**told, "text": "The old tool rounded levels."}),
        ("edit", ids[0], {"text": "Harvest records stay in SQLite for good."}),
        ("pin", ids[0], {}),
        ("unpin", "mine", {}),
        ("supersede", "theirs", {"by": "mine"}),
        ("archive", ids[1], {}),
        ("restore", ids[1], {}),
        ("recall", None, {"memory_ids": [ids[0], ids[1]]}),
        ("merge", "both", {"members": ["mine", ids[1]], "text": "Both.", "memory_type": "decision"}),
        ("forget", ids[2], {"turn_ids": []}),
    ]
    for minute, (kind, name, payload) in enumerate(wishes):
        at = NOW.replace(minute=minute)
        bench.store.journal.write(entry(kind, scope, payload, recorded_at=at, memory_id=name))


def test_the_samples_rebuilt_are_what_they_were(bench):
    bench.backfill(SAMPLES)
    before = contents(bench.home)
    assert (compared(bench).differences, compared(bench).notes) == ([], [])
    rebuilt(bench)
    assert difference(contents(bench.home), before) == {}
    assert compared(bench).differences == []
    assert leftovers(bench.home) == [] and not (bench.home / "rebuilding").exists()


def test_a_store_with_every_kind_of_journal_entry_rebuilds_to_itself(bench):
    harvest_talk().write(bench.projects)
    bench.begin()
    journal_of_every_kind(bench)
    bench.run("nightly")
    before = contents(bench.home)
    assert compared(bench).differences == []
    rebuilt(bench)
    assert difference(contents(bench.home), before) == {}
    bench.run("nightly", NOW + 40 * DAY)
    assert compared(bench, NOW + 40 * DAY).differences == []


def test_on_a_later_day_memories_are_compared_as_of_the_day_they_were_aged(bench):
    decisions().write(bench.projects)
    bench.begin()
    found = compared(bench, NOW + 5 * DAY)
    assert found.differences == []
    assert all("as of 2026-11-01" in note or "brief" in note for note in found.notes) and found.notes


def test_an_entry_that_waits_for_a_run_is_no_difference(bench):
    harvest_talk().write(bench.projects)
    bench.begin()
    journal_of_every_kind(bench)
    assert compared(bench).differences == []


def test_every_changed_cell_and_row_is_listed(bench):
    decisions().write(bench.projects)
    bench.begin()
    [scope] = [name for name in bench.store.tables.scopes() if name.startswith("kelp")]
    handle = _handle(bench, scope)
    first, second = sorted(row["memory_id"] for row in bench.memories())[:2]
    handle.update(where=f"memory_id = '{first}'", values={"trust": "tool"})
    handle.delete(f"memory_id = '{second}'")
    found = {(d.table, d.key, d.column, d.live, d.rebuilt) for d in compared(bench).differences}
    assert found == {
        ("memories", first, "trust", "tool", "assistant"),
        ("memories", second, "", "missing", "there"),
    }
    rebuilt(bench)
    assert compared(bench).differences == []


def test_vectors_come_from_the_lake(bench):
    decisions().write(bench.projects)
    bench.begin()
    before = vectors_in(bench)

    class Mute(WordEmbedder):
        def embed(self, texts, *, as_query=False):
            raise AssertionError("asked for a text that has its vector")

    rebuilt(replace(bench, embedder_of=lambda settings: Mute()))
    assert compared(bench).differences == []
    assert vectors_in(bench) == before != {}


def vectors_in(bench):
    """Return the vectors of all tables, by scope, table and key."""
    tables, keys = bench.store.tables, {"memories": "memory_id", "passages": "passage_id"}
    return {
        (scope, name): tables.open(scope, name).read([key, VECTOR]).to_pylist()
        for scope in tables.scopes()
        for name, key in keys.items()
    }


class Killed(BaseException):
    """Stands for the end of the process."""


MOMENTS = {
    "tables beside": (rebuilding, "_rebuilt"),
    "notes gone": (rebuilding, "_forget_outputs"),
    "a scope in place": (RebuiltTables, "put_in_place"),
    "published": (rebuilding, "_publish"),
}


@pytest.mark.spread(3)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("after", [False, True])
def test_killed_around_a_step_the_next_run_mends_it(bench, monkeypatch, moment, after):
    decisions().write(bench.projects)
    bench.begin()
    before = contents(bench.home)
    place, name = MOMENTS[moment]
    real = getattr(place, name)

    def dies(*args):
        if after:
            real(*args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(place, name, dies)
        with pytest.raises(Killed):
            rebuilt(bench)
    bench.run()
    assert difference(contents(bench.home), before) == {}
    assert compared(bench).differences == []
    assert not (bench.home / "rebuilding").exists()


def test_killed_between_the_two_renames_the_next_run_makes_the_tables_again(bench, monkeypatch):
    decisions().write(bench.projects)
    bench.begin()
    before = contents(bench.home)

    def half(tables, scope):
        (tables.home / "old").mkdir(parents=True, exist_ok=True)
        (bench.home / "tables" / scope).rename(tables.home / "old" / scope)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RebuiltTables, "put_in_place", half)
        with pytest.raises(Killed):
            rebuilt(bench)
    bench.run()
    assert difference(contents(bench.home), before) == {}


def test_what_is_remembered_and_recalled_leaves_the_check_clean(bench):
    decisions().write(bench.projects)
    bench.begin()
    here().recall("harvest records", all_projects=True, limit=5)
    assert compared(bench).differences == []
    bench.run()
    assert compared(bench).differences == []
    assert Store(bench.home).journal.waiting() == []


def _handle(bench, scope):
    return lancedb().connect(str(bench.home / "tables" / scope)).open_table("memories")
