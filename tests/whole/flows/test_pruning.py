"""Age erases nothing: a pruned memory leaves tables, search, briefs; the lake keeps its words (spec 8.2)."""

from datetime import timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import compare, rebuild
from cortex.transforms.schemas import EVENTS, TURNS
from tests.bench import NOW, Bench, here
from tests.present import clock_at
from tests.rows import entry
from tests.traces import traces
from tests.transcripts import Talk, decisions

# Whole runs, two seconds each: together too long for the quick suite.

GOTCHA = "The gauge at Mewstone pier wakes at six minutes past, not at the hour."
LATER = NOW + timedelta(days=1)


@pytest.fixture(autouse=True)
def _here_is_kelp(monkeypatch, tmp_path):
    (tmp_path / "kelp").mkdir()
    monkeypatch.chdir(tmp_path / "kelp")
    with clock_at(LATER):
        yield


@pytest.fixture
def pruned(bench: Bench) -> Bench:
    """Return a bench on which one gotcha of two sessions was pruned."""
    decisions("s1").write(bench.projects)
    Talk("s2").user("Go.").assistant(f"[MEMORY: gotcha] {GOTCHA}").write(bench.projects)
    bench.begin()
    bench.store.journal.write(tombstone(bench))
    return bench


def tombstone(bench, kind="prune", **more):
    memory = row_of(bench)
    names = ("memory_type", "source_type", "trust")
    payload = {name: memory[name] for name in names}
    payload |= {name: memory[name].isoformat() for name in ("created_at", "updated_at")}
    payload = {"pruned": payload} if kind == "forget" else payload
    return entry(
        kind, memory["project_id"], payload, recorded_at=NOW, memory_id=memory["memory_id"], actor="decay"
    )


def row_of(bench):
    [memory] = [row for row in bench.memories() if "Mewstone" in row["text"]]
    return memory


def lake_rows(bench):
    lake = bench.store.lake
    return [lake.read(table).sort_by(table.key[0]).to_pylist() for table in (TURNS, EVENTS)]


def test_a_pruned_memory_leaves_a_tombstone_and_the_lake_keeps_every_word(pruned):
    before, name = lake_rows(pruned), row_of(pruned)["memory_id"]
    pruned.run("nightly", LATER)
    assert lake_rows(pruned) == before
    rows = {row["memory_id"]: row for row in pruned.memories()}
    assert (rows[name]["status"], rows[name]["text"]) == ("pruned", "")
    assert not [row for row in rows.values() if "Mewstone" in row["text"]]
    [scope] = [s for s in pruned.store.tables.scopes() if s.startswith("kelp")]
    assert "Mewstone" not in pruned.store.published.brief(scope)
    assert traces(pruned.home, "Mewstone") != []


def test_what_an_older_cortex_was_about_to_erase_for_its_age_is_kept(bench):
    decisions("s1").write(bench.projects)
    Talk("s2").user("Go.").assistant(f"[MEMORY: gotcha] {GOTCHA}").write(bench.projects)
    bench.begin()
    before = lake_rows(bench)
    bench.store.journal.write(tombstone(bench, "forget"))
    bench.run("nightly", LATER)
    assert lake_rows(bench) == before
    assert GOTCHA not in bench.texts()


def test_what_is_said_again_is_back_with_all_its_evidence(pruned):
    pruned.run("nightly", LATER)
    # Sooner, the assistant might only repeat what the last brief with it said.
    later = LATER + timedelta(days=4)
    Talk("s3", start=later).user("Go.").assistant(f"[MEMORY: gotcha] {GOTCHA}").write(pruned.projects)
    pruned.backfill(now=later + timedelta(hours=1))
    memory = row_of(pruned)
    assert (memory["status"], memory["session_count"]) == ("active", 2)


def test_what_was_said_again_before_the_pruning_and_read_after_it_is_back(pruned):
    pruned.run("nightly", LATER)
    yesterday = NOW - timedelta(hours=6)
    Talk("s3", start=yesterday).user("Go.").assistant(f"[MEMORY: gotcha] {GOTCHA}").write(pruned.projects)
    pruned.backfill(now=LATER + timedelta(hours=1))
    assert row_of(pruned)["status"] == "active"


def test_a_pruned_memory_can_still_be_forgotten_for_good(pruned):
    name = row_of(pruned)["memory_id"]
    pruned.run("nightly", LATER)
    with clock_at(LATER + timedelta(hours=1)):
        here().forget(name)
    assert traces(pruned.home, "Mewstone") == []
    assert name not in {row["memory_id"] for row in pruned.memories()}


def test_tables_rebuilt_after_a_pruning_equal_the_live_ones(pruned):
    pruned.run("nightly", LATER)
    with runs.opened("rebuild", pruned.at(LATER)) as run:
        assert compare(run).differences == []
        rebuild(run)
        assert compare(run).differences == []
    assert GOTCHA not in pruned.texts()
