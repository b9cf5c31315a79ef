"""What runs leave in the store for people to look at: their reports, and the history that Prefect keeps."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from cortex.storage.files import write_atomically, writing_to

_REPORT_NAME = re.compile(r"\d{8}T\d{12}Z-\w+\.json")

# The tables whose rows a report counts.
COUNTED = {"turns", "events", "journal", "vectors", "memories", "edges", "passages"}

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
    """Write the report to `<runs>/reports/<time>-<flow>.json` and drop the oldest beyond REPORTS_KEPT."""
    folder = reports_folder(runs)
    with writing_to(runs.parent):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{report.started_at:%Y%m%dT%H%M%S%f}Z-{report.flow}.json"
        write_atomically(path, json.dumps(report.as_dict(), ensure_ascii=False, indent=1).encode())
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
    """Return the rows that the newest report counted; None where lake or tables have changed since."""
    reports = _reports(home / "runs" / "reports")
    report = _report_in(reports[-1]) if reports else None
    counts = report.get("rows") if report else None
    if not isinstance(counts, dict) or set(counts) != COUNTED:
        return None
    is_same = tables_as_left(home) and _is_as_left(
        [home / "lake", home / "runs" / "manifest.json"], reports[-1]
    )
    return {str(name): int(count) for name, count in counts.items()} if is_same else None


def tables_as_left(home: Path) -> bool:
    """
    Return whether nothing below the folders of tables was changed, moved or removed since the newest report.

    It goes by the file system's own clock, and opens no table. What lies beside these folders is left out:
    whoever reads the search index leaves files there.
    """
    reports = _reports(home / "runs" / "reports")
    scopes = [Path(entry.path) for entry in _entries(home / "tables") if entry.is_dir()]
    return bool(reports) and _is_as_left(scopes, reports[-1])


def _is_as_left(places: Iterable[Path], report: Path) -> bool:
    written_at = report.stat().st_ctime_ns
    return all(_changed_at(place) < written_at for place in places)


def _changed_at(place: Path) -> int:
    """Return when a file, a folder or anything below it was changed last [ns]; far ahead where it is gone."""
    try:
        newest, waiting = place.stat().st_ctime_ns, [place] if place.is_dir() else []
        while waiting:
            for entry in _entries(waiting.pop()):
                newest = max(newest, entry.stat(follow_symlinks=False).st_ctime_ns)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
    except OSError:
        return sys.maxsize
    return newest


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _report_in(path: Path) -> dict[str, object] | None:
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
