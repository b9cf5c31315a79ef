"""
The commit log: numbered entries, each written once by whoever was first; all else follows from it.

Writers agree by nothing but this. An entry takes the lease, keeps it, commits a state of the store, or gives
the lease back. As each entry stands at the position behind the last one that its writer knew, whoever was
overtaken is refused, however long it stood still and whatever its clock says.

Old entries are removed, but for the first and each SPAN-th: a milestone, which shows whoever is behind it
that the log went on. So a position that is free again is known by the milestone behind it.
"""

import json
from dataclasses import asdict, dataclass
from typing import Protocol

from cortex.transforms.errors import StoreUnreachable

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
        """Return what `as_bytes` gave. Raises ValueError and TypeError for anything else."""
        return cls(**json.loads(content))


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
    Raises StoreUnreachable, and ValueError for a log that somebody else wrote.
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
