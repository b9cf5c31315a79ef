"""Members who push and pull in any order, offline for days: in step in the end, nothing lost or doubled."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from cortex.flows.context import Context
from cortex.flows.operations.share import share
from cortex.flows.operations.share.share import shared_facts
from cortex.storage.remote.share_place import SharePlace
from cortex.storage.settings.reference import read_policy
from cortex.storage.settings.settings import Settings
from cortex.transforms.documents.team_memory import SharedMemory, TeamMemory, snapshot_text
from cortex.transforms.errors import UsageError
from cortex.transforms.journal_entries import Forget, Remember
from cortex.transforms.memory.fold import fold, memory_id
from cortex.transforms.memory.team import SHARE, forgotten_in, team_changes, team_facts
from cortex.transforms.schemas import EVENTS, JOURNAL
from tests.bench import NOW, words_for_a_model
from tests.examples import examples
from tests.whole.flows.test_team import PNPM, UTC_RULE

POLICY = read_policy(None)
PROJECT = "kelp-00000001"
WORDS = [f"Keep rule number {n} of the harbour." for n in range(12)]


@dataclass
class Member:
    """A member as the journal has it: no tables, so that many orders can be tried."""

    place: SharePlace
    own: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    rows: list[dict[str, object]] = field(default_factory=list)

    def note(self, entry, name: str, at: datetime) -> None:
        self.rows.append(entry.to_row(PROJECT, recorded_at=at, memory_id=name))

    def remember(self, text: str, at: datetime) -> None:
        self.own.add(text)
        self.note(Remember(text, "decision", "project"), memory_id(PROJECT, "decision", text), at)

    def forget(self, text: str, at: datetime) -> None:
        self.own.discard(text)
        self.forgotten.add(text)
        name = memory_id(PROJECT, "decision", text)
        self.rows = [row for row in self.rows if row["memory_id"] != name or row["kind"] == "forget"]
        self.note(Forget(), name, at)

    def push(self) -> None:
        memories = [SharedMemory(TeamMemory(t, "decision", "Ana"), NOW.isoformat()) for t in sorted(self.own)]
        self.place.put(PROJECT, snapshot_text(memories).encode())

    def pull(self, at: datetime) -> int:
        journal = JOURNAL.of(self.rows)
        held = team_facts(journal, SHARE)
        facts, _ = shared_facts(self.place.others(PROJECT), held, PROJECT, POLICY, NOW)
        gone = forgotten_in(journal)
        changes = team_changes(held, {n: f for n, f in facts.items() if n not in gone}, SHARE)
        for name, entry in changes.items():
            self.note(entry, name, at)
        return len(changes)

    def active(self) -> list[tuple[str, str]]:
        rows = fold(EVENTS.empty(), JOURNAL.of(self.rows), POLICY).to_pylist()
        return sorted((row["text"], row["trust"]) for row in rows if row["status"] == "active")


@pytest.mark.parametrize("seed", range(examples(25)))
def test_whatever_the_order_all_are_in_step_in_the_end(seed, tmp_path):
    chance = random.Random(seed)
    members = [Member(SharePlace(f"file://{tmp_path}", f"{n:016}")) for n in range(3)]
    at = NOW
    for _ in range(60):
        at += timedelta(minutes=1)
        member, deed = chance.choice(members), chance.choice(["remember", "forget", "push", "pull", "pull"])
        if deed == "remember":
            member.remember(chance.choice(sorted(set(WORDS) - member.forgotten)), at)
        elif deed == "forget" and member.own:
            member.forget(chance.choice(sorted(member.own)), at)
        elif deed == "push":
            member.push()
        elif deed == "pull":
            member.pull(at)
    for member in members:
        member.push()
    for member in members:
        at += timedelta(minutes=1)
        member.pull(at)
        others = set().union(*(other.own for other in members if other is not member))
        colleagues = others - member.own - member.forgotten
        expected = [(text, "user") for text in member.own] + [(text, "colleague") for text in colleagues]
        assert member.active() == sorted(expected)
        assert member.pull(at) == 0, "a second pull changes nothing"


def test_a_damaged_snapshot_takes_nothing_away(tmp_path):
    ana, bo, cy = (Member(SharePlace(f"file://{tmp_path}", name)) for name in ("ana", "bo", "cy"))
    ana.remember(PNPM, NOW)
    bo.remember(UTC_RULE, NOW)
    for member in (ana, bo):
        member.push()
    cy.pull(NOW)
    (tmp_path / "share" / PROJECT / "ana.json").write_bytes(b"{")
    bo.own.clear()
    bo.push()
    cy.pull(NOW + timedelta(minutes=1))
    assert cy.active() == [(PNPM, "colleague")]


def test_what_is_in_both_the_repository_and_the_place_is_withdrawn_once_both_are(tmp_path):
    cy = Member(SharePlace(f"file://{tmp_path}", "cy"))
    name = memory_id(PROJECT, "decision", PNPM)
    shared, _ = shared_facts(
        {"share/x.json": snapshot_text([SharedMemory(TeamMemory(PNPM, "decision", "Ana"), "")]).encode()},
        {}, PROJECT, POLICY, NOW,
    )  # fmt: skip
    from dataclasses import replace

    merged = {name: replace(shared[name], source=None)}
    steps = [({}, shared, SHARE), ({}, merged, None), (shared, {}, SHARE), (merged, {}, None)]
    active = []
    for minute, (held, facts, source) in enumerate(steps):
        for _, entry in team_changes(held, facts, source).items():
            cy.note(entry, name, NOW + timedelta(minutes=minute))
        active.append(len(cy.active()))
    assert active == [1, 1, 1, 0]


def test_without_a_place_nothing_is_shared(tmp_path):
    context = Context(Settings(home=tmp_path), words_for_a_model, lambda: NOW, folder=tmp_path)
    with pytest.raises(UsageError, match="no place"):
        share.plan_push(context)
