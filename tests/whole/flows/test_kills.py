"""The kill law: stopped anywhere, then run again, a store says what it says undisturbed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.storage.lake import lake
from cortex.storage.lake.journal import Journal
from cortex.storage.published import published
from cortex.storage.staging.staging import Staging
from cortex.storage.tables import lance_tables
from cortex.storage.tables.search_index import SearchIndex
from tests.bench import Bench, contents, difference, leftovers
from tests.transcripts import Talk, decisions, forked

ROOT = Path(__file__).parents[3]


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, object]]]:
    """Return a folder of transcripts and what an undisturbed store says of it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    bench = Bench(folder / "home", folder / "projects")
    talk = decisions("s1")
    talk.write(bench.projects)
    forked(talk.records, "f4").assistant("[MEMORY: pattern] One queue a poller.").write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    bench.begin()
    yield bench.projects, contents(bench.home)


PLACES: dict[str, tuple[Any, str]] = {
    "a lake file": (lake.Lake, "write_file"),
    "the manifest": (lake, "write_manifest"),
    "release of the claims": (Staging, "release"),
    "the journal's files": (Journal, "take_in"),
    "a table": (lance_tables.LanceTables, "replace"),
    "the search index": (SearchIndex, "replace"),
    "a brief": (published.Published, "publish_brief"),
    "the database": (published.Published, "publish_database"),
}

# How often an undisturbed run over the transcripts below writes each.
WRITTEN = {
    "a lake file": 8,
    "the manifest": 11,
    "release of the claims": 1,
    "the journal's files": 2,
    "a table": 9,
    "the search index": 9,
    "a brief": 2,
    "the database": 1,
}


# What lies on disk after a write lies there before the next: after it is tried with the last of each place.
WRITES = [
    *((place, number, "before") for place, times in WRITTEN.items() for number in range(1, times + 1)),
    *((place, times, "after") for place, times in WRITTEN.items()),
]


@pytest.mark.spread(8)
@pytest.mark.parametrize(("place", "number", "moment"), WRITES)
def test_killed_around_a_write(home, undisturbed, monkeypatch, place, number, moment):
    projects, expected = undisturbed
    bench = Bench(home, projects)
    bench.stage()
    with monkeypatch.context() as patch:
        _die_at(patch, *PLACES[place], number, moment)
        with pytest.raises(Killed):
            bench.run()
    bench.run()
    assert difference(contents(home), expected) == {}
    assert leftovers(home) == []


def _die_at(patch: pytest.MonkeyPatch, owner: Any, name: str, number: int, moment: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number and moment == "before":
            raise Killed
        result = real(*args, **kwargs)
        if calls == number:
            raise Killed
        return result

    patch.setattr(owner, name, counted)


def test_killed_while_merging_nothing_is_merged_twice(bench, other, monkeypatch):
    for text in ("Use SQLite in WAL mode.", "Always use SQLite in WAL mode here."):
        Talk(text).user("Go on.").assistant(f"[MEMORY: decision] {text}").write(bench.projects)
    for store in (bench, other):
        store.backfill()
    other.run("nightly")
    with monkeypatch.context() as patch:
        _die_at(patch, Journal, "commit", 1, "after")
        with pytest.raises(Killed):
            bench.run("nightly")
    assert merges(bench) == 1  # killed after it, and before its note was followed
    bench.run("nightly")
    other.run("nightly")
    assert merges(bench) == merges(other) == 1
    assert difference(contents(bench.home), contents(other.home)) == {}


def merges(bench: Bench) -> int:
    return [row["kind"] for row in bench.store.journal.read().to_pylist()].count("merge")


def test_killed_by_the_system_at_any_time(home, undisturbed, tmp_path):
    projects, expected = undisturbed
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.bench import Bench\n"
        "bench = Bench(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print('begins', flush=True)\n"
        "bench.backfill()\n"
    )
    command = [sys.executable, "-c", program, str(home), str(projects)]
    killed = 0
    for number in range(5):
        running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert running.stdout is not None
        running.stdout.readline()
        time.sleep(0.3 * (number + 1))
        if running.poll() is None:
            os.kill(running.pid, signal.SIGKILL)
            killed += 1
        running.wait()
        running.stdout.close()
    assert killed >= 3
    bench = Bench(home, projects)
    bench.backfill()
    assert difference(contents(home), expected) == {}
    assert leftovers(home) == []
