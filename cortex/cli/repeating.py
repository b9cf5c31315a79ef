"""Commands that are given again after a kill: they finish what was begun and journal nothing twice."""

import json
from collections.abc import Mapping

from cortex.cli.terminal import now
from cortex.storage.store import Store
from cortex.transforms.journal_entries import entry


def write_once(
    store: Store, kind: str, scope: str, payload: Mapping[str, object], memory_id: str | None = None
) -> None:
    """Journal an entry, unless the last word on the memory (or on that key of a project) is the same one."""
    last = last_word(store, kind, scope, payload, memory_id)
    if last != (kind, dict(payload)):
        store.journal.write(entry(kind, scope, payload, recorded_at=now(), memory_id=memory_id))


def last_word(
    store: Store, kind: str, scope: str, payload: Mapping[str, object], memory_id: str | None
) -> tuple[str, dict[str, object]] | None:
    """Return kind and payload of the journal's last entry on the same thing, recalls apart; None without."""
    for row in reversed(store.journal.read().to_pylist()):
        content = json.loads(row["payload"])
        if memory_id is not None:
            is_same = row["memory_id"] == memory_id and row["kind"] != "recall"
        else:
            is_same = (row["kind"], row["project_id"]) == (kind, scope) and content.keys() == payload.keys()
        if is_same:
            return row["kind"], content
    return None
