"""The background run as seen from the engine: where hooks find it, and how its last run went."""

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cortex.hooks import background
from cortex.storage.files import write_atomically, writing_to

COMMAND = "cortex"


@dataclass(frozen=True)
class Background:
    """
    The state of the background run; the instants are UTC.

    `engine` is the command that hooks start, None where they find none; `exit_code` is that of the last run,
    negative for the signal that ended it, None while it runs or where it was killed with its keeper.
    """

    engine: Path | None
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None


def note_engine(home: Path) -> Path | None:
    """
    Write the path of this `cortex` command to `<home>/engine` for the hooks; return it, None where unknown.

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


def state_of(home: Path) -> Background:
    """Return the state of the background run of the store at `home`."""
    mark = background.read_mark(str(home))
    engine = background.engine_at(str(home))
    code = mark.get("exit_code")
    return Background(
        engine=Path(engine) if engine else None,
        started_at=_instant(mark.get("started_at")),
        ended_at=_instant(mark.get("ended_at")),
        exit_code=int(code) if isinstance(code, (int, float)) else None,
    )


def _own_command() -> Path | None:
    """Return the path this process was called by, else the command that was installed beside its Python."""
    # Links stay as they are: an update moves what `uv tool` and pipx link to, not the link.
    for path in (Path(sys.argv[0]).absolute(), Path(sys.executable).absolute().with_name(COMMAND)):
        if path.name == COMMAND and path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def _instant(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, (int, float)) else None
