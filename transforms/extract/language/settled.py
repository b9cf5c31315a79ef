"""Sessions that lost words: what was chosen from their turns before stays as it was (spec 12)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.schemas import SETTLED, Row, values

# Stands where words were; it carries none of their length.
FORGOTTEN = "[forgotten]"


@dataclass(frozen=True)
class Settled:
    """The turns that nothing is extracted from again, and the EVENTS that rest on them."""

    turns: frozenset[str] = frozenset()
    events: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)  # by turn

    @classmethod
    def of(cls, settled: pa.Table, events: pa.Table) -> "Settled":
        """Return what SETTLED rows say, given the EVENTS of the same project."""
        turns = frozenset(values(settled, "turn_id"))
        mine = events.filter(pc.is_in(events["turn_id"], pa.array(sorted(turns), pa.string())))
        by_turn: dict[str, tuple[Row, ...]] = {}
        for row in mine.sort_by("event_id").to_pylist():
            by_turn[row["turn_id"]] = (*by_turn.get(row["turn_id"], ()), row)
        return cls(turns, by_turn)

    def rows_of(self, turn_id: str, session_id: str) -> list[Row]:
        """Return the rows of EVENTS that rest on a turn, as of the session in which it stands first."""
        return [{**row, "session_id": session_id} for row in self.events.get(turn_id, ())]


def _is_shown(row: Row, least: float) -> bool:
    """Return whether a row of EVENTS made a memory; steps go with their plan."""
    return row["memory_type"] is not None and row["step_status"] is None and row["confidence"] >= least


def settled_rows(
    known: pa.Table,
    turns: pa.Table,
    sessions: Iterable[str],
    gone: pa.Table,
    project_id: str,
    least_shown: float,
) -> pa.Table:
    """
    Return the SETTLED rows of a project: those `known`, and every turn of the `sessions`.

    Takes the project's TURNS as an erasure leaves them and the EVENTS that are `gone` with it. What is known
    of turns that are no more is dropped.
    """
    in_sessions = pc.is_in(turns["session_id"], pa.array(sorted(sessions), pa.string()))
    left = set(values(turns, "turn_id"))
    counts = dict(zip(values(known, "turn_id"), values(known, "forgotten_events"), strict=True))
    counts = {name: count for name, count in counts.items() if name in left}
    counts |= {name: counts.get(name, 0) for name in values(turns.filter(in_sessions), "turn_id")}
    for row in gone.to_pylist():
        if row["turn_id"] in counts and _is_shown(row, least_shown):
            counts[row["turn_id"]] += 1
    rows = [
        {"turn_id": name, "project_id": project_id, "forgotten_events": count}
        for name, count in sorted(counts.items())
    ]
    return SETTLED.of(rows)


NOTHING_SETTLED = Settled()
