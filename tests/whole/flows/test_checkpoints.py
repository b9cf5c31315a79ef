"""Consolidation is shown before, taken back after, and not done again against a person's word (spec 9.1)."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from cortex.flows.operations.edit.review import MemoryMerge
from cortex.transforms.errors import NotFound
from tests.bench import NOW, Bench, contents, here
from tests.present import clock_at
from tests.transcripts import Talk

# Whole runs, two seconds each: together too long for the quick suite.

PAIR = ("Use SQLite in WAL mode.", "Always use SQLite in WAL mode here.")
OTHER = ("Name stations in lower case letters.", "Name stations in lower case letters always.")


pytestmark = pytest.mark.usefixtures("in_kelp")


@pytest.fixture
def say(bench):
    """Return what lets an assistant say decisions, each in a session of its own: nothing is on purpose."""

    def say_each(*texts: str, minutes: int = 0) -> None:
        for text in texts:
            Talk(text).user("Go on.").assistant(f"[MEMORY: decision] {text}").write(bench.projects)
        bench.backfill(now=NOW + timedelta(minutes=minutes))

    return say_each


def consolidate(minutes: int = 10) -> None:
    with clock_at(NOW + timedelta(minutes=minutes)):
        here().consolidate()


def undo(name: str | None = None, minutes: int = 20) -> Sequence[MemoryMerge]:
    with clock_at(NOW + timedelta(minutes=minutes)):
        return here().undo_merges(name).merges


def active(bench: Bench) -> list[str]:
    return sorted(m["text"] for m in bench.memories() if m["status"] == "active")


def test_a_dry_run_shows_the_merge_and_changes_nothing(bench, say):
    say(*PAIR)
    before = contents(bench.home)
    [proposal] = here().propose_merges()
    assert sorted(proposal.texts) == sorted(PAIR)
    assert contents(bench.home) == before


def test_undo_brings_the_members_back_and_removes_what_was_made_of_them(bench, say):
    say(*PAIR)
    before = {m["memory_id"]: (m["text"], m["status"], m["confidence"]) for m in bench.memories()}
    consolidate()
    assert len(active(bench)) == 1
    undo()
    after = {m["memory_id"]: (m["text"], m["status"], m["confidence"]) for m in bench.memories()}
    assert after == before


def test_undo_adds_to_the_journal_and_takes_nothing_from_it(bench, say):
    say(*PAIR)
    consolidate()
    before = bench.store.journal.read().to_pylist()
    undo()
    after = bench.store.journal.read().to_pylist()
    assert [row for row in after if row not in before and row["kind"] != "unmerge"] == []
    assert [row for row in before if row not in after] == []


def test_what_was_taken_back_is_not_merged_again(bench, say):
    say(*PAIR)
    consolidate()
    undo()
    bench.run("nightly", NOW + timedelta(days=1))
    assert active(bench) == sorted(PAIR)


def test_undo_takes_back_the_last_consolidation_alone(bench, say):
    say(*PAIR)
    consolidate()
    say(*OTHER, minutes=11)
    consolidate(minutes=12)
    assert len(active(bench)) == 2
    undo()
    assert len(active(bench)) == 3 and set(OTHER) <= set(active(bench))


def test_undo_to_a_checkpoint_takes_back_all_since(bench, say):
    say(*PAIR)
    with clock_at(NOW + timedelta(minutes=5)):
        here().checkpoint("before tidying")
    consolidate()
    say(*OTHER, minutes=11)
    consolidate(minutes=12)
    undo("before tidying")
    assert active(bench) == sorted([*PAIR, *OTHER])


def test_a_checkpoint_that_is_not_there_is_named_with_those_that_are(bench, say):
    say(*PAIR)
    here().checkpoint("before tidying")
    with pytest.raises(NotFound, match="Known: before tidying"):
        undo("never made")


def test_undo_with_nothing_merged_changes_nothing(bench, say):
    say(*PAIR)
    before = contents(bench.home)
    assert undo() == []
    assert contents(bench.home) == before
