"""What whole processes cost that a person or a hook starts: processor time, next to that of bare imports."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks import invented
from benchmarks.measures import Measured, Sizes
from cortex.storage.staging.assistant_folders import find_transcripts
from cortex.storage.store import Store

# What a program pays that imports the libraries of tables alone.
LIBRARIES = [sys.executable, "-c", "import pyarrow, pyarrow.compute, pyarrow.parquet"]
TIMES = 3
# What SPEC's table asks of each, in seconds on an idle machine, where processor time is about the same.
MUST = {"status": ".3", "brief": ".3", "list": "", "show": "", "recall": ".7"}


def cold(sizes: Sizes) -> Iterator[Measured]:
    """Time commands as they are typed, each in a process of its own, over a store of the samples."""
    with tempfile.TemporaryDirectory() as scratch:
        home = _filled(Path(scratch))
        memories = json.loads(_cortex(home, "list", "--all-projects", "--json"))["memories"]
        project, memory_id = memories[0]["project_id"], memories[0]["memory_id"]
        words = {
            "status": ["status"],
            "brief": ["brief", "--project", project],
            "list": ["list", "--project", project],
            "show": ["show", memory_id],
            "recall": ["recall", "--project", project, "which database"],
        }
        libraries = _busy(lambda: subprocess.run(LIBRARIES, check=True))
        for name, given in words.items():
            busy = _busy(lambda given=given: _cortex(home, *given))  # type: ignore[misc]
            what = f"cortex {name} cold, processor time"
            yield Measured(what, busy, "s", "importing pyarrow", libraries, MUST[name])


def short_run(sizes: Sizes) -> Iterator[Measured]:
    """Time `cortex run` after one more session of a few turns, imports included, and with nothing to read."""
    with tempfile.TemporaryDirectory() as scratch:
        home = _filled(Path(scratch))
        busy = []
        for number in range(TIMES):
            folder = Path(scratch, f"more-{number}")
            invented.transcripts(folder, 1)
            path = min(find_transcripts(folder), key=lambda path: path.stat().st_size)
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(path.stem, f"{path.stem}-{number}"), encoding="utf-8")
            Store(home).staging.stage(path)
            busy.append(_busy(lambda: _cortex(home, "run", "--engine", "plain"), times=1))
        nothing = _busy(lambda: _cortex(home, "run", "--engine", "plain"))
        what = "run after one short session, processor time"
        yield Measured(what, median(busy), "s", "nothing new", nothing, "1.2", ".5")


def _filled(scratch: Path) -> Path:
    folder = scratch / "transcripts"
    invented.transcripts(folder, 1)
    _cortex(scratch / "home", "backfill", str(folder), "--engine", "plain")
    return scratch / "home"


def _cortex(home: Path, *words: str) -> str:
    surroundings = {**os.environ, "CORTEX_HOME": str(home)}
    command = [sys.executable, "-m", "cortex", *words]
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True).stdout


def _busy(work: Callable[[], object], times: int = TIMES) -> float:
    """Return the processor time of the processes that `work` starts, in seconds: the median."""
    spent = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        work()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(spent)


ALL: tuple[Callable[[Sizes], Iterator[Measured]], ...] = (cold, short_run)
