"""
Puts what was journaled into effect now, and finishes what a killed operation had begun, journaling nothing
twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.flows.context import Context
from cortex.flows.engines.runs import opened, run_plain
from cortex.flows.run.run import Stage
from cortex.flows.stages.embed import COMMAND_FLOW
from cortex.storage.store import Store
from cortex.transforms.errors import LossRefused, StoreBusy
from cortex.transforms.journal_entries import Entry, Recall, from_row

# -- Puts what was journaled into effect now, unless another run is writing or a loss waits for a person.


@dataclass(frozen=True)
class Applied:
    """Whether a change is in effect, and `warning`: what a person should know of that, "" for nothing."""

    is_in_effect: bool
    warning: str = ""

    @property
    def warnings(self) -> list[str]:
        """Return the warning as a list of one, or none."""
        return [self.warning] if self.warning else []


WAITING = Applied(False, "Another run is writing; this takes effect with the next one.")


def apply_now(context: Context, stages: Sequence[Stage]) -> Applied:
    """Run `stages` now; a change that cannot act yet is kept and acts with a later run."""
    run = None
    try:
        with opened(COMMAND_FLOW, context) as run:
            run_plain(stages, run)
    except StoreBusy:
        return WAITING
    except LossRefused as error:
        if run is not None and run.outcome.refused is error:  # only briefs were held back
            return Applied(True, f"In effect, but not in every brief yet: {error}")
        return Applied(False, f"Kept; takes effect once the loss is decided: {error}")
    return Applied(True)


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
