"""
The commit protocol in simulated time: `python -m benchmarks.simulated_team`.

Options: `--writers 200 --items 10 --seed 1 --span 20`.

The code is that of `storage/remote`; network, clocks and machines are simulated. Each writer has items to
bring into the store, one a commit, and takes the lease for a few at a time. Requests take between 5 ms and
some seconds; some are lost, some answers are lost, some requests arrive minutes after they were given up.
Clocks are wrong by up to a year and run up to 1 % too fast or too slow. Machines fall asleep for up to ten
minutes with the lease in hand, and are killed anywhere. A milestone stands every `span` entries, and holders
remove old entries between them. Everything follows from the seed.

Printed as JSON: items that were acknowledged and are missing, that are there twice, commits of a holder that
was overtaken, entries written where an old one had been removed (which must not count), holders refused
though nobody had taken over.
"""

import argparse
import heapq
import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from unittest.mock import patch

from greenlet import getcurrent, greenlet

from cortex.storage.remote import commit_log
from cortex.storage.remote.commit_log import (
    COMMIT,
    RELEASE,
    RENEW_SECONDS,
    TAKE,
    LogEntry,
    RemoteLease,
    Timing,
    is_removable,
    milestone_after,
)
from cortex.transforms.errors import LeaseLost, StoreBusy, StoreUnreachable

TIMEOUT_SECONDS = 30.0
YEAR_SECONDS = 365 * 86_400.0

# Of 1,000 requests: how many never arrive, arrive late, or whose answer is lost.
LOST, LATE, UNANSWERED = 10, 10, 10

# Of 1,000 commits: how many are followed by a kill, or by sleep.
KILLED, ASLEEP = 30, 30


class Killed(BaseException):
    """The machine is gone, wherever it was."""


@dataclass
class World:
    """Simulated time: what happens next, in order; equal instants in the order in which they were planned."""

    chance: random.Random
    now: float = 0.0
    planned: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list)
    count: int = 0

    def at(self, instant: float, action: Callable[[], object]) -> None:
        """Let `action` happen at an instant."""
        self.count += 1
        heapq.heappush(self.planned, (instant, self.count, action))

    def wait(self, seconds: float) -> None:
        """Let the calling machine wait."""
        me = getcurrent()
        self.at(self.now + max(seconds, 0), lambda: me.switch())
        assert me.parent is not None
        me.parent.switch()

    def run(self) -> None:
        """Let everything happen."""
        while self.planned:
            self.now, _, action = heapq.heappop(self.planned)
            action()


@dataclass
class Turns:
    """The lock between the two threads of one machine."""

    world: World
    is_taken: bool = False

    def __enter__(self) -> None:
        while self.is_taken:
            self.world.wait(0.01)
        self.is_taken = True

    def __exit__(self, *_: object) -> None:
        self.is_taken = False


@dataclass
class Server:
    """
    The bucket: it refuses a second entry of the same number, whenever a request reaches it.

    `entries` are the log as it was written, `objects` what there is of it.
    """

    entries: list[LogEntry] = field(default_factory=list)
    objects: dict[int, bytes] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    stale: int = 0
    strays: int = 0

    def write(self, number: int, content: bytes) -> bool:
        """Write an entry unless there is one."""
        assert number <= len(self.entries) + 1, "a gap"
        if number in self.objects:
            return False
        self.objects[number] = content
        if number in self.removed:
            self.strays += 1
            return True
        entry = LogEntry.of_bytes(content)
        holder = next((n for n in range(len(self.entries), 0, -1) if self.entries[n - 1].kind == TAKE), 0)
        self.stale += entry.kind != TAKE and entry.term != holder
        self.entries.append(entry)
        return True

    def remove(self, number: int) -> None:
        """Remove an entry."""
        self.objects.pop(number, None)
        self.removed.add(number)


@dataclass
class Network:
    """The log as one machine sees it: over a network that delays, loses and repeats nothing by itself."""

    world: World
    server: Server

    def read(self, number: int) -> bytes | None:
        """Return entry `number`, or None; after a while."""
        self._pass(None)
        content = self.server.objects.get(number)
        self.world.wait(self._delay())
        return content

    def try_commit(self, number: int, content: bytes) -> bool:
        """Write entry `number`, or not; the answer may be lost."""
        self._pass(lambda: self.server.write(number, content))
        is_written = self.server.write(number, content)
        if self.world.chance.randrange(1_000) < UNANSWERED:
            self.world.wait(TIMEOUT_SECONDS)
            raise StoreUnreachable("no answer.", "")
        self.world.wait(self._delay())
        return is_written

    def _pass(self, late: Callable[[], object] | None) -> None:
        fate = self.world.chance.randrange(1_000)
        if late and LOST <= fate < LOST + LATE:
            self.world.at(self.world.now + self.world.chance.uniform(1, 300), late)
        if fate < LOST + LATE:
            self.world.wait(TIMEOUT_SECONDS)
            raise StoreUnreachable("no answer.", "")
        self.world.wait(self._delay())

    def _delay(self) -> float:
        return min(0.005 + self.world.chance.lognormvariate(-4, 1.5), 5.0)


@dataclass
class Store:
    """The trees: each is the one before it and an item; what a machine had not committed is in none."""

    trees: dict[str, tuple[str, str]] = field(default_factory=dict)

    def items(self, tree: str) -> list[str]:
        """Return the items of a tree, the newest first."""
        items = []
        while tree:
            tree, item = self.trees[tree]
            items.append(item)
        return items


