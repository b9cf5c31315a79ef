"""
The commit log: numbered entries, each written once by whoever was first; all else follows from it.

Writers agree by nothing but this. An entry takes the lease, keeps it, commits a state of the store, or gives
the lease back. As each entry stands at the position behind the last one that its writer knew, whoever was
overtaken is refused, however long it stood still and whatever its clock says.
"""

import json
from dataclasses import asdict, dataclass
from typing import Protocol

from cortex.transforms.errors import StoreUnreachable

TAKE, RENEW, COMMIT, RELEASE = "take", "renew", "commit", "release"

# How often an attempt that was not answered is repeated with the same bytes.
ATTEMPTS = 3


class CommitLog(Protocol):
    """Entries from 1 on without a gap."""

    def read(self, number: int) -> bytes | None:
        """Return entry `number`; None where there is none yet. Raises StoreUnreachable."""

    def try_commit(self, number: int, content: bytes) -> bool:
        """
        Write entry `number` unless there is one; return whether this call did.

        Raises StoreUnreachable where that is not known: it may be written later all the same.
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

    An answer that was lost is found by looking: no other entry has the same nonce. Raises StoreUnreachable
    where neither writing nor looking is answered.
    """
    content = entry.as_bytes()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            if log.try_commit(number, content):
                return True
            return log.read(number) == content
        except StoreUnreachable:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def last_entry(log: CommitLog, known: int = 0) -> tuple[int, LogEntry | None]:
    """
    Return the last entry with its number; (0, None) for an empty log.

    `known` is a number that has an entry, 0 for none: with it, one look at an unchanged log is enough.
    Raises StoreUnreachable, and ValueError for a log that somebody else wrote.
    """
    low = known
    step = 1
    while log.read(low + step) is not None:  # further and further ahead, then back by halves
        low += step
        step *= 2
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        if log.read(middle) is None:
            high = middle
        else:
            low = middle
    content = log.read(low) if low else None
    return low, None if content is None else LogEntry.of_bytes(content)
