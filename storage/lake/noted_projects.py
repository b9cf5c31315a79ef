"""The projects as every command needs them: the journal's entries about them, published as one file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cortex.storage.filesystem.files import write_stored, writing_to

_FILE = Path("published") / "project-entries.json"

# A project's id, and what an entry says of it as JSON.
Noted = tuple[str, str]


class KnownProject(NamedTuple):
    """A project's id, its name, and its folders, sorted."""

    project_id: str
    name: str
    paths: tuple[str, ...]


def read_noted(home: Path, journal: str) -> list[Noted] | None:
    """Return the entries in their order; None if they are not published of this state of the journal."""
    try:
        document = json.loads((home / _FILE).read_bytes())
        if document["journal"] != journal:
            return None
        return [(str(project_id), str(payload)) for project_id, payload in document["entries"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def publish_noted(home: Path, journal: str, entries: Sequence[Noted]) -> None:
    """Publish the entries of a state of the journal, in their order."""
    path = home / _FILE
    content = json.dumps({"journal": journal, "entries": entries}, ensure_ascii=False, indent=0).encode()
    if path.is_file() and path.read_bytes() == content:
        return
    write_stored(home, path, content)


def remove_noted(home: Path) -> None:
    """Publish nothing of them: in an encrypted store the journal is read with the key."""
    with writing_to(home):
        (home / _FILE).unlink(missing_ok=True)
