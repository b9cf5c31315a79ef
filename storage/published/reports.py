"""What runs leave in the store for people to look at: progress, reports, the history that Prefect keeps."""

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from cortex.storage.filesystem.files import is_process, write_stored, writing_to
from cortex.transforms.errors import StoreNotWritable

_REPORT_NAME = re.compile(r"\d{8}T\d{12}Z-\w+\.json")

# The tables whose rows a report counts.
COUNTED = {"turns", "events", "journal", "vectors", "memories", "edges", "passages"}

# What a report says besides the run's own account: how it left the files of these parts of the store.
_LEFT, TABLES, LAKE = "left", "tables", "lake"

REPORTS_KEPT = 100  # a report has about 2 KB; older ones are removed so that the folder does not grow

# Prefect's run history is restarted above this size: it grows with every run and is never pruned by itself.
# The bound is a choice, the growth of one run was not measured.
HISTORY_BYTES = 64 * 1024 * 1024


class Report(Protocol):
    """A run's report, as far as keeping it needs to know."""

    flow: str
    started_at: datetime

    def as_dict(self) -> Mapping[str, object]:
        """Return the report as a JSON object."""


def keep_report(runs: Path, report: Report) -> Path:
    """
    Write the report to `<runs>/reports/<time>-<flow>.json` and drop the oldest beyond REPORTS_KEPT.

    With it goes how the files of tables and lake are left, by which the next run sees whether they still are.
    """
    folder = reports_folder(runs)
    with writing_to(runs.parent):
        path = folder / f"{report.started_at:%Y%m%dT%H%M%S%f}Z-{report.flow}.json"
        known = {part: _files_in(runs.parent, part) for part in (TABLES, LAKE)}
        left = {part: files.mark for part, files in known.items() if files is not None}
        content = {**report.as_dict(), _LEFT: left}
        write_stored(runs.parent, path, json.dumps(content, ensure_ascii=False, indent=1).encode())
        for old in _reports(folder)[:-REPORTS_KEPT]:
            old.unlink(missing_ok=True)
    return path


def reports_folder(runs: Path) -> Path:
    """Return the folder of the reports."""
    return runs / "reports"


def kept_reports(runs: Path) -> dict[str, dict[str, object]]:
    """Return the reports that can be read, the newest first, by the name of their file without its ending."""
    reports = {}
    for path in reversed(_reports(runs / "reports")):
        if (report := _report_in(path)) is not None:
            reports[path.name.removesuffix(".json")] = report
    return reports


def last_report(runs: Path, flow: str = "") -> dict[str, object] | None:
    """Return the newest report that can be read, of one flow where that is named; or None."""
    for path in reversed(_reports(runs / "reports")):
        if not path.name.endswith(f"-{flow}.json" if flow else ".json"):
            continue
        if (report := _report_in(path)) is not None:
            return report
    return None


def unchanged_counts(home: Path) -> dict[str, int] | None:
    """Return the rows that the newest report counted; None if lake or tables have changed since."""
    newest = _newest_report(home)
    counts = newest[1].get("rows") if newest else None
    if not isinstance(counts, dict) or set(counts) != COUNTED:
        return None
    is_same = _is_as_left(home, TABLES) and _is_as_left(home, LAKE)
    return {str(name): int(count) for name, count in counts.items()} if is_same else None


def tables_as_left(home: Path) -> bool:
    """
    Return whether nothing below the folders of tables was changed, moved or removed since the newest report.

    It goes by what the file system says of each file and opens no table. What is next to these folders is
    left out: whoever reads the search index leaves files there.
    """
    return _is_as_left(home, TABLES)


def _is_as_left(home: Path, part: str) -> bool:
    newest, known = _newest_report(home), _files_in(home, part)
    if newest is None or known is None:
        return False
    path, report = newest
    left = report.get(_LEFT)
    # A file that was written twice within a tick of the file system's clock may look the same.
    is_older = known.changed_at < path.stat().st_ctime_ns
    return is_older and isinstance(left, dict) and left.get(part) == known.mark


def _newest_report(home: Path) -> tuple[Path, Mapping[str, object]] | None:
    reports = _reports(reports_folder(home / "runs"))
    report = _read_report(reports[-1]) if reports else None
    return (reports[-1], report) if report is not None else None


