"""
The kill harness: `python -m tests.chaos.harness --kills 1000`.

One scenario is done once undisturbed, and the store kept as it was before each step: a first run, a second
with more transcripts and words remembered, a nightly run with something forgotten; then a backup, a merge
of two projects, a session forgotten, the backup restored, memories imported. For each kill, one of these is
put back in its place: the step is killed at one of its file operations or at a random moment and done again
as a user would. The store must say the same as the undisturbed one did after that step, hold nothing twice,
and leave nothing behind. After one kill of five the scenario goes on to its end before that is asked: what
only a later step would show is found there, at four times the time.

File operations are counted by an audit hook of the interpreter, so the product holds no code for this. What
compiled libraries write by themselves is not seen there; the kills at random moments fall into it.
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.bench import here, words_for_a_model
from tests.present import embedding_with

os.environ.setdefault("LANCEDB_LOG", "error")

from cortex.storage.lake.lake import LAKE_TABLES
from cortex.storage.store import Store
from cortex.storage.tables.lance_tables import lancedb
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.schemas import GLOBAL_SCOPE
from tests.bench import NOW, Bench, contents, difference, leftovers
from tests.present import clock_at
from tests.processes import PROCESSES
from tests.rows import entry
from tests.traces import traces
from tests.transcripts import Talk, decisions, forked, lines, resumed

lancedb()  # before children are forked: its import takes a second
COUNTED = ("os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
REMEMBERED = "The pilots phone before slack water"
FORGOTTEN = "Quartermaster Ottoline keeps the spare sextant"
SAID_IN_FORK = "The lamp trimmer counts the wicks at dusk"  # by the session that is forgotten
IMPORTED = ("The slipway is greased on Mondays.", "Charts older than ten years go to the museum.")
BACKUP = "store.tar.zst"

TO_THE_END = 5

# A step takes under two seconds, a crowd and the run after it two minutes; what hangs counts as lost.
CHILD_SECONDS = 300

Step = Callable[[Path], None]


@dataclass
class Tally:
    """What a series of kills came to."""

    kills: int = 0
    lost: int = 0
    doubled: int = 0
    leftovers: int = 0

    def __str__(self) -> str:
        return f"chaos: kills={self.kills} lost={self.lost} doubled={self.doubled} leftovers={self.leftovers}"

    @property
    def is_clean(self) -> bool:
        """Whether every kill was survived."""
        return not (self.lost or self.doubled or self.leftovers)


def first_run(folder: Path) -> None:
    """Stage a session cut in the middle of a line and another whole one; run."""
    bench = _bench(folder)
    whole = lines(_long("s1").records)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    path = _long("s1").path_in(bench.projects)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(whole[: len(whole) // 2])
    bench.backfill()


def second_run(folder: Path) -> None:
    """Complete the first session, add a resumed copy and a fork, remember something; run."""
    bench = _bench(folder)
    talk = _long("s1")
    talk.records += resumed(talk.records[:4])
    talk.write(bench.projects)
    forked(_long("s1").records, "f4").assistant(f"[MEMORY: pattern] {SAID_IN_FORK}.").write(bench.projects)
    when = NOW + timedelta(hours=1)
    for text in (REMEMBERED, FORGOTTEN):
        payload = {"text": text, "memory_type": "pattern", "category": "global"}
        _tell(bench, "remember", text, payload, when)
    bench.backfill(now=when)


def nightly_run(folder: Path) -> None:
    """Pin one of what was remembered, forget the other; age and consolidate on the next day."""
    bench = _bench(folder)
    when = NOW + timedelta(days=1)
    _tell(bench, "pin", REMEMBERED, {}, when)
    _tell(bench, "forget", FORGOTTEN, {}, when)
    bench.run("nightly", now=when)


def backing_up(folder: Path) -> None:
    """Write the backup that is restored later."""
    _command(folder, 2, lambda: here().backup(folder / BACKUP))


def merging(folder: Path) -> None:
    """Merge one project into the other."""
    _command(folder, 3, lambda: here().merge_projects("reef", "kelp"))


def forgetting_a_session(folder: Path) -> None:
    """Forget the fork, and what only it said."""
    session_id = forked(_long("s1").records, "f4").session_id
    _command(folder, 4, lambda: here().forget_session(session_id))


def restoring(folder: Path) -> None:
    """Go back to the backup: the projects are two again, the session stays forgotten."""
    _command(folder, 5, lambda: here().restore(folder / BACKUP))


def importing(folder: Path) -> None:
    """Take in a list of memories from elsewhere."""
    file = folder / "projects" / "notes.md"
    file.write_text("".join(f"- {fact}\n" for fact in IMPORTED))
    _command(folder, 6, lambda: here().import_memories(file, project="kelp"))


def _command(folder: Path, days: int, command: Callable[[], None]) -> None:
    """Give a command as a shell does, on a day of its own."""
    os.environ["CORTEX_HOME"] = str(folder / "home")
    output = contextlib.redirect_stdout(io.StringIO())
    with embedding_with(words_for_a_model), clock_at(NOW + timedelta(days=days)), output:
        command()


STEPS: tuple[Step, ...] = (
    first_run,
    second_run,
    nightly_run,
    backing_up,
    merging,
    forgetting_a_session,
    restoring,
    importing,
)


@dataclass(frozen=True)
class Rehearsal:
    """The undisturbed scenario: the folder before each step, what the store said after it, what it took."""

    before: list[Path]
    after: list[Path]
    operations: list[int]
    seconds: list[float]


def rehearse(folder: Path, kept: Path) -> Rehearsal:
    """Do the scenario undisturbed in `folder`; keep below `kept` what kills begin from and end at."""
    rehearsal = Rehearsal([], [], [], [])
    folder.mkdir(parents=True)
    for position, step in enumerate(STEPS):
        rehearsal.before.append(kept / f"before-{position}")
        shutil.copytree(folder, rehearsal.before[-1])
        if step is forgetting_a_session and _in_child(partial(_check_said, folder)):
            raise RuntimeError("the session to be forgotten said nothing")
        begun = time.monotonic()
        counted = kept / "count"
        if _in_child(partial(_count_operations, step, folder, counted)):
            raise RuntimeError(f"{step.__name__} fails undisturbed")
        rehearsal.seconds.append(time.monotonic() - begun)
        rehearsal.operations.append(int(counted.read_text()))
        rehearsal.after.append(kept / f"after-{position}.json")
        if _in_child(partial(_write_down, folder, rehearsal.after[-1])):
            raise RuntimeError("the undisturbed store cannot be read")
    return rehearsal


def stored_rows(home: Path) -> dict[str, int]:
    """Return the rows that lie in the lake by table, repeated keys counted each time."""
    store = Store(home)
    return {name: store.lake.read(table).num_rows for name, table in LAKE_TABLES.items()}


def unnamed_files(home: Path) -> list[str]:
    """Return files of the lake that no commit names."""
    store = Store(home)
    files = {p.relative_to(store.lake.root).as_posix() for p in store.lake.root.rglob("*") if p.is_file()}
    return sorted(files - set(store.lake.manifest.files))


def run_kills(kills: int, seed: int, *, tell: Callable[[str], None] = lambda text: None) -> Tally:
    """Kill `kills` times: two of three at a file operation, each in turn, the third at a random moment."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="cortex-chaos-") as scratch:
        folder, kept = Path(scratch) / "store", Path(scratch) / "kept"
        rehearsal = rehearse(folder, kept)
        every = [(step, number) for step, count in enumerate(rehearsal.operations) for number in range(count)]
        chance.shuffle(every)
        tell(f"{len(every)} file operations in {len(STEPS)} steps of {sum(rehearsal.seconds):.1f} s")
        tally = Tally()
        for number in range(kills):
            # Two of three at a file operation, in an order that reaches each before any comes again.
            step, operation = every[(number // 3 * 2 + number % 3) % len(every)]
            delay = None if number % 3 < 2 else chance.uniform(0, rehearsal.seconds[step])
            last = len(STEPS) - 1 if number % TO_THE_END == 0 else step
            _one_kill(folder, step, operation, delay, last, rehearsal, tally, tell)
            if (number + 1) % 50 == 0:
                tell(str(tally))
    return tally


def _one_kill(
    folder: Path,
    killed_step: int,
    operation: int,
    delay: float | None,
    last_step: int,
    rehearsal: Rehearsal,
    tally: Tally,
    tell: Callable[[str], None],
) -> None:
    where = f"{STEPS[killed_step].__name__}, " + (
        f"operation {operation}" if delay is None else f"{delay:.3f} s"
    )
    shutil.rmtree(folder)
    shutil.copytree(rehearsal.before[killed_step], folder)
    if delay is None:
        _in_child(partial(_killed_at, STEPS[killed_step], folder, operation))
    else:
        _in_child(partial(STEPS[killed_step], folder), kill_after_seconds=delay)
    tally.kills += 1
    for step in STEPS[killed_step : last_step + 1]:
        if _in_child(partial(step, folder)):
            tally.lost += 1
            return tell(f"after a kill in {where}, {step.__name__} fails")
    verdict = folder.with_suffix(".verdict")
    if _in_child(partial(_judge, folder, rehearsal.after[last_step], verdict)):
        raise RuntimeError(f"after a kill in {where} the store cannot be read")
    differing, more, left = json.loads(verdict.read_text())
    tally.lost += bool(differing)
    tally.doubled += bool(more)
    tally.leftovers += bool(left)
    if differing or more or left:
        tell(f"after a kill in {where}: differs {differing}, doubled {more}, left {left}")
    return None


def _check_said(folder: Path) -> None:
    assert traces(_bench(folder).home, SAID_IN_FORK)


def _write_down(folder: Path, file: Path) -> None:
    """Write what the store says, how many rows lie in its lake, and which words that will go can be read."""
    home = _bench(folder).home
    file.write_text(json.dumps([contents(home), stored_rows(home), _read_words(home)], default=str))


def _judge(folder: Path, undisturbed: Path, verdict: Path) -> None:
    """Write what differs from the undisturbed store, what lies there twice, and what was left behind."""
    home = _bench(folder).home
    expected, rows, words = json.loads(undisturbed.read_text())
    present = json.loads(json.dumps(contents(home), default=str))
    more = {name: count for name, count in stored_rows(home).items() if count > rows[name]}
    still_read = sorted(set(_read_words(home)) - set(words))
    left = [*leftovers(home), *unnamed_files(home), *still_read, *_beside(folder)]
    verdicts = [sorted(difference(present, expected)), more, left]
    verdict.write_text(json.dumps(verdicts))


def _in_child(work: Callable[[], None], kill_after_seconds: float | None = None) -> int:
    """Do `work` in a process of its own; return 0 if it ended well."""
    child = in_child(work)
    if kill_after_seconds is not None:
        time.sleep(kill_after_seconds)
        child.kill()
    return exit_code_of(child)


def in_child(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """Begin `work` in a process that has imported everything already: that spares two seconds each time."""
    child = PROCESSES.Process(target=_working, args=(dict(os.environ), work, arguments))
    child.start()
    return child


def exit_code_of(child: BaseProcess) -> int:
    """Wait for the process to end; 0 if it ended well."""
    child.join()
    return child.exitcode or 0


def _working(environment: dict[str, str], work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    signal.alarm(CHILD_SECONDS)
    os.environ.clear()
    os.environ.update(environment)
    try:
        work(*arguments)
    except BaseException:  # noqa: BLE001  (whatever it was, nothing else may run in this process)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _count_operations(step: Step, folder: Path, counted: Path) -> None:
    seen = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        seen += _is_operation(event, arguments, folder)

    sys.addaudithook(count)
    step(folder)
    total = seen
    counted.write_text(str(total))


def _killed_at(step: Step, folder: Path, operation: int) -> None:
    seen = 0

    def kill(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if _is_operation(event, arguments, folder):
            if seen == operation:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    sys.addaudithook(kill)
    step(folder)


def _is_operation(event: str, arguments: tuple[object, ...], folder: Path) -> bool:
    """Return whether an audited event changes a file of the store, or of one that takes its place."""
    if event == "open":
        _, _, flags = arguments
        if not (isinstance(flags, int) and flags & WRITING):
            return False
    elif event not in COUNTED:
        return False
    place = str(arguments[0])
    return place.startswith(f"{folder}/") and not place.startswith(f"{folder}/projects")


def _bench(folder: Path) -> Bench:
    return Bench(folder / "home", folder / "projects")


def _tell(bench: Bench, kind: str, text: str, payload: dict[str, object], when: datetime) -> None:
    name = memory_id(GLOBAL_SCOPE, "pattern", text)
    bench.store.journal.write(entry(kind, GLOBAL_SCOPE, payload, recorded_at=when, memory_id=name))


def _read_words(home: Path) -> list[str]:
    """Return which of the words that are forgotten by the end can be read in a file, packed ones too."""
    return [words for words in (FORGOTTEN, SAID_IN_FORK) if traces(home, words)]


def _beside(folder: Path) -> list[str]:
    """Return half-made stores and backups beside the store; replaced ones are kept on purpose."""
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


def _long(name: str) -> Talk:
    talk = decisions(name)
    for number in range(3):
        talk.user(f"And berth {number}?").assistant(
            f"We decided that berth {number} gets a gauge of its own because the swell differs there."
        )
    return talk


def main() -> None:
    """Run the harness from the command line; leave with 1 if anything was lost, doubled or left behind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    tally = run_kills(chosen.kills, chosen.seed, tell=lambda text: print(text, flush=True))
    print(tally)
    sys.exit(0 if tally.is_clean else 1)


if __name__ == "__main__":
    main()
