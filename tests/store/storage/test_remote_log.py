"""The commit log: whatever is delayed or stopped, what was acknowledged is there once, in order."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cortex.storage.remote import commit_log as remote_log
from cortex.storage.remote.commit_log import (
    COMMIT,
    LEASE_SECONDS,
    RELEASE,
    TAKE,
    LogEntry,
    RemoteLease,
    Timing,
    append,
    is_removable,
    last_entry,
)
from cortex.transforms.errors import LeaseLost, StoreBusy, StoreUnreachable
from tests.examples import cases


@dataclass
class FaultyLog:
    """
    A log in memory; `faults` says of the next calls: unanswered, done later, or not at all.

    `entries` is all that was written to it; what was `removed` may be written again, and must not count.
    """

    entries: list[bytes] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    strays: dict[int, bytes] = field(default_factory=dict)
    late: list[tuple[int, bytes]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def read(self, number: int) -> bytes | None:
        if self.faults and self.faults[0] == "down":
            self.faults.pop(0)
            raise StoreUnreachable("no answer.", "")
        if number in self.removed:
            return self.strays.get(number)
        return self.entries[number - 1] if 0 < number <= len(self.entries) else None

    def try_commit(self, number: int, content: bytes) -> bool:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "late":
            self.late.append((number, content))
        if fault in ("late", "down"):
            raise StoreUnreachable("no answer.", "")
        written = self.write(number, content)
        if fault == "unanswered":
            raise StoreUnreachable("no answer.", "")
        return written

    def write(self, number: int, content: bytes) -> bool:
        if number in self.removed:
            return self.strays.setdefault(number, content) is content
        if number != len(self.entries) + 1:
            assert number <= len(self.entries), "a gap"
            return False
        self.entries.append(content)
        return True

    def trim(self) -> None:
        """Remove all that may be removed."""
        last = len(self.entries)
        self.removed |= {number for number in range(1, last) if is_removable(number, last)}

    def arrive(self) -> None:
        """Let the delayed requests reach the log now, as one that was sent long ago may."""
        for number, content in self.late:
            self.write(number, content)
        self.late.clear()


@dataclass
class Clock:
    """One machine's clock: it is wrong by any amount, and stands still unless it is moved."""

    seconds: float

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def entries_of(log: FaultyLog) -> list[LogEntry]:
    return [LogEntry.of_bytes(content) for content in log.entries]


class Writers(RuleBasedStateMachine):
    """Four machines that take, commit, stand still and are killed, over a network that loses and delays."""

    @initialize(wrong_by=st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4))
    def begin(self, wrong_by):
        self.log, self.count = FaultyLog(), 0
        self.leases = [self.lease(f"copy{n}", Clock(seconds)) for n, seconds in enumerate(wrong_by)]
        self.acknowledged: list[str] = []
        self.doubtful: set[str] = set()

    def lease(self, holder, clock):
        return RemoteLease(
            self.log, holder, timing=Timing(lambda: clock.seconds, clock.sleep, lambda: "", self.nonce)
        )

    def nonce(self):
        self.count += 1
        return str(self.count)

    @rule(faults=st.lists(st.sampled_from(["", "late", "unanswered", "down"]), max_size=4))
    def network(self, faults):
        self.log.faults = faults

    @rule()
    def delayed_requests_arrive(self):
        self.log.arrive()

    @rule(n=st.integers(0, 3))
    def take(self, n):
        lease = self.leases[n]
        try:
            lease.take()
        except (StoreBusy, StoreUnreachable):
            lease.term = 0
            return
        assert entries_of(self.log)[-1].term == lease.term == len(self.log.entries)
        committed = [entry.tree for entry in entries_of(self.log) if entry.kind == COMMIT]
        assert lease.tree == (committed[-1] if committed else "")

    @rule(n=st.integers(0, 3))
    def commit(self, n):
        lease, tree = self.leases[n], self.nonce()
        is_holder = bool(lease.term) and not self.is_overtaken(lease)
        try:
            lease.commit(tree)
        except LeaseLost:
            assert not is_holder, "refused wrongly"
        except StoreUnreachable:
            self.doubtful.add(tree)
        else:
            assert is_holder, "a stale holder committed"
            self.acknowledged.append(tree)

    def is_overtaken(self, lease):
        return any(entry.kind == TAKE for entry in entries_of(self.log)[lease.term :])

    @precondition(lambda self: any(lease.term for lease in self.leases))
    @rule(n=st.integers(0, 3))
    def release(self, n):
        try:
            self.leases[n].release()
        except (LeaseLost, StoreUnreachable):
            self.leases[n].term = 0

    @rule()
    def old_entries_are_removed(self):
        self.log.trim()

    @rule(n=st.integers(0, 3))
    def killed(self, n):
        old = self.leases[n]
        self.leases[n] = RemoteLease(self.log, old.holder, timing=old.timing)

    @invariant()
    def nothing_is_lost_or_doubled(self):
        if hasattr(self, "log"):
            trees = [entry.tree for entry in entries_of(self.log) if entry.kind == COMMIT]
            assert [tree for tree in trees if tree not in self.doubtful] == self.acknowledged
            assert len(trees) == len(set(trees))

    @invariant()
    def only_the_holder_writes(self):
        holder = 0
        for number, entry in enumerate(entries_of(self.log) if hasattr(self, "log") else [], start=1):
            holder = number if entry.kind == TAKE else holder
            assert entry.term == holder


