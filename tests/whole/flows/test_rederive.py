"""Re-derivation: a new extractor changes nothing by itself; it is shown, then promoted or dropped."""

import json
from datetime import timedelta

import pytest
from click.testing import CliRunner

from cortex.cli.main import main
from cortex.flows.engines import runs
from cortex.flows.memory import Memory
from cortex.flows.past import rederive as rederiving
from cortex.flows.past.rebuilding import compare
from cortex.flows.past.rederive import decline, promote, propose_rederivation
from cortex.flows.reading import shards
from cortex.storage.lake import lake
from cortex.storage.lake.manifest import outdated
from cortex.transforms.errors import LossRefused
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.language import candidate
from tests.bench import NOW, SAMPLES, contents, difference, here
from tests.present import present
from tests.transcripts import decisions

# Whole runs, two seconds each: together too long for the quick suite.


@pytest.fixture
def newer(monkeypatch):
    """Return a function that puts a newer extractor in place: it makes patterns of gotchas."""

    def begin():
        replace_extractor(monkeypatch, as_pattern)

    return begin


@pytest.fixture
def blind(monkeypatch):
    """Return a function that puts an extractor in place that sees no gotchas."""
    return lambda: replace_extractor(monkeypatch, lambda row: None)


def as_pattern(row):
    return {**row, "memory_type": "pattern", "text": f"Mind: {row['text']}"}


def replace_extractor(monkeypatch, change):
    """Let an extractor of another version change each gotcha, or leave it out."""

    def read(given, policy, *more):
        events = extract_events(given, policy, *more)
        rows = [change(row) if row["memory_type"] == "gotcha" else row for row in events.to_pylist()]
        return events.from_pylist([row for row in rows if row], schema=events.schema)

    monkeypatch.setattr(shards, "extract_events", read)
    monkeypatch.setattr(candidate, "EXTRACTOR_VERSION", 99)


class Killed(BaseException):
    """Stands for the end of the process."""


def failing(*inputs):
    raise Killed


def asked(bench, then=None, projects=None):
    with runs.opened("rederive", bench.context) as run:
        found = propose_rederivation(run, projects)
        if then:
            then(run, found)
    return {proposal.scope.split("-")[0]: proposal for proposal in found.proposals}


def test_the_same_extractor_and_policy_propose_nothing(bench):
    bench.backfill(SAMPLES)
    for proposal in asked(bench).values():
        assert (proposal.appears, proposal.vanishes, proposal.changes, proposal.texts_to_embed) == (
            [],
            [],
            [],
            0,
        )


def test_a_newer_extractor_changes_no_old_session_by_itself_and_the_run_says_so(bench, newer):
    decisions().write(bench.projects)
    bench.begin()
    before = contents(bench.home)
    newer()
    report = bench.run()
    assert difference(contents(bench.home), before) == {}
    assert "cortex rederive" in report.stages[[s.stage for s in report.stages].index("extract")].note


def test_what_appears_vanishes_and_changes_is_told_and_nothing_is_written(bench, newer):
    decisions().write(bench.projects)
    bench.begin()
    before = contents(bench.home)
    newer()
    kelp = asked(bench)["kelp"]
    assert [row["memory_type"] for row in kelp.appears] == ["pattern"]
    assert [row["memory_type"] for row in kelp.vanishes] == ["gotcha"]
    assert kelp.texts_to_embed == 1 and kelp.unchanged == len(bench.texts()) - 1
    assert difference(contents(bench.home), before) == {}


def test_promoted_the_store_is_what_the_newer_extractor_makes_from_scratch(bench, other, newer):
    decisions().write(bench.projects)
    bench.begin()
    newer()
    asked(bench, promote)
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert asked(bench)["kelp"].appears == []
    with runs.opened("rebuild", bench.context) as run:
        assert compare(run).differences == []
        assert outdated(run.store.lake.manifest, run.policy) == []


