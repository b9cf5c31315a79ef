"""Operations that are repeated after a kill finish what was begun and journal nothing twice."""

from cortex.flows.context.context import Context
from cortex.storage.store import Store
from cortex.transforms.journal_entries import Entry, Recall, from_row


def write_once(
    context: Context, store: Store, entry: Entry, scope: str, memory_id: str | None = None
) -> None:
    """Journal an entry, unless the last word on the memory (or on that key of a project) is the same one."""
    if last_word(store, entry, scope, memory_id) != entry:
        store.journal.write(entry.to_row(scope, recorded_at=context.now, memory_id=memory_id))


def last_word(store: Store, entry: Entry, scope: str, memory_id: str | None) -> Entry | None:
    """Return the journal's last entry on the same thing as `entry`, recalls apart; None without."""
    for row in reversed(store.journal.read().to_pylist()):
        if memory_id is not None:
            if row["memory_id"] == memory_id and row["kind"] != Recall.kind:
                return from_row(row)
        elif (row["kind"], row["project_id"]) == (entry.kind, scope):
            last = from_row(row)
            if last.content.keys() == entry.content.keys():
                return last
    return None
