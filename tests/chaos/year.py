"""
A year in one store: `python -m tests.chaos.year --nights 60`.

Half a year of old sessions of three projects is backfilled; then come nights: projects are worked on and
left alone, things are remembered, forgotten, said again after they were pruned; policy rows change for worse
and back; now and then a day passes without a run. Each fact has a name, and what may be lost is asserted by
name: after every night, all that was ever said is in the lake, shown is what must be, gone is what a person
forgot and nothing else.
"""

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

os.environ.setdefault("LANCEDB_LOG", "error")

import pyarrow as pa

from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import compare
from cortex.flows.stages.guard import pending_loss
from cortex.flows.stages.order import FORGET
from cortex.storage.remote.store_lease import lease
from cortex.transforms.errors import LossRefused
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.schemas import EVENTS, TURNS, values
from tests.bench import Bench, leftovers
from tests.rows import entry
from tests.transcripts import START, Talk

DAY = timedelta(days=1)
PROJECTS = ("kelp", "reef", "shoal")
# What sessions say, by type: half-lives of none, 45, 60 and 7 days.
TYPES = ("decision", "gotcha", "pattern", "progress")
OLD_DAYS, OLD_EVERY = 180, 4
NAME = re.compile(r"\bF[0-9]{4}\b")
MUST_BE_NONE = ("missing", "unasked", "revived", "differing", "leftovers")

# Policy rows that hide what is shown, and a project whose events are gone; each is refused and undone.
HARM = (("shown_min_confidence", 1.01), ("brief_min_confidence", 1.01), ("events of", 0.0))


@dataclass
class Year:
    """The store, the day it is, and what was said, forgotten and seen by name of fact."""

    bench: Bench
    today: datetime
    facts: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # name: project, type, text
    forgotten: set[str] = field(default_factory=set)
    tally: Counter[str] = field(default_factory=Counter)

    def say(self, project: str, day: datetime, *facts: str) -> None:
        """Write a session in a project that states these facts, or nothing worth keeping."""
        talk = Talk(f"{project} {day.isoformat()}", cwd=f"/home/dev/{project}", start=day)
        talk.user("Go on with the list, please.")
        for name in facts:
            _, memory_type, text = self.facts[name]
            talk.assistant(f"[MEMORY: {memory_type}] {text}")
        talk.assistant("All checks are green.").write(self.bench.projects)
        self.tally["sessions"] += 1

    def fact(self, project: str, memory_type: str) -> str:
        """Return the name of a new fact; its words are its own."""
        name = f"F{len(self.facts):04d}"
        number = len(self.facts)
        text = (
            f"{name}: the {_word(number)} gauge of {project} waits for the {_word(number * 7 + 3)} tide "
            f"because its {_word(number * 13 + 5)} valve sticks."
        )
        self.facts[name] = (project, memory_type, text)
        return name

    def run(self, flow: str = "nightly", *, accepts_loss: bool = False) -> None:
        """Stage what was written and run a flow."""
        self.bench.stage()
        runs.execute(flow, self.bench.at(self.today), accepts_loss=accepts_loss)

    def rows(self) -> dict[str, dict[str, object]]:
        """Return the memories that state a fact, by the fact's name; a tombstone has no name."""
        rows = {}
        for scope in self.bench.store.tables.scopes():
            for row in self.bench.store.tables.open(scope, "memories").read().to_pylist():
                for name in NAME.findall(row["text"])[:1]:
                    rows[name] = row
        return rows

    def pruned(self) -> list[str]:
        """Return the facts of which a tombstone alone is left, by name."""
        tables = self.bench.store.tables
        ids = {
            row["memory_id"]
            for scope in tables.scopes()
            for row in tables.open(scope, "memories").read(["memory_id"], {"status": ["pruned"]}).to_pylist()
        }
        names = (name for name in self.facts if self.memory_id(name) in ids)
        return sorted(name for name in names if name not in self.forgotten)

    def memory_id(self, name: str) -> str:
        """Return the id of the memory that states a fact."""
        project, memory_type, text = self.facts[name]
        [scope] = [s for s in self.bench.store.tables.scopes() if s.startswith(f"{project}-")]
        return memory_id(scope, memory_type, text)