class _Files(NamedTuple):
    """Files and folders as the file system shows them: one value of all, and the newest change [ns]."""

    mark: str
    changed_at: int


def _files_in(home: Path, part: str) -> _Files | None:
    """
    Return what the file system says of all that lies in a part of the store; None if it cannot be known.

    By its clock alone nobody could tell: it may have been set back, and not every file system keeps the time
    of a change. A file that was copied or restored is another, though its size and times are the same.
    """
    try:
        waiting = [(place, place.stat()) for place in _places(home, part)]
        lines, newest, skipped = [], 0, len(os.fsencode(home))
        while waiting:
            path, status = waiting.pop()
            if stat.S_ISLNK(status.st_mode):  # what it leads to may change and leave no trace here
                return None
            newest = max(newest, status.st_ctime_ns)
            times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
            line = f" {status.st_ino} {status.st_size} {times}\0".encode()
            lines.append(os.fsencode(path)[skipped:] + line)
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    waiting += [(Path(e.path), e.stat(follow_symlinks=False)) for e in entries]
    except OSError:
        return None
    return _Files(hashlib.sha256(b"".join(sorted(lines))).hexdigest(), newest)


def _places(home: Path, part: str) -> list[Path]:
    if part == LAKE:
        return [home / "lake", home / "runs" / "manifest.json"]
    try:
        with os.scandir(home / "tables") as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except FileNotFoundError:
        return []


def _report_in(path: Path) -> dict[str, object] | None:
    """Return a report as it was handed over; None if it cannot be read."""
    report = _read_report(path)
    return None if report is None else {name: value for name, value in report.items() if name != _LEFT}


def _read_report(path: Path) -> dict[str, object] | None:
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):  # written atomically, so damaged from outside
        return None
    is_report = isinstance(report, dict) and report.keys() >= {"flow", "started_at", "seconds"}
    return report if is_report else None


def _reports(folder: Path) -> list[Path]:
    """Return the reports in a folder, oldest first; other files are not ours."""
    return sorted(path for path in folder.glob("*.json") if _REPORT_NAME.fullmatch(path.name))


def prefect_history(home: Path) -> Path:
    """Return the folder where Prefect keeps its history; one that has grown too large is removed first."""
    history = home / "runs" / "prefect"
    if (database := history / "prefect.db").is_file() and database.stat().st_size > HISTORY_BYTES:
        shutil.rmtree(history, ignore_errors=True)
    return history


# -- How far the run at work is, for commands that are called meanwhile, and after one that was stopped.

_PROGRESS = "progress.json"
# Of writing how far it is: a run takes minutes, and a look at it is no better than to the second.
SECONDS_BETWEEN_NOTES = 1.0

# The steps of a run that take long, in their order, with what is counted in each.
READING, EMBEDDING = "extract", "embed"
STEPS = (READING, EMBEDDING)

# On two idle cores 25 MB of transcripts take 60 to 90 s until their prose is embedded, 8 s until it is read;
# on two cores with 12 others at work 603 s were 644 by these numbers. Only for estimates.
READ_BYTES_PER_SECOND = 3_000_000
EMBEDDED_BYTES_PER_SECOND = 300_000
_MEASURED_CORES = 2


def expected_seconds(count: int, per_second: float) -> float:
    """Return how long `count` bytes take here that two idle cores do at `per_second`, by cores and load."""
    all_cores = os.cpu_count() or 1
    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS
    cores = len(os.sched_getaffinity(0)) if has_affinity else all_cores
    busy = os.getloadavg()[0] * cores / all_cores if hasattr(os, "getloadavg") else 0.0
    # A thread on each core, and every thread of the machine gets as much as any other.
    ours = cores * cores / (busy + cores)
    return count / per_second * max(1.0, _MEASURED_CORES / ours)


