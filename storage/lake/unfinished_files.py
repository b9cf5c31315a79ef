"""Which lake files are being written for a commit that has not come yet: `runs/writing`."""

import os
from collections.abc import Iterator
from pathlib import Path

from cortex.storage.ground.files import sync_folder


class Unfinished:
    """
    Lines of generation and path, each on disk before its file: what a killed run leaves is known by name.

    Nothing else tells a leftover of ours from a file that somebody put into the lake.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "runs" / "writing"

    def note(self, generation: int, path: str) -> None:
        """Note that the lake file `path` is about to be written for a commit. Only under the lease."""
        is_new = not self._path.exists()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, f"{generation} {path}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            sync_folder(self._path.parent)

    def paths(self, generation: int) -> frozenset[str]:
        """
        Return the files written for the commit `generation`; of any other nothing is known.

        Older ones were settled by their commit. Newer ones come from after this manifest, which somebody put
        back: they may hold what a later manifest names.
        """
        return frozenset(path for noted, path in self._lines() if noted == generation)

    def clear(self) -> None:
        """Forget the notes: the commit came, or the files are gone. Only under the lease."""
        self._path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[tuple[int, str]]:
        try:
            text = self._path.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return
        # Of the last line without its end nothing was written yet.
        for line in text.split("\n")[:-1]:
            number, _, path = line.partition(" ")
            if number.isdecimal() and path:
                yield int(number), path
