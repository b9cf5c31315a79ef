"""Write, audit, publish: what breaks a promise is not shown, the last good version stays, the run says so."""

import json

from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.cli.main import main
from cortex.flows.reading import shards
from cortex.storage.settings.reference import read_policy
from cortex.transforms.audit import (
    brief_violations,
    edges_violations,
    events_violations,
    memories_violations,
    turns_violations,
)
from cortex.transforms.brief.explanation import Choice
from cortex.transforms.brief.render import lay_out
from cortex.transforms.masking import without_secrets
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.schemas import EDGES, MEMORIES
from tests.examples import examples
from tests.present import present
from tests.rows import event, events, memories, memory, turn, turns
from tests.transcripts import decisions

POLICY = read_policy(None)
SECRET = "ghp_" + "a1B2" * 9


def test_sound_rows_pass():
    rows = turns(turn(1), turn(2))
    assert turns_violations(rows) == []
    assert events_violations(events(event(turn_id=rows["turn_id"][0].as_py())), rows) == []
    assert memories_violations(memories(memory()), MEMORIES.empty(), "reef-1", POLICY) == []


def test_a_secret_is_named_by_row_and_kind_and_never_by_its_text():
    found = turns_violations(turns(turn(1, f"use {SECRET}", turn_id="t1"), turn(2)))
    assert [(b.table, b.row_id) for b in found] == [("turns", "t1")]
    assert SECRET not in str(found) and "secret" in found[0].reason


def test_a_secret_is_looked_for_in_new_and_changed_memories_only():
    live = memories(memory("m1", f"use {SECRET}"))
    assert memories_violations(live, live, "reef-1", POLICY) == []
    edited = memories(memory("m1", f"always use {SECRET}"))
    assert [b.row_id for b in memories_violations(edited, live, "reef-1", POLICY)] == ["m1"]


def test_an_edge_to_a_memory_that_is_not_there_is_an_orphan():
    edge = {
        "edge_id": "e", "project_id": "p", "source_id": "m1", "target_id": "gone",
        "edge_type": "refines", "strength": 0.5, "rule": "similarity",
    }  # fmt: skip
    [found] = edges_violations(EDGES.of([edge]), memories(memory("m1")))
    assert (found.row_id, found.reason) == ("e", "orphan: an end is no memory")


@settings(max_examples=examples(30), deadline=None)
@given(junk=st.integers(0, 30), good=st.integers(0, 60))
def test_junk_is_a_violation_from_a_tenth_of_twenty_shown_memories_on(junk, good):
    rows = [memory(f"j{n}", "ok." + " " * n) for n in range(junk)]
    rows += [memory(f"g{n}", f"Reading {_word(n)} is kept in UTC.") for n in range(good)]
    violations = memories_violations(memories(*rows), MEMORIES.empty(), "reef-1", POLICY)
    is_wrong = junk + good >= 20 and junk > 0.1 * (junk + good)
    assert len([b for b in violations if b.reason.startswith("junk")]) == (junk if is_wrong else 0)


def test_junk_is_short_or_code_in_no_script_and_repetitions_count_from_the_second():
    rows = [memory(f"a{n:02}", f"Reading {_word(n)} is kept in UTC.") for n in range(10)]
    rows += [
        memory("b_short", "Use uv."),
        memory("c_code", "x[i] = (y[j] + 1) / (z ** 2); --k; }}"),
        memory("d_signs", "1234 5678 9012 +++"),
        memory("e_other_script", "測定値は必ず協定世界時で保存する"),
        memory("f_again", "reading *AAA* is kept in utc", memory_type="gotcha"),
        memory("f_third", "Reading aaa: is kept in UTC", memory_type="pattern"),
        memory("f_more", "reading aab is kept in UTC", memory_type="pattern"),
        memory("g_archived", "Use uv.", status="archived"),
        memory("h_merged", "Reading aaa is kept in UTC.", merged_into="m"),
        *(
            memory(f"o{n}", "Outcome: Committed: Keep readings in UTC.", memory_type="outcome")
            for n in range(5)
        ),
        memory("raw", "}{", memory_type="code"),
    ]
    violations = memories_violations(memories(*rows), MEMORIES.empty(), "reef-1", POLICY)
    flaws = {(b.row_id, b.reason.partition(":")[0]) for b in violations}
    junk, repeated = ("b_short", "c_code", "d_signs"), ("f_again", "f_third", "f_more")
    assert flaws == {*((n, "junk") for n in junk), *((n, "duplicate") for n in repeated)}


def _word(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03d}")


def test_a_brief_over_its_budget_or_with_a_secret_is_not_published():
    assert brief_violations("- Keep UTC.", "p", POLICY, 100) == []
    assert brief_violations("word " * 200, "p", POLICY, 100)[0].reason == "over its budget of 100 tokens"
    assert brief_violations(f"- {SECRET}", "p", POLICY, 100)[0].reason.startswith("secret")


def test_a_secret_that_takes_two_lines_costs_one_of_them():
    halves = [
        Choice("Decisions", name, text, True, "")
        for name, text in (("a", "- Password:"), ("b", "hunter2-and-more"))
    ]
    sound = Choice("Decisions", "c", "- Keep UTC.", True, "")
    assert kinds_of_secret(lay_out([*halves, sound], project_name="kelp"))
    kept = without_secrets([*halves, sound], project_name="kelp")
    assert not kinds_of_secret(lay_out(kept, project_name="kelp"))
    assert [choice.memory_id for choice in kept if choice.is_shown] == ["a", "c"]


def _spoilt(made):
    """Return events of which those of the project kelp have a trust that there is not."""
    rows = made.to_pylist()
    for row in rows:
        row["trust"] = "friend" if row["project_id"].startswith("kelp") else row["trust"]
    return made.from_pylist(rows, schema=made.schema)


def test_the_command_leaves_with_12_and_quotes_no_text(bench, monkeypatch):
    decisions("s1").write(bench.projects)
    bench.stage()
    real = shards.extract_events
    monkeypatch.setattr(shards, "extract_events", lambda *given: _spoilt(real(*given)))
    done = CliRunner().invoke(main, ["run", "--engine", "plain", "--json"], obj=present)
    assert done.exit_code == 12
    assert json.loads(done.stdout)["error"]["code"] == "CORTEX_E_AUDIT"
    assert "SQLite" not in done.output