def test_killed_after_its_commit_the_next_run_finishes_a_promotion(bench, other, newer, monkeypatch):
    decisions().write(bench.projects)
    bench.begin()
    newer()

    with monkeypatch.context() as patch:
        patch.setattr(rederiving, "PROJECTION", (failing,))
        with pytest.raises(Killed):
            asked(bench, promote)
    bench.run()
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}


def test_dropped_it_is_not_mentioned_again_and_a_session_that_grows_is_read_again(bench, newer):
    talk = decisions()
    talk.write(bench.projects)
    bench.begin()
    newer()
    asked(bench, lambda run, found: decline(run))
    assert "rederive" not in str(bench.run().as_dict())
    talk.assistant("[MEMORY: gotcha] The buoy sends its serial number in place of a level.").write(
        bench.projects
    )
    bench.backfill()
    assert any(text.startswith("Mind: The buoy") for text in bench.texts())


@pytest.fixture
def gotcha(bench):
    """Return the one gotcha of a store, as a row."""
    decisions().write(bench.projects)
    bench.begin()
    [gotcha] = of_type(bench, "gotcha")
    return gotcha


def of_type(bench, memory_type):
    return [row for row in bench.memories() if row["memory_type"] == memory_type]


def resting_on(bench, memory):
    """Return the memories of the turn that another one rests on."""
    turn_id = memory["evidence"][0]["turn_id"]
    return [row for row in bench.memories() if turn_id in {place["turn_id"] for place in row["evidence"]}]


def is_rebuilt_the_same(bench):
    with runs.opened("rebuild", bench.context) as run:
        return compare(run).differences == []


def test_a_pin_survives_other_words_and_another_type(bench, newer, gotcha):
    here().pin(gotcha["memory_id"])
    newer()
    proposal = asked(bench, promote)["kelp"]
    assert (proposal.carried_entries, proposal.kept_memories, proposal.lapsed_entries) == (1, 0, [])
    [pattern] = resting_on(bench, gotcha)
    assert pattern["is_pinned"] and pattern["text"] == f"Mind: {gotcha['text']}"
    assert of_type(bench, "gotcha") == [] and is_rebuilt_the_same(bench)


def test_an_edit_survives_in_the_words_of_the_person(bench, newer, gotcha):
    here().edit(gotcha["memory_id"], "The tide gauge loses an hour on the last Sunday of March.")
    [edited] = of_type(bench, "gotcha")
    newer()
    asked(bench, promote)
    [pattern] = resting_on(bench, gotcha)
    kept = ("text", "trust", "source_type", "updated_at", "evidence")
    assert {name: pattern[name] for name in kept} == {name: edited[name] for name in kept}


def test_a_pin_taken_back_stays_taken_back(bench, newer, gotcha):
    Memory.of(bench.context).pin(gotcha["memory_id"])
    Memory.of(bench.at(NOW + timedelta(hours=1))).unpin(gotcha["memory_id"])
    newer()
    asked(bench, promote)
    assert [row["is_pinned"] for row in resting_on(bench, gotcha)] == [False]


@pytest.mark.parametrize("change", ["pin", "edit"])
def test_what_the_newer_extractor_does_not_see_stays_where_a_person_wanted_it(bench, blind, gotcha, change):
    here().pin(gotcha["memory_id"]) if change == "pin" else here().edit(
        gotcha["memory_id"], "The gauge loses an hour in March."
    )
    [before] = of_type(bench, "gotcha")
    blind()
    proposal = asked(bench, promote)["kelp"]
    assert (proposal.kept_memories, proposal.vanishes, proposal.lapsed_entries) == (1, [], [])
    assert of_type(bench, "gotcha") == [before] and is_rebuilt_the_same(bench)


def test_what_nobody_touched_vanishes_with_the_newer_extractor(bench, blind, gotcha):
    blind()
    assert [row["memory_id"] for row in asked(bench, promote)["kelp"].vanishes] == [gotcha["memory_id"]]
    assert of_type(bench, "gotcha") == []


