"""
The commit log: numbered entries, each written once by whoever was first; the lease of a store stands in it.

Writers agree by nothing but this. An entry takes the lease, keeps it, commits a state of the store, or gives
the lease back. As each entry stands at the position behind the last one that its writer knew, whoever was
overtaken is refused, however long it stood still and whatever its clock says.

Old entries are removed, but for the first and each SPAN-th: a milestone, which shows whoever is behind it
that the log went on. So a position that is free again is known by the milestone behind it.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from cortex.transforms.errors import LeaseLost, ManifestDamaged, StoreBusy, StoreUnreachable

TAKE, RENEW, COMMIT, RELEASE = "take", "renew", "commit", "release"

# Each entry of such a number stays; the others go when the log is a span beyond the next one.
SPAN = 1_000

# How often an attempt that was not answered is repeated with the same bytes.
ATTEMPTS = 3


class CommitLog(Protocol):
    """Entries from 1 on; old ones may be gone (`is_removable`)."""

    def read(self, number: int) -> bytes | None:
        """Return entry `number`; None if there is none yet, or none any more. Raises StoreUnreachable."""

    def try_commit(self, number: int, content: bytes) -> bool:
        """
        Write entry `number` unless there is one; return whether this call did.

        Raises StoreUnreachable if that is not known: it may be written later all the same.
        """


@dataclass(frozen=True)
class LogEntry:
    """
    One entry of the log.

    `holder` is the id of a machine's copy, `term` the number of the entry by which it took the lease: what
    fences it. `tree` names the state of the store that counts from here on, empty before the first commit.
    `nonce` makes each entry one of its kind; `at` is the writer's clock, for people alone.
    """

    kind: str
    holder: str
    term: int
    tree: str
    nonce: str
    at: str = ""

    def as_bytes(self) -> bytes:
        """Return the entry as the log keeps it."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def of_bytes(cls, content: bytes) -> "LogEntry":
        """Return what `as_bytes` gave. Raises ManifestDamaged for anything else."""
        try:
            entry = cls(**json.loads(content))
            is_sound = all(isinstance(value, str) for name, value in asdict(entry).items() if name != "term")
        except (RecursionError, TypeError, ValueError):
            is_sound = False
        if not is_sound or not isinstance(entry.term, int):
            raise ManifestDamaged(
                "an entry in the log of the store is damaged: Cortex did not write it like this.",
                "Try again: the answer may have been cut. If it stays, restore an older version of it.",
            )
        return entry


def append(log: CommitLog, number: int, entry: LogEntry) -> bool:
    """
    Write an entry, once and for certain; return whether it is this one that stands at `number`.

    An answer that was lost is found by looking: no other entry has the same nonce. What was written where an
    old entry had been removed does not count. Raises StoreUnreachable if neither writing nor looking is
    answered.
    """
    content = entry.as_bytes()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            is_there = log.try_commit(number, content) or log.read(number) == content
            return is_there and not is_passed(log, number)
        except StoreUnreachable:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def last_entry(log: CommitLog, known: int = 0) -> tuple[int, LogEntry | None]:
    """
    Return the last entry with its number; (0, None) for an empty log.

    `known` is a number that had an entry, 0 for none: with it, few looks at an unchanged log are enough.
    Raises StoreUnreachable, and ManifestDamaged for a log that somebody else wrote.
    """
    low = known
    while True:
        low = _furthest(log, low, 1)
        content = log.read(low) if low else None
        # Read last: without it nothing that was looked for above can have been removed.
        if not is_passed(log, low):
            return low, None if content is None else LogEntry.of_bytes(content)
        low = _furthest(log, milestone_after(low), SPAN)


def _furthest(log: CommitLog, low: int, unit: int) -> int:
    """Return the last of the entries `low`, `low + unit`, … : ahead in doubled steps, then back by halves."""
    step = unit
    while log.read(low + step) is not None:
        low += step
        step *= 2
    high = low + step
    while high - low > unit:
        middle = low + (high - low) // (2 * unit) * unit
        if log.read(middle) is None:
            high = middle
        else:
            low = middle
    return low


