"""Where what is forgotten here still is: copies that an erasure reaches, and those that it does not."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.storage.copies.copy_register import OutsideCopy, outside_copies
from cortex.storage.ground.place import remote_note
from cortex.transforms.memory.authors import copies_of
from cortex.transforms.memory.team import TEAM_SOURCE
from cortex.transforms.schemas import Row

_WORDS = {
    "backup": "the backup {place} of {day}: delete it",
    "export": "the export {place} of {day}: delete it",
    "delta": "the Delta tables {place} of {day}: delete them",  # an earlier version wrote such
}


@dataclass(frozen=True)
class Copies:
    """Copies in words: those that the erasure `reached`, and those `left`, each with how it goes."""

    reached: Sequence[str] = ()
    left: Sequence[str] = ()


def copies_beside(context: Context, memory: Row | None = None) -> Copies:
    """
    Return the copies of what was forgotten: a memory, else a session or a project.

    Of copies that this store wrote, those are left out that are no longer there, or older than the memory.
    """
    note = remote_note(context.home)
    reached = [f"the store {context.home}: lake, tables, search index, briefs, what waits in staging"]
    left = copies_of(memory) if memory else []
    if note:
        reached.append(f"the store at {note.uri}, once the run there is done")
        left.append(
            f"versions that the bucket of {note.uri} keeps, and other machines' copies until they run"
        )
    place = context.settings.share.place
    if place and not (memory and memory["source_type"] == TEAM_SOURCE):
        left.append(f"{place}, if it was pushed: withdraw it with cortex push{_versions(context)}")
    since = memory["created_at"] if memory else None
    left += [_in_words(copy) for copy in outside_copies(context.home) if _may_hold(copy, since)]
    return Copies(reached, left)


def _versions(context: Context) -> str:
    if context.settings.share.key_file:
        return (
            "; versions that the bucket keeps open no more once every copy of the key is destroyed "
            "(first another one: cortex team key FILE)"
        )
    return "; versions that the bucket keeps, by its own rules"


def _may_hold(copy: OutsideCopy, since: datetime | None) -> bool:
    is_local = "://" not in copy.place
    if is_local and not Path(copy.place).exists():
        return False
    try:
        return since is None or datetime.fromisoformat(copy.written_at) >= since
    except (ValueError, TypeError):
        return True


def _in_words(copy: OutsideCopy) -> str:
    return _WORDS.get(copy.kind, "{place}").format(place=copy.place, day=copy.written_at[:10])
