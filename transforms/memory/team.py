"""What a team keeps in its repository, as memories: a colleague's word along with your own, or withdrawn."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import TeamFact, Withdraw, from_row, in_order
from cortex.transforms.schemas import GLOBAL_SCOPE, TRUSTS, Row, values
from cortex.transforms.vocabulary import SHARED_LAYER, TEAM_LAYER, WITHDRAWN_LAYER
from cortex.transforms.words.ages import COLLEAGUE, HELD_LAYERS

TEAM_ACTOR = "team"
TEAM_SOURCE = "team"
SHARE = "share"  # of TEAM_SOURCES: a team's place
# What a review adds to one's own memory, and what a withdrawal puts back.
_BENEATH = ("text", "reason", "rejected", "trust", "initial_confidence")


def is_team_held(memories: pa.Table) -> "pa.Array[Any]":
    """Return, by row of MEMORIES, whether a team holds it in its repository now."""
    import pyarrow.compute as pc

    evidence = memories["evidence"]
    layers = pc.struct_field(pc.list_flatten(evidence), "layer")
    is_held = pc.or_(*(pc.starts_with(layers, start) for start in HELD_LAYERS))
    rows = pc.list_parent_indices(evidence).filter(is_held)
    return pc.is_in(pa.array(range(memories.num_rows), pa.int64()), pa.array(rows.to_pylist(), pa.int64()))


def with_team_evidence(row: Row, entry: TeamFact, known: Row | None) -> Row:
    """
    Return a memory that the repository holds, undecayed; what was said here of the same fact stays its own.

    Takes a JOURNAL row with its entry, and the memory so far. One's own memory gains the repository as
    evidence and, where it was believed less, the words and the trust of the review.
    """
    said_at = datetime.fromisoformat(entry.said_at) if entry.said_at else row["recorded_at"]
    layer = _layer_of(entry)
    pairs = zip(entry.authors, entry.paths, strict=False)
    places = [_place(row, layer + author, path, said_at) for author, path in pairs]
    if known is None or known["status"] == "pruned":
        return {**_memory_of(row, entry, said_at), "evidence": places}
    own = [place for place in known["evidence"] if not place["layer"].startswith((layer, WITHDRAWN_LAYER))]
    if known["source_type"] == TEAM_SOURCE:
        fresh = {**known, **_memory_of(row, entry, said_at), "evidence": [*places, *own]}
        kept = {} if known.get("is_withdrawn") else _settled(known)
        return {**fresh, **kept, "created_at": min(known["created_at"], said_at), "is_withdrawn": False}
    memory = {**known, "evidence": [*own, *places], "recorded_at": row["recorded_at"]}
    if TRUSTS.index(known["trust"]) < TRUSTS.index(COLLEAGUE):
        memory["beneath"] = {name: known.get(name) for name in _BENEATH}
        reviewed = {"text": entry.text, "reason": entry.reason, "rejected": entry.rejected}
        memory |= {name: text for name, text in reviewed.items() if text}
        memory |= {"trust": COLLEAGUE, "initial_confidence": 1.0}
    return memory


def withdrawn(memory: Row, entry: Withdraw, at: datetime) -> None:
    """Change a memory that a source holds no more: superseded, or again what it was here alone."""
    layer = _layer_of(entry)
    ended = [place for place in memory["evidence"] if place["layer"].startswith(layer)]
    left = [place for place in memory["evidence"] if not place["layer"].startswith(layer)]
    if not ended:
        return
    is_held = any(place["layer"].startswith(HELD_LAYERS) for place in left)
    if memory["source_type"] == TEAM_SOURCE and not is_held:
        marks = [{**place, "layer": WITHDRAWN_LAYER + place["layer"].partition(":")[2]} for place in ended]
        memory["evidence"] = [*marks, *left]
        if memory["status"] in ("active", "archived") and not memory.get("merged_into"):
            memory.update(status="superseded", superseded_by=entry.by, archived_at=at, is_withdrawn=True)
    else:
        memory["evidence"] = left
        if memory["trust"] == COLLEAGUE and not is_held:
            memory.update(memory.pop("beneath", {}))
    memory["recorded_at"] = at


def team_facts(journal: pa.Table, source: str | None = None) -> dict[str, TeamFact]:
    """Return the memories that JOURNAL rows say a source (None: the repository) holds, by memory_id."""
    held: dict[str, TeamFact] = {}
    for row in in_order(journal).to_pylist() if journal.num_rows else ():
        entry = from_row(row) if row["kind"] in (TeamFact.kind, Withdraw.kind) else None
        if isinstance(entry, TeamFact) and entry.source == source:
            held[row["memory_id"]] = entry
        elif isinstance(entry, Withdraw) and entry.source == source:
            held.pop(row["memory_id"], None)
    return held


def team_changes(
    held: Mapping[str, TeamFact], facts: Mapping[str, TeamFact], source: str | None = None
) -> dict[str, TeamFact | Withdraw]:
    """
    Return the entries by which what was `held` becomes `facts`, by memory_id; none if they agree.

    A memory whose file says something else now is replaced by that. When a file changed by itself changes
    nothing.
    """
    by_path = {path: name for name, fact in facts.items() for path in fact.paths}
    changes: dict[str, TeamFact | Withdraw] = {
        name: fact
        for name, fact in facts.items()
        if name not in held or _content_of(fact) != _content_of(held[name])
    }
    for name in held.keys() - facts.keys():
        successors = sorted({by_path[path] for path in held[name].paths if path in by_path})
        changes[name] = Withdraw(successors[0] if successors else None, source)
    return dict(sorted(changes.items()))


def forgotten_in(journal: pa.Table) -> frozenset[str]:
    """Return the memories that JOURNAL rows say were forgotten on purpose: no file brings them back."""
    import pyarrow.compute as pc

    forgets = journal.filter(pc.equal(journal["kind"], pa.scalar("forget")))
    return frozenset(name for name in values(forgets, "memory_id") if name)


def joined_facts(facts: Iterable[tuple[str, TeamFact]]) -> dict[str, TeamFact]:
    """Return one entry for each memory_id: files of one statement are joined, worded by the first."""
    joined: dict[str, TeamFact] = {}
    for name, fact in sorted(facts, key=lambda pair: (pair[0], *pair[1].paths)):
        before = joined.get(name)
        if before is not None:
            instants = [at for at in (before.said_at, fact.said_at) if at]
            fact = TeamFact(
                before.text,
                before.memory_type,
                [*before.paths, *fact.paths],
                [*before.authors, *fact.authors],
                sorted({*(before.files or ()), *(fact.files or ())}),
                before.reason or fact.reason,
                before.rejected or fact.rejected,
                max(instants, default=None),
                fact.source,
            )
        joined[name] = fact
    return joined


def _content_of(fact: TeamFact) -> tuple[object, ...]:
    files = list(fact.files or ())
    return fact.text, list(fact.authors), list(fact.paths), files, fact.reason, fact.rejected


def _settled(known: Row) -> Row:
    """Return what a person made of a memory here: what the repository says again does not undo it."""
    names = ("status", "archived_at", "superseded_by", "merged_into", "is_pinned", "access_count")
    kept = {name: known[name] for name in (*names, "last_accessed_at") if name in known}
    return {**kept, **({"text": known["text"], "trust": "user"} if known["trust"] == "user" else {})}


def _layer_of(entry: TeamFact | Withdraw) -> str:
    return SHARED_LAYER if entry.source == SHARE else TEAM_LAYER


def _place(row: Row, layer: str, path: str, said_at: datetime) -> Row:
    return {
        "turn_id": content_id("team", str(row["memory_id"]), layer, path),
        "session_id": "",
        "file": path,
        "lines": [],
        "layer": layer,
        "said_at": said_at,
        "git_branch": None,
    }


def _memory_of(row: Row, entry: TeamFact, said_at: datetime) -> Row:
    return {
        "memory_id": row["memory_id"],
        "project_id": row["project_id"],
        "category": "global" if row["project_id"] == GLOBAL_SCOPE else "project",
        "memory_type": entry.memory_type,
        "text": entry.text,
        "reason": entry.reason,
        "rejected": entry.rejected,
        "files": list(entry.files or ()),
        "tags": [],
        "status": "active",
        "source_type": TEAM_SOURCE,
        "trust": COLLEAGUE,
        "is_pinned": False,
        "initial_confidence": 1.0,
        "salience": 1.0,
        "created_at": said_at,
        "updated_at": said_at,
        "recorded_at": row["recorded_at"],
        "archived_at": None,
        "superseded_by": None,
        "merged_into": None,
    }
