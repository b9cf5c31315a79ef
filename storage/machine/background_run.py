"""The background run as the engine sees it: where hooks find it, how the last one went, what hooks leave."""

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cortex.hooks import background, hook, ticket
from cortex.storage.filesystem.files import write_stored
from cortex.storage.staging.client_files import client_folder

COMMAND = "cortex"


@dataclass(frozen=True)
class Background:
    """
    The state of the background run; the instants are UTC.

    `engine` is the command that hooks start, None if they find none; `exit_code` is that of the last run,
    negative for the signal that ended it, None while it runs or where it was killed with its keeper.
    `failures` counts those in a row up to now, the first of them at `failing_since`; `log` is its output.
    """

    engine: Path | None
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    is_running: bool
    failures: int
    failing_since: datetime | None
    log: Path

    @property
    def outcome(self) -> str:
        """Say in a word or two how the last run went."""
        if self.started_at is None:
            return "none yet"
        if self.is_running:
            return "at work"
        if self.exit_code is None:
            return "killed"
        if self.exit_code in (0, background.EXIT_BUSY):
            return "ended well" if self.exit_code == 0 else "made way for another run"
        return f"failed with exit code {self.exit_code}"


def note_engine(home: Path) -> Path | None:
    """
    Write the path of this `cortex` command to `<home>/engine` for the hooks; return it, None if unknown.

    Raises StoreNotWritable.
    """
    command = _own_command()
    if command is None:
        return None
    path, content = home / background.ENGINE, os.fsencode(command) + b"\n"
    if not (path.is_file() and path.read_bytes() == content):
        write_stored(home, path, content)
    return command


def background_state(home: Path) -> Background:
    """Return the state of the background run of the store at `home`."""
    mark = background.read_mark(str(home))
    engine = background.engine_at(str(home))
    code = mark.get("exit_code")
    is_running = background.is_running(str(home))
    failures, since = background.failing(mark, is_over=not is_running)
    return Background(
        engine=Path(engine) if engine else None,
        started_at=_instant(mark.get("started_at")),
        ended_at=_instant(mark.get("ended_at")),
        exit_code=int(code) if isinstance(code, (int, float)) else None,
        is_running=is_running,
        failures=failures,
        failing_since=_instant(since) if failures else None,
        log=home / background.LOG,
    )


def _own_command() -> Path | None:
    """Return the path this process was called by, else the command that was installed next to its Python."""
    # Links stay as they are: an update moves what `uv tool` and pipx link to, not the link.
    for path in (Path(sys.argv[0]).absolute(), Path(sys.executable).absolute().with_name(COMMAND)):
        if path.name == COMMAND and path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def _instant(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, (int, float)) else None


# -- What hooks leave below the home, as `doctor` looks at it: their Python, their log, the last capture.

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
    try:
        if not seen.is_dir():  # a backfill writes tickets too, but no such mark
            return None
        times = [folder.stat().st_mtime for folder in (seen, new) if folder.is_dir()]
    except PermissionError:  # somebody else's store
        return None
    return datetime.fromtimestamp(max(times), UTC)