def _word(number: int) -> str:
    syllables = ("ba", "do", "fi", "ku", "le", "mo", "na", "pi", "ru", "sa", "te", "vo")
    return "".join(syllables[number // 12**place % 12] for place in range(3))


def backfill(year: Year) -> None:
    """Take in half a year of sessions that no run has seen."""
    for number, back in enumerate(range(OLD_DAYS, 0, -OLD_EVERY)):
        project = PROJECTS[number % len(PROJECTS)]
        facts = [year.fact(project, TYPES[(number + n) % len(TYPES)]) for n in range(2)]
        year.say(project, year.today - back * DAY, *facts)
    year.run("backfill")


def night(year: Year, number: int) -> None:
    """Live through one day: work, a person's words, sometimes harm; run; judge."""
    year.today += DAY
    # The shoal rests after a fortnight, the reef in the second half of each month.
    at_work = ["kelp", *(["reef"] if number % 30 < 15 else []), *(["shoal"] if number < 14 else [])]
    for project in at_work:
        facts = [year.fact(project, TYPES[number % len(TYPES)])] if number % 3 == 0 else []
        year.say(project, year.today - timedelta(hours=2), *facts)
    if number % 10 == 4:
        forget(year)
    if number % 10 == 6:
        say_again(year)
    if number % 20 == 3:
        harm(year, *HARM[number // 20 % len(HARM)])
    if number % 7 == 5:  # nobody ran anything that day
        return
    year.run()
    judge(year)


def forget(year: Year) -> None:
    """Forget one fact for good, a pruned one if there is one, as a person's command does."""
    name = (year.pruned() or sorted(set(year.facts) - year.forgotten))[0]
    [scope] = [s for s in year.bench.store.tables.scopes() if s.startswith(f"{year.facts[name][0]}-")]
    wish = entry("forget", scope, {}, recorded_at=year.today, memory_id=year.memory_id(name))
    year.bench.store.journal.write(wish)
    with runs.opened("forget", year.bench.at(year.today)) as run:
        for stage in FORGET:
            stage(run)
    year.forgotten.add(name)
    year.tally["forgotten"] += 1


def say_again(year: Year) -> None:
    """State a pruned fact again; it must be back after the night."""
    pruned = year.pruned()
    if pruned:
        name = pruned[-1]
        year.say(year.facts[name][0], year.today - timedelta(hours=1), name)
        year.run()
        is_back = year.rows().get(name, {}).get("status") == "active"
        year.tally["back"] += is_back
        year.tally["missing"] += not is_back


def harm(year: Year, what: str, value: float) -> None:
    """Hide what is shown, by a policy row or a loss of events: refused, and all is shown as before."""
    before = set(year.rows()), _briefs(year)
    undo = _lose_events(year) if what == "events of" else _set_policy(year, what, value)
    try:
        year.run("ingest")
        year.tally["unasked"] += 1
        print(f"{year.today:%Y-%m-%d}: {what} {value} was not refused")
    except LossRefused:
        year.tally["refused"] += 1
    # Where a brief alone is held back, what the day said is found already.
    year.tally["unasked"] += not before[0] <= set(year.rows()) or before[1] != _briefs(year)
    undo()


def _set_policy(year: Year, threshold: str, value: float) -> Callable[[], None]:
    path = year.bench.home / "policy" / "thresholds.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"name,value,unit,why\n{threshold},{value},fraction,harm\n")
    return path.unlink


def _lose_events(year: Year) -> Callable[[], None]:
    [kelp] = [name for name in year.bench.store.tables.scopes() if name.startswith("kelp-")]
    rows = year.bench.store.lake.read(EVENTS, kelp)

    def put(events: pa.Table) -> None:
        with lease(year.bench.home), year.bench.store.lake.change() as change:
            sessions = {*values(rows, "session_id"), *values(events, "session_id")}
            change.replace(EVENTS, kelp, events, tuple(sorted(sessions)))

    put(EVENTS.empty())
    return partial(_put_back, year, kelp, rows, put)


def _put_back(year: Year, project: str, rows: pa.Table, put: Callable[[pa.Table], None]) -> None:
    """Put lost events back beside those that the refused run has taken in."""
    put(pa.concat_tables([rows, year.bench.store.lake.read(EVENTS, project)]))


def judge(year: Year) -> None:
    """Count what is missing, back though forgotten, or hidden though nobody asked, by name of fact."""
    lake, rows = year.bench.store.lake, year.rows()
    turns = " ".join(text for text in lake.read(TURNS)["text"].to_pylist() if text)
    events = " ".join(text for text in lake.read(EVENTS)["text"].to_pylist() if text)
    pruned = sum(row["kind"] == "prune" for row in year.bench.store.journal.read().to_pylist())
    kept = set(year.facts) - year.forgotten
    missing = {name for name in kept if name not in turns or name not in events}
    revived = {name for name in year.forgotten if name in turns or name in rows}
    # Hidden is only what a tombstone tells of; a decision never is.
    unasked = {name for name in kept - set(rows) - set(year.pruned())}
    unasked |= {name for name in year.pruned() if year.facts[name][1] == "decision"}
    year.tally["missing"] += len(missing)
    year.tally["revived"] += len(revived)
    year.tally["unasked"] += len(unasked)
    year.tally["unasked"] += pending_loss(lake.manifest) is not None
    year.tally["pruned"] = max(year.tally["pruned"], pruned)
    if missing or revived or unasked:
        print(f"{year.today:%Y-%m-%d}: missing {missing}, revived {revived}, unasked {unasked}")


def _briefs(year: Year) -> dict[str, str]:
    return {scope: year.bench.store.published.brief(scope) for scope in year.bench.store.tables.scopes()}


def come_back(year: Year) -> None:
    """Leave everything alone for two months, come back, and find what was there."""
    year.today += DAY  # the last day of work counts once it is over
    year.run()
    before, briefs = year.rows(), _briefs(year)
    year.today += 61 * DAY
    year.run()
    after = year.rows()
    changed = {name for name in before if after.get(name, {}).get("status") != before[name]["status"]}
    year.tally["unasked"] += len(changed) + len(set(before) - set(after))
    year.tally["unasked"] += sum(briefs[scope] != text for scope, text in _briefs(year).items())
    for project in PROJECTS:
        year.say(project, year.today)
    year.today += DAY
    year.run()
    judge(year)


def live(folder: Path, nights: int) -> dict[str, int]:
    """Live through the year; return the tally."""
    year = Year(Bench(folder / "home", folder / "projects"), START + OLD_DAYS * DAY)
    backfill(year)
    judge(year)
    for number in range(nights):
        night(year, number)
    come_back(year)
    with runs.opened("rebuild", year.bench.at(year.today)) as run:
        year.tally["differing"] = len(compare(run).differences)
    year.tally["leftovers"] = len(leftovers(year.bench.home))
    shown = sum(row["status"] in ("active", "archived") for row in year.rows().values())
    names = ("sessions", "refused", "forgotten", "pruned", "back", *MUST_BE_NONE)
    return {"facts": len(year.facts), "shown": shown, **{name: year.tally[name] for name in names}}


def main() -> None:
    """Print the tally; leave with 1 if anything was lost that nobody took away."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nights", type=int, default=60)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cortex-year-") as scratch:
        tally = live(Path(scratch), chosen.nights)
    print("year: " + " ".join(f"{name}={count}" for name, count in tally.items()))
    sys.exit(any(tally[name] for name in MUST_BE_NONE))


if __name__ == "__main__":
    main()
