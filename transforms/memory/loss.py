"""The loss law: what would no longer be shown, what takes its place, how much of it is too much (law 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cortex.transforms.policy import Policy
from cortex.transforms.vocabulary import Row

# The manifest's notes hold losses, and a look at the manifest needs no tables: .2 s of imports.
if TYPE_CHECKING:
    import pyarrow as pa

# The values by which `shown` filters, for the tables.
SHOWN: dict[str, list[str | None]] = {"status": ["active", "archived"], "merged_into": [None]}
SHOWN_COLUMNS = ["memory_id", "memory_type", "status", "merged_into"]


@dataclass(frozen=True)
class Loss:
    """What one scope would lose: how many of its memories, or of its brief's lines, and how many it shows."""

    scope: str
    lost: int
    shown: int


def shown(memories: pa.Table) -> pa.Table:
    """Return those of MEMORIES that a recall can find: active or archived, not merged into another one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_there = pc.is_in(memories["status"], pa.array(["active", "archived"]))
    return memories.filter(pc.and_(is_there, pc.is_null(memories["merged_into"])))


def lost_ids(live: pa.Table, rebuilt: pa.Table) -> list[str]:
    """
    Return the memories that `live` shows and `rebuilt` does not, by id.

    Takes MEMORIES before and after. One that was merged into a memory that is shown is not lost.
    """
    import pyarrow.compute as pc

    from cortex.transforms.schemas import values

    after = shown(rebuilt)
    is_kept = pc.is_in(shown(live)["memory_id"], after["memory_id"].combine_chunks())
    gone = values(shown(live).filter(pc.invert(is_kept)), "memory_id")
    there = set(values(after, "memory_id"))
    into = dict(zip(values(rebuilt, "memory_id"), values(rebuilt, "merged_into"), strict=True))
    return sorted(name for name in gone if into.get(name) not in there)


def replaced(lost: Iterable[Row], live: pa.Table, rebuilt: pa.Table) -> set[str]:
    """
    Return those of the `lost` rows that a new memory of their type takes the place of: one of the same turn.

    Takes rows and tables of MEMORIES with evidence. Each new memory takes the place of one.
    """
    from cortex.transforms.schemas import values

    rows = list(lost)
    before = set(values(live, "memory_id"))
    turns = {evidence["turn_id"] for row in rows for evidence in row["evidence"]}
    new: dict[tuple[str, str], list[str]] = {}
    for row in shown(rebuilt).select(["memory_id", "memory_type", "evidence"]).to_pylist():
        if row["memory_id"] not in before:
            for evidence in row["evidence"]:
                if evidence["turn_id"] in turns:
                    new.setdefault((row["memory_type"], evidence["turn_id"]), []).append(row["memory_id"])
    taken: set[str] = set()
    replaced_ids: set[str] = set()
    for row in rows:
        places = (new.get((row["memory_type"], evidence["turn_id"]), []) for evidence in row["evidence"])
        successor = next((name for names in places for name in names if name not in taken), None)
        if successor is not None:
            taken.add(successor)
            replaced_ids.add(row["memory_id"])
    return replaced_ids


def rests_on_prose(row: Row) -> bool:
    """
    Return whether a row of MEMORIES rests on what only the assistant's prose says: such are told no more.

    Of a merged memory one part is enough: its text holds the words of all, and the others stand again.
    """
    from cortex.transforms.extract.language.candidate import is_prose_alone

    alone = [is_prose_alone(place["layer"], row["memory_type"]) for place in row["evidence"]]
    return any(alone) if row["source_type"] == "consolidation" else bool(alone) and all(alone)


def too_much(losses: Iterable[Loss], share: float, least: float) -> list[Loss]:
    """
    Return the losses that are more than `share` of what was shown and `least` or more: by scope, and in all.

    Where only the sum of all scopes is too much, all that lose anything are named.

    >>> too_much([Loss("reef", 2, 40), Loss("kelp", 3, 12)], share=0.1, least=3)
    [Loss(scope='kelp', lost=3, shown=12)]
    """
    every = list(losses)
    losses = [loss for loss in every if loss.lost >= least and loss.lost > share * loss.shown]
    lost, known = sum(loss.lost for loss in every), sum(loss.shown for loss in every)
    if losses or lost < least or lost <= share * known:
        return losses
    return [loss for loss in every if loss.lost]


def too_many_memories(losses: Iterable[Loss], policy: Policy) -> list[Loss]:
    """Return the losses of memories that stop a run."""
    return too_much(losses, policy.threshold("loss_share"), policy.threshold("loss_from_memories"))


def too_many_lines(losses: Iterable[Loss], policy: Policy) -> list[Loss]:
    """Return the losses of brief lines that stop a run."""
    return too_much(losses, policy.threshold("loss_brief_share"), policy.threshold("loss_from_lines"))


def shown_lines_of(brief: str) -> int:
    """Return how many facts a brief tells."""
    return sum(line.startswith("- ") for line in brief.split("\n"))
