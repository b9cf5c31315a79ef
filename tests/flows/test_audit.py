"""Write, audit, publish: what breaks a promise is not shown, the last good version stays, the run says so."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.cli import main
from cortex.errors import AuditFailed
from cortex.flows import extract as extracting
from cortex.flows import stages
from cortex.flows.report import last_report
from cortex.storage.reference import read_policy
from cortex.transforms.audit import (
    brief_breaches,
    edges_breaches,
    events_breaches,
    loss_breaches,
    memories_breaches,
    turns_breaches,
)
from cortex.transforms.schemas import EDGES, MEMORIES
from tests.flows.conftest import contents, difference, leftovers
from tests.rows import event, events, memories, memory, turn, turns
from tests.transcripts import Talk, decisions

POLICY = read_policy(None)
SECRET = "ghp_" + "a1B2" * 9


def test_sound_rows_pass():
    rows = turns(turn(1), turn(2))
    assert turns_breaches(rows) == []
    assert events_breaches(events(event(turn_id=rows["turn_id"][0].as_py())), rows) == []
    assert memories_breaches(memories(memory()), MEMORIES.empty(), "reef-1", POLICY) == []


def test_a_secret_is_named_by_row_and_kind_and_never_by_its_text():
    found = turns_breaches(turns(turn(1, f"use {SECRET}", turn_id="t1"), turn(2)))
    assert [(b.table, b.row_id) for b in found] == [("turns", "t1")]
    assert SECRET not in str(found) and "secret" in found[0].reason


def test_a_secret_is_looked_for_in_new_and_changed_memories_only():
    live = memories(memory("m1", f"use {SECRET}"))
    assert memories_breaches(live, live, "reef-1", POLICY) == []
    edited = memories(memory("m1", f"always use {SECRET}"))
    assert [b.row_id for b in memories_breaches(edited, live, "reef-1", POLICY)] == ["m1"]


def test_an_edge_to_a_memory_that_is_not_there_is_an_orphan():
    edge = {
        "edge_id": "e", "project_id": "p", "source_id": "m1", "target_id": "gone",
        "edge_type": "refines", "strength": 0.5, "rule": "similarity",
    }  # fmt: skip
    [found] = edges_breaches(EDGES.of([edge]), memories(memory("m1")))
    assert (found.row_id, found.reason) == ("e", "orphan: an end is no memory")


@pytest.mark.parametrize(
    ("kept", "lost", "is_wrong"), [(60, 60, False), (59, 61, True), (0, 39, False), (0, 40, True)]
)
def test_a_scope_may_lose_half_of_its_memories_and_the_two_sessions_of_a_rewind(kept, lost, is_wrong):
    live = memories(*[memory(f"m{n}") for n in range(kept + lost)])
    assert bool(loss_breaches(live.slice(0, kept), live, "reef-1", POLICY)) == is_wrong


@settings(max_examples=30, deadline=None)
@given(junk=st.integers(0, 30), good=st.integers(0, 60))
def test_junk_is_a_breach_from_a_tenth_of_twenty_shown_memories_on(junk, good):
    rows = [memory(f"j{n}", "ok." + " " * n) for n in range(junk)]
    rows += [memory(f"g{n}", f"Reading {_word(n)} is kept in UTC.") for n in range(good)]
    found = memories_breaches(memories(*rows), MEMORIES.empty(), "reef-1", POLICY)
    is_wrong = junk + good >= 20 and junk > 0.1 * (junk + good)
    assert len([b for b in found if b.reason.startswith("junk")]) == (junk if is_wrong else 0)


def _word(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03d}")


def test_a_brief_over_its_budget_or_with_a_secret_is_not_published():
    assert brief_breaches("- Keep UTC.", "p", POLICY, 100) == []
    assert brief_breaches("word " * 200, "p", POLICY, 100)[0].reason == "over its budget of 100 tokens"
    assert brief_breaches(f"- {SECRET}", "p", POLICY, 100)[0].reason.startswith("secret")


def test_a_failed_audit_keeps_the_last_good_version_and_the_next_run_goes_on(bench, other, monkeypatch):
    decisions("s1").write(bench.projects)
    bench.backfill()
    before = contents(bench.home)
    decisions("s2").write(bench.projects)
    decisions("s3", cwd="/home/dev/reef").write(bench.projects)
    real = extracting.extract_events
    with monkeypatch.context() as patch:
        patch.setattr(extracting, "extract_events", lambda t, p: _spoilt(real(t, p)))
        with pytest.raises(AuditFailed, match=r"kelp.*unknown trust") as failed:
            bench.backfill()
    assert failed.value.exit_code == 12
    kelp = [name for name in contents(bench.home) if name.startswith("kelp")]
    assert {name: contents(bench.home)[name] for name in kelp} == {name: before[name] for name in kelp}
    assert bench.texts("reef")  # another project goes on
    told = last_report(bench.store.runs)
    assert {b["reason"] for b in told["breaches"]} == {"unknown trust"}
    bench.run()
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []


def _spoilt(made):
    """Return events of which those of the project kelp have a trust that there is not."""
    rows = made.to_pylist()
    for row in rows:
        row["trust"] = "friend" if row["project_id"].startswith("kelp") else row["trust"]
    return made.from_pylist(rows, schema=made.schema)


@pytest.mark.parametrize(
    ("stage", "table"),
    [("memories_breaches", "memories"), ("edges_breaches", "edges"), ("passages_breaches", "passages")],
)
def test_a_table_whose_audit_fails_is_not_replaced(bench, monkeypatch, stage, table):
    decisions("s1").write(bench.projects)
    bench.backfill()
    before = {name: rows for name, rows in contents(bench.home).items() if name.endswith(table)}
    Talk("s2").user("Which clock?").assistant(
        "[MEMORY: decision] Stations keep their clocks in UTC because readings are compared."
    ).write(bench.projects)
    from cortex.transforms.audit import Breach

    with monkeypatch.context() as patch:
        patch.setattr(stages, stage, lambda *rows: [Breach(table, "row-1", "made up")])
        with pytest.raises(AuditFailed, match="row-1: made up"):
            bench.backfill()
    assert {name: rows for name, rows in contents(bench.home).items() if name.endswith(table)} == before
    bench.run()
    assert any("UTC" in text for text in bench.texts())


def test_the_command_leaves_with_12_and_quotes_no_text(bench, monkeypatch):
    decisions("s1").write(bench.projects)
    bench.stage()
    real = extracting.extract_events
    monkeypatch.setattr(extracting, "extract_events", lambda t, p: _spoilt(real(t, p)))
    done = CliRunner().invoke(main, ["run", "--engine", "plain", "--json"])
    assert done.exit_code == 12
    assert json.loads(done.stdout)["error"]["code"] == "CORTEX_E_AUDIT"
    assert "SQLite" not in done.output