Writers.TestCase.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
TestWriters = Writers.TestCase


@pytest.fixture(autouse=True)
def short_span(monkeypatch):
    monkeypatch.setattr(remote_log, "SPAN", 4)


def log_of(length: int) -> FaultyLog:
    return FaultyLog([LogEntry(TAKE, "a", n, "", str(n)).as_bytes() for n in range(1, length + 1)])


@cases("is_trimmed", [False, True])
@cases("length", [0, 1, 2, 3, 7, 8, 9, 11, 12, 13, 1_000])
def test_the_last_entry_is_found_from_anywhere(length, is_trimmed):
    log = log_of(length)
    if is_trimmed:
        log.trim()
    for known in {0, 1, length // 3, length // 2, length - 1, length} & set(range(length + 1)):
        number, entry = last_entry(log, known)
        assert (number, entry and entry.term) == (length, length or None)


def test_the_first_entry_the_milestones_and_the_last_two_spans_stay():
    log = log_of(43)
    log.trim()
    assert [n for n in range(1, 44) if log.read(n)] == [1, *range(4, 36, 4), *range(36, 44)]


@cases("known", range(1, 40))
def test_whoever_was_away_cannot_write_where_an_entry_was_removed(known):
    log = log_of(43)
    log.trim()
    stale = RemoteLease(log, "a", known, term=known)
    with pytest.raises(LeaseLost):
        stale.commit("stale")
    assert len(log.strays) <= 1 and last_entry(log, known)[0] == 43
    stale.take()
    assert stale.term == 44


def test_entries_that_are_removed_while_one_looks_are_passed_over():
    log = log_of(9)
    looked: list[int] = []
    real = log.read

    def read(number):
        looked.append(number)
        content = real(number)
        if len(looked) == 2:
            log.entries.extend(log_of(50).entries[9:])
            log.trim()
        return content

    log.read = read
    assert last_entry(log, 7)[0] == 50


def test_an_entry_that_arrives_where_one_was_removed_ends_nobodys_lease():
    log, clock = log_of(43), Clock(0)
    log.trim()
    assert not append(log, 6, LogEntry(TAKE, "late", 6, "", "late"))
    holder = RemoteLease(log, "a", timing=Timing(lambda: clock.seconds, clock.sleep))
    holder.take()
    holder.commit("state")
    assert (last_entry(log)[0], last_entry(log, 5)[0]) == (45, 45)


def test_one_who_waits_goes_by_its_own_clock():
    log = FaultyLog()
    fast, slow = Clock(1e9), Clock(-1e9)
    dead = RemoteLease(log, "dead", timing=Timing(lambda: fast.seconds, fast.sleep))
    dead.take()
    waiting = RemoteLease(log, "waiting", timing=Timing(lambda: slow.seconds, slow.sleep))
    waiting.take()
    assert slow.seconds + 1e9 == pytest.approx(LEASE_SECONDS, abs=1)
    with pytest.raises(LeaseLost):
        dead.commit("stale")
    waiting.commit("state")
    waiting.release()
    assert [entry.kind for entry in entries_of(log)] == [TAKE, TAKE, COMMIT, RELEASE]


def test_a_living_holder_is_not_waited_for():
    log, clock = FaultyLog(), Clock(0)
    holder = RemoteLease(log, "holder", timing=Timing(lambda: clock.seconds, clock.sleep))
    holder.take()
    timing = Timing(lambda: clock.seconds, lambda _: holder.commit("state"))
    second = RemoteLease(log, "second", timing=timing)
    with pytest.raises(StoreBusy) as busy:
        second.take()
    assert not isinstance(busy.value, LeaseLost)
    holder.commit("later")


def test_the_next_process_of_a_copy_waits_for_nobody():
    log, clock = FaultyLog(), Clock(0)
    RemoteLease(log, "copy", timing=Timing(lambda: clock.seconds, clock.sleep)).take()
    RemoteLease(log, "copy", timing=Timing(lambda: clock.seconds, clock.sleep)).take()
    assert clock.seconds == 0
