"""Which copies of the store's words lie outside it: `runs/copies.json`, so that forgetting names them."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cortex.storage.ground.files import write_stored
from cortex.transforms.errors import StoreNotWritable

# Copies of this kind hold the lake's files as they are.
BACKUP_KIND = "backup"

COPIES_FILE = Path("runs") / "copies.json"
# The oldest are dropped: a nightly backup under a new name each day makes 365 a year.
MOST_COPIES = 1_000


@dataclass(frozen=True)
class OutsideCopy:
    """A copy: its `kind` (backup, export, once delta), where it was written, and when last (ISO, UTC)."""

    kind: str
    place: str
    written_at: str


def outside_copies(home: Path) -> list[OutsideCopy]:
    """Return the copies that are noted, the last written first; none if the note is unreadable."""
    try:
        rows = json.loads((home / COPIES_FILE).read_bytes())
        copies = [OutsideCopy(str(row["kind"]), str(row["place"]), str(row["written_at"])) for row in rows]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return sorted(copies, key=lambda copy: copy.written_at, reverse=True)


def note_copy(home: Path, kind: str, place: str, now: datetime) -> None:
    """Note that a copy was written; one place is noted once. A store that cannot be written notes nothing."""
    if not home.is_dir():
        return
    copy = OutsideCopy(kind, place, now.isoformat(timespec="seconds"))
    others = [each for each in outside_copies(home) if (each.kind, each.place) != (kind, place)]
    content = json.dumps([vars(each) for each in [copy, *others][:MOST_COPIES]], indent=1).encode()
    with suppress(StoreNotWritable):
        write_stored(home, home / COPIES_FILE, content)
