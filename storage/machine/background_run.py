"""The background run as seen from the engine: where hooks find it, and how its last run went."""

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cortex.hooks import background
from cortex.storage.ground.files import write_atomically, writing_to

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
        with writing_to(home):
            home.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
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