def test_promoted_twice_the_journal_is_the_same(bench, newer, gotcha):
    here().pin(gotcha["memory_id"])
    newer()
    asked(bench, promote)
    before = contents(bench.home)
    assert asked(bench, promote)["kelp"].carried_entries == 0
    assert difference(contents(bench.home), before) == {}


def test_a_pin_survives_two_extractors_and_the_way_back(bench, newer, gotcha, monkeypatch):
    here().pin(gotcha["memory_id"])
    newer()
    asked(bench, promote)
    replace_extractor(monkeypatch, lambda row: row)
    asked(bench, promote)
    assert [(row["memory_id"], row["is_pinned"]) for row in of_type(bench, "gotcha")] == [
        (gotcha["memory_id"], True)
    ]


def test_killed_before_the_commit_no_entry_is_carried_over(bench, newer, gotcha, monkeypatch):
    here().pin(gotcha["memory_id"])
    newer()
    before = contents(bench.home)
    with monkeypatch.context() as patch:
        patch.setattr(lake, "write_manifest", failing)
        with pytest.raises(Killed):
            asked(bench, promote)
    assert difference(contents(bench.home), before) == {}
    asked(bench, promote)
    assert [row["is_pinned"] for row in resting_on(bench, gotcha)] == [True]


def test_a_session_that_is_forgotten_takes_what_a_promotion_kept_of_it(bench, blind, gotcha):
    here().pin(gotcha["memory_id"])
    blind()
    asked(bench, promote)
    here().forget_session(gotcha["evidence"][0]["session_id"])
    assert of_type(bench, "gotcha") == []
    assert gotcha["text"] not in str(bench.store.journal.read().to_pylist())


def test_forgotten_after_a_promotion_no_words_of_an_edit_stay(bench, newer, gotcha):
    here().edit(gotcha["memory_id"], "March: +1 h")  # too short to be looked for in other texts
    newer()
    asked(bench, promote)
    [pattern] = resting_on(bench, gotcha)
    here().forget(pattern["memory_id"])
    assert "March" not in str(bench.store.journal.read().to_pylist())


def test_what_a_person_forgot_stays_forgotten_whatever_a_newer_extractor_calls_it(bench, newer):
    decisions().write(bench.projects)
    bench.begin()
    [gotcha] = of_type(bench, "gotcha")
    here().forget(gotcha["memory_id"])
    newer()
    asked(bench, promote)
    assert not [row for row in bench.memories() if gotcha["text"] in row["text"]]


def test_a_promotion_that_would_hide_much_says_how_to_go_on_and_leaves_nothing_to_decide(bench, blind):
    for number in range(5):
        decisions(f"s{number}").write(bench.projects)
    bench.backfill()
    blind()
    memory = Memory.of(bench.at(NOW))
    with pytest.raises(LossRefused, match="today's extractor and policy would hide 5 of") as refused:
        memory.rederive(promote=True)
    assert "cortex rederive --promote --accept-loss" in refused.value.next_step
    assert bench.store.lake.notes.refused_loss is None
    assert memory.rederive(promote=True, accepts_loss=True).outcome == "promoted"
    assert [row for row in bench.memories() if row["memory_type"] == "gotcha"] == []


def test_the_command_proposes_promotes_and_refuses_both_at_once(bench, newer):
    decisions().write(bench.projects)
    bench.begin()
    newer()
    shown = json.loads(CliRunner().invoke(main, ["rederive", "--json"], obj=present).stdout)
    assert (shown["outcome"], shown["cost"]["texts_to_embed"]) == ("proposed", 1)
    assert CliRunner().invoke(main, ["rederive", "--promote", "--drop"], obj=present).exit_code == 2
    assert "1 appear, 1 vanish" in CliRunner().invoke(main, ["rederive", "--promote"], obj=present).stdout
    assert json.loads(CliRunner().invoke(main, ["status", "--json"], obj=present).stdout)["outdated"] == []
