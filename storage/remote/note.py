"""What a folder knows of being a copy of a store elsewhere: `remote.json`, and what its files were last."""

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from cortex.storage.files import write_atomically, writing_to
from cortex.storage.remote.open_sessions import NOTE_FILE
from cortex.storage.remote.tree import digest_of
from cortex.transforms.errors import UsageError

INDEX_FILE = Path("runs") / "remote-index.json"


@dataclass(frozen=True)
class RemoteNote:
    """
    `uri` is the store's place and `copy` the id of this machine's copy.

    `number` is the entry of the log that this copy has taken in (0: none yet), `tree` the state that it
    named; `origin` is the nonce of the log's first entry: another is another store.
    """

    uri: str
    copy: str
    number: int = 0
    tree: str = ""
    origin: str = ""


def remote_note(home: Path) -> RemoteNote | None:
    """Return what a folder is a copy of, None for a store of its own. Raises UsageError for a damaged one."""
    try:
        return RemoteNote(**json.loads((home / NOTE_FILE).read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"{home / NOTE_FILE} is damaged.",
            "Remove it, and name the store again: CORTEX_HOME=s3://BUCKET/PREFIX",
        ) from error


def begin_copy(home: Path, uri: str) -> RemoteNote:
    """Make `home` a copy of the store at `uri`, unless it is; nothing is asked there. Raises UsageError."""
    note = remote_note(home)
    if note is None:
        note = RemoteNote(uri, secrets.token_hex(8))
        keep_note(home, note)
    if note.uri.rstrip("/") != uri.rstrip("/"):
        raise UsageError(
            f"{home} is the copy of {note.uri}, not of {uri}.", "Name the store in the same way."
        )
    return note


def keep_note(home: Path, note: RemoteNote) -> None:
    """Write the note."""
    with writing_to(home):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(home / NOTE_FILE, json.dumps(asdict(note), indent=1).encode())


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
        """Return a file's digest and size, None where there is none."""
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
