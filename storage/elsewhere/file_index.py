"""What the files of a copy of a store elsewhere were when they were last read."""

import json
import os
from pathlib import Path

from cortex.storage.elsewhere.file_tree import digest_of
from cortex.storage.ground.files import write_atomically, writing_to

INDEX_FILE = Path("runs") / "remote-index.json"


class FileIndex:
    """The digests of the copy's files, so that only what changed is read again; a hint that may be lost."""

    def __init__(self, home: Path) -> None:
        self._home = home
        try:
            known = json.loads((home / INDEX_FILE).read_bytes())
            self._known = {path: tuple(seen) for path, seen in known.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            self._known = {}

    def look(self, path: str) -> tuple[str, int] | None:
        """Return a file's digest and size, None if there is none."""
        try:
            status = (self._home / path).stat()
            seen = (status.st_size, status.st_mtime_ns, status.st_ino)
            known = self._known.get(path, ())
            if tuple(known[1:]) != seen:
                known = self._known[path] = (digest_of(self._home / path), *seen)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            self._known.pop(path, None)
            return None
        return str(known[0]), status.st_size

    def keep(self) -> None:
        """Write the index for later processes."""
        path = self._home / INDEX_FILE
        there = {name: seen for name, seen in self._known.items() if os.path.lexists(self._home / name)}
        with writing_to(self._home):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(there).encode())
