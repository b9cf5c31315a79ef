"""Write, audit, publish: what breaks a promise is not shown, the last good version stays, the run says so."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.cli.main import main
from cortex.flows import briefs, extraction, fingerprints
from cortex.flows.stages import decay, embed, link
from cortex.storage.reference import read_policy
from cortex.storage.reports import last_report
from cortex.transforms.audit import (
    brief_violations,
    edges_violations,
    events_violations,
    memories_violations,
    turns_violations,
)
from cortex.transforms.brief.choice import Choice
from cortex.transforms.brief.render import lay_out
from cortex.transforms.errors import AuditFailed
from cortex.transforms.masking import without_secrets
from cortex.transforms.redaction.redact import Redactor, kinds_of_secret
from cortex.transforms.schemas import EDGES, MEMORIES
from tests.examples import examples
from tests.flows.conftest import NOW, contents, difference, leftovers
from tests.present import present
from tests.rows import event, events, memories, memory, turn, turns
from tests.transcripts import Talk, decisions

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
    found = memories_violations(memories(*rows), MEMORIES.empty(), "reef-1", POLICY)
    is_wrong = junk + good >= 20 and junk > 0.1 * (junk + good)
    assert len([b for b in found if b.reason.startswith("junk")]) == (junk if is_wrong else 0)


def _word(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03d}")


def test_a_brief_over_its_budget_or_with_a_secret_is_not_published():
    assert brief_violations("- Keep UTC.", "p", POLICY, 100) == []
    assert brief_violations("word " * 200, "p", POLICY, 100)[0].reason == "over its budget of 100 tokens"
    assert brief_violations(f"- {SECRET}", "p", POLICY, 100)[0].reason.startswith("secret")


@pytest.mark.slow
@pytest.mark.first_is_quick
@pytest.mark.parametrize("unseen", ["\u200b", "\u00ad", "\ufe0f", "\u034f", "\U000e0041", "\u202e", "\x08"])
def test_a_secret_split_by_unseen_characters_is_marked_and_the_brief_goes_on(bench, unseen):
    split = unseen.join(SECRET)
    talk = decisions("s1")
    talk.user("And the mirror?").assistant(
        f"[MEMORY: decision] We keep the mirror behind the key {split} because the depot asks for it."
    )
    talk.write(bench.projects)
    bench.backfill()
    brief = bench.store.published.brief(bench.store.tables.scopes()[-1])
    everything = json.dumps([brief, *bench.texts()], ensure_ascii=False).replace(unseen, "")
    assert "[REDACTED:github-token]" in everything and SECRET not in everything
    assert last_report(bench.store.runs)["breaches"] == []


@pytest.mark.slow
def test_what_an_older_version_stored_is_marked_and_stops_nothing(bench, monkeypatch):
    talk = decisions("s1")
    talk.user("And the mirror?").assistant(
        f"[MEMORY: decision] We keep the mirror behind the key {SECRET} because the depot asks for it."
    )
    talk.write(bench.projects)
    with monkeypatch.context() as patch:
        patch.setattr(Redactor, "redact", lambda self, text: (text, 0))
        patch.setattr(Redactor, "findings", lambda self, text: [])
        bench.backfill()
        assert SECRET in str(bench.memories())
    monkeypatch.setattr(fingerprints, "STAGES_VERSION", "a newer one")
    bench.run()
    assert SECRET not in str(bench.memories()) and "[REDACTED:github-token]" in str(bench.memories())


@pytest.mark.slow
def test_a_line_that_would_show_a_secret_is_left_out_and_the_others_are_shown(bench, monkeypatch):
    decisions("s1").write(bench.projects)
    real = briefs.choose

    def spoilt(*args, **options):
        first, *rest = real(*args, **options)
        return [replace(first, text=f"{first.text} {SECRET}"), *rest]

    before = bench.backfill()
    assert before.left_out == []
    [scope] = [name for name in bench.store.tables.scopes() if name.startswith("kelp")]
    whole = bench.store.published.brief(scope).splitlines()
    monkeypatch.setattr(briefs, "choose", spoilt)
    report = bench.run(now=NOW + timedelta(days=1))
    shown = bench.store.published.brief(scope).splitlines()
    assert SECRET not in str(shown)
    items = [[line for line in lines if line.startswith("- ")] for lines in (whole, shown)]
    assert len(items[0]) - 1 == len(items[1]) > 0
    assert [line.reason for line in report.left_out] == ["would show a secret: github-token"]
    assert SECRET not in json.dumps(last_report(bench.store.runs))


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


@pytest.mark.slow
def test_a_failed_audit_keeps_the_last_good_version_and_the_next_run_goes_on(bench, other, monkeypatch):
    decisions("s1").write(bench.projects)
    bench.begin()
    before = contents(bench.home)
    decisions("s2").write(bench.projects)
    decisions("s3", cwd="/home/dev/reef").write(bench.projects)
    real = extraction.extract_events
    with monkeypatch.context() as patch:
        patch.setattr(extraction, "extract_events", lambda *given: _spoilt(real(*given)))
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


@pytest.mark.slow
@pytest.mark.first_is_quick
@pytest.mark.parametrize(
    ("module", "stage", "table"),
    [
        (decay, "memories_violations", "memories"),
        (link, "edges_violations", "edges"),
        (embed, "passages_violations", "passages"),
    ],
)
def test_a_table_whose_audit_fails_is_not_replaced(bench, monkeypatch, module, stage, table):
    decisions("s1").write(bench.projects)
    bench.begin()
    before = {name: rows for name, rows in contents(bench.home).items() if name.endswith(table)}
    Talk("s2").user("Which clock?").assistant(
        "[MEMORY: decision] Stations keep their clocks in UTC because readings are compared."
    ).write(bench.projects)
    from cortex.transforms.audit import Violation

    with monkeypatch.context() as patch:
        patch.setattr(module, stage, lambda *rows: [Violation(table, "row-1", "made up")])
        with pytest.raises(AuditFailed, match="row-1: made up"):
            bench.backfill()
    assert {name: rows for name, rows in contents(bench.home).items() if name.endswith(table)} == before
    bench.run()
    assert any("UTC" in text for text in bench.texts())


def test_the_command_leaves_with_12_and_quotes_no_text(bench, monkeypatch):
    decisions("s1").write(bench.projects)
    bench.stage()
    real = extraction.extract_events
    monkeypatch.setattr(extraction, "extract_events", lambda *given: _spoilt(real(*given)))
    done = CliRunner().invoke(main, ["run", "--engine", "plain", "--json"], obj=present)
    assert done.exit_code == 12
    assert json.loads(done.stdout)["error"]["code"] == "CORTEX_E_AUDIT"
    assert "SQLite" not in done.output
