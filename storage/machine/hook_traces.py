"""What hooks leave below the home, as `doctor` looks at it: their Python, their log, the last capture."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cortex.hooks import background, hook, ticket
from cortex.storage.staging.client_files import client_folder

# Where the launcher keeps the path of the Python that it chose, below the home or the plugin's data folder.
_PYTHON_MEMO = "python"


@dataclass(frozen=True)
class HooksLog:
    """The file in which hooks note what failed; `written_at` is the time of its last line, in UTC."""

    path: Path
    size_bytes: int
    written_at: datetime


def hooks_log(home: Path) -> HooksLog | None:
    """Return the hooks' log; None if no hook has complained."""
    path = home / "runs" / "hooks.log"
    if not path.is_file():
        return None
    status = path.stat()
    return HooksLog(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def late_prompts(home: Path) -> tuple[int, datetime] | None:
    """Return how many prompts went on without Cortex since it took too long, and when the last one did."""
    path = home / "runs" / hook.LATE_PROMPTS
    if not path.is_file():
        return None
    status = path.stat()
    return status.st_size, datetime.fromtimestamp(status.st_mtime, UTC)


def hooks_python(home: Path) -> str | None:
    """Return the Python that the launcher noted, if it is still there."""
    for memo in (home / _PYTHON_MEMO, *client_folder().glob(f"plugins/data/cortex-lake*/{_PYTHON_MEMO}")):
        if memo.is_file():
            python = memo.read_text(errors="replace").split("\n", 1)[0]
            if "\0" not in python and os.access(python, os.X_OK):
                return python
    return None


def noted_engine(home: Path) -> Path | None:
    """Return the note that names the command for the hooks, whether that is still there or not."""
    note = home / background.ENGINE
    return note if note.is_file() else None


def last_capture(home: Path) -> datetime | None:
    """Return when a hook last left something: the mark of a session's start, or a ticket."""
    seen, new = (home / "staging" / name for name in (ticket.SEEN, ticket.NEW))
    if not seen.is_dir():  # a backfill writes tickets too, but no such mark
        return None
    times = [folder.stat().st_mtime for folder in (seen, new) if folder.is_dir()]
    return datetime.fromtimestamp(max(times), UTC)
