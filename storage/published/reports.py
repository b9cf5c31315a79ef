"""What runs leave in the store for people to look at: their reports, and the history that Prefect keeps."""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from cortex.storage.ground.files import write_stored, writing_to

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
