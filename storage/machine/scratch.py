"""An empty folder outside the store for a program that is to see nothing of the person's, gone afterwards."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cortex.storage.ground.files import writing_to
from cortex.transforms.errors import StoreBusy

PREFIX = "cortex-scratch-"
# What a killed run left; a program that is asked one thing is done long before.
LEFT_AFTER_S = 3_600
# The one before takes at most as long as one answer.
TURN_WAIT_S = 150.0


@dataclass(frozen=True)
class Scratch:
    """Empty folders: where the program starts, its home, its settings, its temporary files."""

    work: Path
    home: Path
    config: Path
    tmp: Path


@contextmanager
def scratch(home: Path) -> Iterator[Scratch]:
    """
    Yield empty folders while no other process of the store at `home` has some; remove them afterwards.

    Raises StoreBusy if another one goes on for longer than an answer takes.
    """
    from filelock import FileLock, Timeout

    with writing_to(home):
        (home / "runs").mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(home / "runs" / "scratch.lock", timeout=TURN_WAIT_S):
            _sweep()
            with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
                place = Scratch(*(Path(folder) / name for name in ("work", "home", "config", "tmp")))
                for path in (place.work, place.home, place.config, place.tmp):
                    path.mkdir(mode=0o700)
                yield place
    except Timeout as error:
        raise StoreBusy("another run is asking the language model.", "Try again in a minute.") from error


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > LEFT_AFTER_S and folder.owner() == Path.home().owner():
                shutil.rmtree(folder, ignore_errors=True)
