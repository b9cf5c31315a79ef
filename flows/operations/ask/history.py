"""What lies behind a memory: the turns around its evidence, what was done to it, how sure it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.context import Context
from cortex.flows.engines.runs import looking
from cortex.flows.run.source import journal_parts_of, parts_of
from cortex.storage.lake.lake import each_key_once
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound
from cortex.transforms.journal_entries import Recall, entries_in
from cortex.transforms.memory.lifecycle import clock_of
from cortex.transforms.schemas import TURNS, Row
from cortex.transforms.views.curve import confidence_curve

# What a person reads around a quotation: results of tools and thoughts are long and say little of it.
_SPOKEN_KINDS = frozenset(("prompt", "command", "shell", "text", "tool_call", "rejection", "choice", "plan"))
TURNS_AROUND = 2
PLACES_SHOWN = 6


@dataclass(frozen=True)
class SpokenTurn:
    """One turn near a memory's evidence; `is_cited` where the memory rests on it."""

    turn_id: str
    kind: str
    trust: str
    said_at: datetime | None
    tool_name: str | None
    text: str
    line: int
    is_cited: bool


@dataclass(frozen=True)
class EvidencePlace:
    """One place that a memory rests on, with the turns around it in their order."""

    session_id: str
    file: str
    lines: Sequence[int]
    layer: str
    said_at: datetime | None
    git_branch: str | None
    turns: Sequence[SpokenTurn]


@dataclass(frozen=True)
class JournaledChange:
    """What was done to a memory on purpose, or by a run: a kind of the journal, by whom, and how."""

    at: datetime
    kind: str
    actor: str
    detail: str


@dataclass(frozen=True)
class Relative:
    """A memory that replaced another or was replaced by it; `how` is superseded or merged."""

    memory_id: str
    text: str
    how: str


@dataclass(frozen=True)
class History:
    """
    Behind a memory: places of its evidence (at most PLACES_SHOWN), deeds, recalls and what replaced what.

    `curve` is how sure it was, 0 to 1, by instant.
    """

    places: Sequence[EvidencePlace]
    deeds: Sequence[JournaledChange]
    recalled_at: Sequence[datetime]
    replaced: Sequence[Relative]
    replaced_by: Sequence[Relative]
    curve: Sequence[tuple[datetime, float]]


def history_of(context: Context, memory: Row) -> History:
    """Return what lies behind a row of MEMORIES. Raises FileDamaged, KeyUnavailable."""
    run = looking(context, with_model=False)
    scope, store = memory["project_id"], run.store
    journal = pa.concat_tables([store.journal.read(part) for part in journal_parts_of(store, scope)])
    replaced, by = _relatives(context, memory)
    clock = clock_of(run.readings.activity(scope), run.policy, run.now)
    return History(
        _places(store, scope, memory["evidence"][:PLACES_SHOWN]),
        _deeds(journal, memory["memory_id"]),
        _recalls(journal, memory["memory_id"]),
        replaced,
        by,
        confidence_curve(memory, clock, run.policy, run.now),
    )


def words_at_line(context: Context, session: Row, line: int) -> EvidencePlace:
    """
    Return what was said at a line of a session of SESSIONS, or last before it, and around that.

    Raises NotFound for a line that the session has not, FileDamaged, KeyUnavailable.
    """
    store, name = looking(context, with_model=False).store, session["session_id"]
    turns = _spoken_turns(store, session["project_id"], {name}).get(name, [])
    before = [row for row in turns if row["line"] <= line]
    if not before or line > max(row["line"] for row in turns):
        raise NotFound(f"session '{name[:8]}' has no line {line}.", f"Look: cortex show {name[:8]}")
    cited = max(before, key=lambda row: row["line"])
    place = {name: cited[name] for name in ("turn_id", "session_id", "file", "git_branch", "said_at")}
    return _place({**place, "lines": [cited["line"]], "layer": ""}, turns)


def _places(store: Store, scope: str, evidence: Sequence[Row]) -> list[EvidencePlace]:
    rows = _spoken_turns(store, scope, {place["session_id"] for place in evidence})
    return [_place(place, rows.get(place["session_id"], [])) for place in evidence]


def _spoken_turns(store: Store, scope: str, sessions: set[str]) -> dict[str, list[Row]]:
    """Return what was said in sessions of a project, by session, in its order."""
    rows: dict[str, list[Row]] = {}
    if sessions:
        read = [store.lake.read(TURNS, part, sessions=sessions) for part in parts_of(store, scope)]
        for row in each_key_once(TURNS, pa.concat_tables(read)).to_pylist():
            if row["kind"] in _SPOKEN_KINDS:
                rows.setdefault(row["session_id"], []).append(row)
    for turns in rows.values():
        turns.sort(key=lambda row: (row["agent_id"] or "", row["file"], row["line"], row["block"]))
    return rows


def _place(place: Row, turns: Sequence[Row]) -> EvidencePlace:
    cited = {at for at, row in enumerate(turns) if _is_cited(row, place)}
    near = sorted({n for at in sorted(cited)[:3] for n in range(at - TURNS_AROUND, at + TURNS_AROUND + 1)})
    spoken = [
        SpokenTurn(
            row["turn_id"],
            row["kind"],
            row["trust"],
            row["said_at"],
            row["tool_name"],
            row["text"],
            row["line"],
            at in cited,
        )
        for at, row in ((at, turns[at]) for at in near if 0 <= at < len(turns))
    ]
    branch, said_at = place["git_branch"], place["said_at"]
    lines, layer = place["lines"], place["layer"]
    return EvidencePlace(place["session_id"], place["file"], lines, layer, said_at, branch, spoken)


def _is_cited(turn: Row, place: Row) -> bool:
    is_named = bool(turn["turn_id"] == place["turn_id"])
    return is_named or (turn["file"] == place["file"] and turn["line"] in place["lines"])


def _deeds(journal: pa.Table, memory_id: str) -> list[JournaledChange]:
    own = journal.filter(pc.equal(journal["memory_id"], pa.scalar(memory_id)))
    rows = own.sort_by([("recorded_at", "descending"), ("entry_id", "ascending")]).to_pylist()
    return [JournaledChange(row["recorded_at"], row["kind"], row["actor"], "") for row in rows]


def _recalls(journal: pa.Table, memory_id: str) -> list[datetime]:
    recalls = entries_in(journal, Recall)
    return sorted(
        (row["recorded_at"] for row, entry in recalls if memory_id in entry.memory_ids), reverse=True
    )


def _relatives(context: Context, memory: Row) -> tuple[list[Relative], list[Relative]]:
    """Return what a memory replaced, and what replaced it."""
    catalogue, columns = context.open_catalogue(), ("memory_id", "text")
    replaced = [
        Relative(row["memory_id"], row["text"], how)
        for how, column in (("superseded", "superseded_by"), ("merged", "merged_into"))
        for row in catalogue.read("memories", columns, {column: [memory["memory_id"]]}, order="memory_id")
    ]
    after = {memory["superseded_by"]: "superseded", memory["merged_into"]: "merged"}
    ids = [name for name in after if name]
    newer = catalogue.read("memories", columns, {"memory_id": ids}, order="memory_id") if ids else []
    return replaced, [Relative(row["memory_id"], row["text"], after[row["memory_id"]]) for row in newer]