@dataclass
class Machine:
    """One writer, with its clock, its input, and its result."""

    name: str
    world: World
    server: Server
    store: Store
    waiting: list[str]
    counts: Counter[str]
    acknowledged: set[str]
    awake_at: float = 0.0
    lease: RemoteLease | None = None

    def __post_init__(self) -> None:
        """Set the clock wrong."""
        self._wrong_by = self.world.chance.uniform(-YEAR_SECONDS, YEAR_SECONDS)
        self._rate = self.world.chance.uniform(0.99, 1.01)

    def timing(self) -> Timing:
        """Return the machine's clock and its pauses."""
        return Timing(
            clock=lambda: self._wrong_by + self.world.now * self._rate,
            sleep=lambda seconds: self.world.wait(seconds / self._rate),
            at=lambda: "",
            nonce=lambda: f"{self.world.chance.getrandbits(64):016x}",
        )

    def live(self) -> None:
        """Bring in every item, over any number of kills."""
        while self.waiting:
            self.world.wait(self.world.chance.expovariate(1 / 600))
            network = Network(self.world, self.server)
            self.lease = RemoteLease(network, self.name, timing=self.timing(), lock=Turns(self.world))
            try:
                self._hold(self.lease)
                self.counts["runs"] += 1
            except LeaseLost:
                taken = [entry for entry in self.server.entries[self.lease.term :] if entry.kind == TAKE]
                self.counts["overtaken" if taken else "refused wrongly"] += 1
            except StoreBusy:
                self.counts["busy"] += 1
            except StoreUnreachable:
                self.counts["unreachable"] += 1
            except Killed:
                self.counts["killed"] += 1
                self.lease = None
                self.world.wait(self.world.chance.uniform(0, 120))
            self.lease = None

    def _hold(self, lease: RemoteLease) -> None:
        lease.take()
        there = set(self.store.items(lease.tree))
        for item in self.waiting[: self.world.chance.randint(1, 5)]:
            self.world.wait(self.world.chance.expovariate(1 / 5))
            self._risk()
            if item not in there:  # it may have come in by a commit whose answer was lost
                tree = f"{len(self.store.trees)}"
                self.store.trees[tree] = lease.tree, item
                lease.commit(tree)
                there.add(item)
            self._risk()
            self.acknowledged.add(item)
            self.waiting.remove(item)
        term = lease.term
        lease.release()
        if milestone_after(term - 1) <= lease.number:
            self._trim(lease.number)

    def _trim(self, last: int) -> None:
        """Remove old entries one by one, as a kill or sleep may come between."""
        for number in [each for each in sorted(self.server.objects) if is_removable(each, last)]:
            self.world.wait(0.01)
            self._risk()
            self.server.remove(number)

    def _risk(self) -> None:
        fate = self.world.chance.randrange(2_000)
        if fate < KILLED:
            raise Killed
        if fate < KILLED + ASLEEP:
            seconds = self.world.chance.uniform(1, 600)
            self.awake_at = self.world.now + seconds
            self.counts["asleep"] += 1
            self.world.wait(seconds)

    def beat(self) -> None:
        """Show that the machine lives, unless it sleeps."""
        while self.waiting:
            self.world.wait(RENEW_SECONDS / 2)
            if self.world.now < self.awake_at:
                self.world.wait(self.awake_at - self.world.now)
            if self.lease is not None and self.lease.term:
                try:
                    self.lease.renew()
                except (LeaseLost, StoreUnreachable):
                    continue


def simulate(writers: int, items: int, seed: int, span: int) -> dict[str, object]:
    """Let the team work until everything is in, with milestones that close; return the result."""
    with patch.object(commit_log, "SPAN", span):
        return _simulate(writers, items, seed)


def _simulate(writers: int, items: int, seed: int) -> dict[str, object]:
    world, server, store = World(random.Random(seed)), Server(), Store()
    counts: Counter[str] = Counter()
    acknowledged: set[str] = set()
    for number in range(writers):
        waiting = [f"{number}:{item}" for item in range(items)]
        machine = Machine(f"copy{number}", world, server, store, waiting, counts, acknowledged)
        for each in (machine.live, machine.beat):
            world.at(0, greenlet(each).switch)
    world.run()
    committed = [entry.tree for entry in server.entries if entry.kind == COMMIT]
    there = Counter(store.items(committed[-1] if committed else ""))
    return {
        "writers": writers,
        "items": writers * items,
        "simulated hours": round(world.now / 3_600, 1),
        "entries of the log": len(server.entries),
        "of these left": len(server.objects),
        "given back": sum(entry.kind == RELEASE for entry in server.entries),
        **{name: counts[name] for name in ("runs", "busy", "unreachable", "killed", "asleep", "overtaken")},
        "lost": len(acknowledged - set(there)) + writers * items - len(acknowledged),
        "doubled": sum(count > 1 for count in there.values()),
        "stale commits": server.stale,
        "written where one was removed": server.strays,
        "refused wrongly": counts["refused wrongly"],
    }


def main() -> None:
    """Print the result; exit with 1 where the protocol failed."""
    arguments = argparse.ArgumentParser()
    for name, default in (("writers", 200), ("items", 10), ("seed", 1), ("span", 20)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    result = simulate(**vars(arguments.parse_args()))
    print(json.dumps(result, indent=1))
    sys.exit(any(result[name] for name in ("lost", "doubled", "stale commits", "refused wrongly")))


if __name__ == "__main__":
    main()