def milestone_after(number: int) -> int:
    """Return the number of the first milestone behind an entry."""
    return (number // SPAN + 1) * SPAN


def is_passed(log: CommitLog, number: int) -> bool:
    """Return whether the log reached the milestone behind an entry: that one may have been removed."""
    return log.read(milestone_after(number)) is not None


def is_removable(number: int, last: int) -> bool:
    """Return whether an entry may be removed from a log that has the entry `last`."""
    return number > 1 and number % SPAN != 0 and milestone_after(number) + SPAN <= last


# -- The lease of a store elsewhere, in its commit log: one machine writes, and one that lost it is refused.

# A holder of whom nothing was seen for this long is taken for dead; each waits by its own clock, from when it
# first saw the last entry. A holder that only stood still is refused from then on.
LEASE_SECONDS = 60.0

# A holder shows that it lives when its last entry is this old.
RENEW_SECONDS = LEASE_SECONDS / 4

# How often one who waits looks.
LOOK_SECONDS = 0.5


@dataclass
class Timing:
    """The clock and the pause that a lease goes by; both in seconds, the clock's beginning means nothing."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    at: Callable[[], str] = lambda: datetime.now(UTC).isoformat(timespec="seconds")
    nonce: Callable[[], str] = lambda: secrets.token_hex(8)


@dataclass
class RemoteLease:
    """
    One holder's view of the log. `holder` is the id of this machine's copy: whoever holds the copy's own lock
    takes over from an earlier process of the copy at once. `number` is the last entry known. `lock` keeps
    the renewing thread and the writing one apart.
    """

    log: CommitLog
    holder: str
    number: int = 0
    timing: Timing = field(default_factory=Timing)
    term: int = 0
    tree: str = ""
    is_lost: bool = False
    was_left_open: bool = False  # the holder before did not give the lease back: it may have left objects
    lock: AbstractContextManager[object] = field(default_factory=threading.Lock, repr=False)
    _written_at: float = 0.0

    def take(self) -> None:
        """
        Take the lease; waits where its holder may be dead. `tree` is then the state to begin with.

        Raises StoreBusy if another holder lives, StoreUnreachable.
        """
        self.term, self.is_lost = 0, False
        number, entry = last_entry(self.log, self.number)
        seen_at = self.timing.clock()
        while True:
            is_dead = self.timing.clock() - seen_at >= LEASE_SECONDS
            if entry is None or entry.kind == RELEASE or entry.holder == self.holder or is_dead:
                if self._took(number, entry):
                    return
            else:
                self.timing.sleep(LOOK_SECONDS)
            before, (number, entry) = (number, entry), last_entry(self.log, number)
            if number != before[0]:
                seen_at = self.timing.clock()
                if before[1] and entry and entry.kind in (RENEW, COMMIT) and entry.term == before[1].term:
                    raise busy(entry)

    def _took(self, number: int, before: LogEntry | None) -> bool:
        entry = self._entry(TAKE, number + 1, before.tree if before else "")
        if not append(self.log, number + 1, entry):
            return False
        self.number = self.term = number + 1
        self.tree, self._written_at = entry.tree, self.timing.clock()
        self.was_left_open = before is not None and before.kind != RELEASE
        return True

    def commit(self, tree: str) -> None:
        """Make `tree` the state that counts. Raises LeaseLost once overtaken, StoreUnreachable."""
        self._write(COMMIT, tree)

    def renew(self) -> None:
        """Show that this holder lives, unless it just wrote. Raises as `commit`."""
        if self.timing.clock() - self._written_at >= RENEW_SECONDS:
            self._write(RENEW)

    def release(self) -> None:
        """Give the lease back. Raises as `commit`."""
        self._write(RELEASE)
        self.term = 0

    def _write(self, kind: str, tree: str | None = None) -> None:
        with self.lock:
            while True:
                if self.is_lost or not self.term:
                    raise lost()
                number = self.number + 1
                entry = self._entry(kind, self.term, self.tree if tree is None else tree)
                if append(self.log, number, entry):
                    self.number, self.tree, self._written_at = number, entry.tree, self.timing.clock()
                    return
                self._pass_own(number)

    def _pass_own(self, number: int) -> None:
        """Go on behind an own entry that was written without an answer; any other ends the lease."""
        content = self.log.read(number)
        entry = LogEntry.of_bytes(content) if content else None
        is_own = entry is not None and (entry.holder, entry.term) == (self.holder, self.term)
        if entry is None or not is_own or is_passed(self.log, number):
            self.is_lost = True
        else:
            self.number, self.tree = number, entry.tree

    def _entry(self, kind: str, term: int, tree: str) -> LogEntry:
        return LogEntry(kind, self.holder, term, tree, self.timing.nonce(), self.timing.at())


def busy(entry: LogEntry) -> StoreBusy:
    """Return the error for a store that another machine writes to."""
    return StoreBusy(
        f"another machine is writing to this store (copy {entry.holder}, last entry {entry.at}).",
        "Wait for it to end, then try again; your changes are kept on this machine until then.",
    )


def lost() -> LeaseLost:
    """Return the error for a holder that was overtaken."""
    return LeaseLost(
        "another machine took over the store while this one was paused. Nothing that it wrote was changed.",
        "Run the same command again.",
    )