@dataclass(frozen=True)
class RunProgress:
    """
    How far a run is: `done` of `total` of its step `stage`, which began at `stage_began_at`.

    The instants are seconds since 1970. A run that is over has none; `is_at_work` is false for one that was
    stopped or killed. `read_bytes` is how much the step of reading took in.
    """

    flow: str
    pid: int
    started_at: float
    stage: str
    stage_began_at: float
    noted_at: float
    done: int
    total: int
    read_bytes: int
    is_at_work: bool = True
    stage_began_done: int = 0

    @property
    def seconds_left(self) -> float:
        """Return about how long it still takes, by the speed of the present step once it shows one."""
        took, done = self.noted_at - self.stage_began_at, self.done - self.stage_began_done
        is_reading, rest = self.stage == READING, self.total - self.done
        read = self.total if is_reading else self.read_bytes
        rate = READ_BYTES_PER_SECOND if is_reading else EMBEDDED_BYTES_PER_SECOND
        left = rest / max(1, self.total) * expected_seconds(read, rate)
        after = expected_seconds(read, EMBEDDED_BYTES_PER_SECOND) if is_reading else 0.0
        if took > 0 and done > 0:  # what was done before the step was first noted took none of this time
            left = took * rest / done
            # What slows down one step does the next too; the load counts this run as well by now.
            if is_reading:
                after = read / EMBEDDED_BYTES_PER_SECOND * max(1.0, took * rate / done)
        return left + after

    @property
    def words(self) -> str:
        """
        Say how far it is.

        >>> RunProgress("backfill", 1, 0, "embed", 0, 60, 300, 900, 0).words
        'step 2 of 2, building the index for search by meaning, 33 %, about 2 min left'
        >>> RunProgress("ingest", 1, 0, "extract", 0, 2, 12_400_000, 25_200_000, 0, is_at_work=False).words
        'step 1 of 2, 12.4 of 25.2 MB read'
        """
        if self.stage == READING and self.done == self.total:
            share = f"all {self.total / 1e6:.1f} MB read, now the first briefs"
        elif self.stage == READING:
            share = f"{self.done / 1e6:.1f} of {self.total / 1e6:.1f} MB read"
        else:
            share = f"building the index for search by meaning, {100 * self.done // max(1, self.total)} %"
        step = f"step {STEPS.index(self.stage) + 1} of {len(STEPS)}, {share}"
        return f"{step}, {time_left(self.seconds_left)} left" if self.is_at_work else step


def time_left(seconds: float) -> str:
    """
    Return a duration that is only estimated.

    >>> time_left(7.2), time_left(95), time_left(150)
    ('about 10 s', 'about 100 s', 'about 3 min')
    """
    if seconds < 105:
        return f"about {max(10, round(seconds / 10) * 10)} s"
    return f"about {math.ceil(seconds / 60)} min"


@contextlib.contextmanager
def noted_progress(
    home: Path, flow: str, progress: Callable[[str, int, int], None]
) -> Iterator[Callable[[str, int, int], None]]:
    """
    Yield `progress` as one that also notes in the store how far the run is; the note goes with its end.

    After Ctrl-C, a kill or a full disk it stays, and says where the run was.
    """
    path, began = home / "runs" / _PROGRESS, time.time()
    state = RunProgress(flow, os.getpid(), began, "", began, 0.0, 0, 0, 0)

    def note(stage: str, done: int, total: int) -> None:
        nonlocal state
        progress(stage, done, total)
        now = time.time()
        is_new = stage != state.stage
        if stage not in STEPS or not (is_new or now - state.noted_at >= SECONDS_BETWEEN_NOTES):
            return
        stage_began, began_done = (now, done) if is_new else (state.stage_began_at, state.stage_began_done)
        read = total if stage == READING else state.read_bytes
        state = RunProgress(
            flow, state.pid, began, stage, stage_began, now, done, total, read, stage_began_done=began_done
        )
        with contextlib.suppress(OSError, StoreNotWritable):  # a full disk: the run itself says so
            write_stored(home, path, json.dumps(asdict(state)).encode())

    yield note
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def read_progress(home: Path) -> RunProgress | None:
    """Return how far the run at work is, or where one was stopped; None if the last one came to its end."""
    try:
        fields = json.loads((home / "runs" / _PROGRESS).read_bytes())
        state = RunProgress(**fields)
        return RunProgress(**{**asdict(state), "is_at_work": is_process(int(state.pid))})
    except (OSError, ValueError, TypeError, RecursionError):
        return None
