"""Edges from what a language model wrote to what it says is no longer true: proposals, never decisions."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.identity import content_id
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.schemas import EDGES, PROPOSED_BY_MODEL, TRUSTS, Row
from cortex.transforms.writer.answer import FACT_KINDS, WrittenFact, parsed_answer
from cortex.transforms.writer.session import ID_CHARS
from cortex.transforms.writer.written import (
    LAYER_PREFIX,
    OVER,
    REFUSED_CONFIDENCE,
    SESSION_PURPOSE,
    statement_of,
)

CLOSING_COLUMNS = ["memory_id", "project_id", "memory_type", "text", "trust", "updated_at", "evidence"]
CLOSER_COLUMNS = ["session_id", "layer", "text", "trust", "confidence"]
REPLY_COLUMNS = ["session_id", "turn_ids", "known", "purpose", "model", "prompt", "text", "asked_at"]


def with_closings(edges: pa.Table, memories: pa.Table, replies: pa.Table, events: pa.Table) -> pa.Table:
    """
    Return EDGES of a scope with one `contradicts` from each fact of a model to each memory that it closes.

    Takes MEMORIES, REPLIES and EVENTS of the scope. Such an edge takes the place of the one that the pair
    had; its source is the newer, its rule `proposed_by_model`. A fact that was over when its session ended
    has no memory: the record of what came of the session stands for it. Both ends are active, the closed one
    was named in the request and has not been said again since, and a stranger's words close nothing.
    """
    last = _last_replies(replies)
    closings = list(_closings(memories, last, _checked(events))) if last else []
    if not closings:
        return edges
    pairs = {frozenset((edge["source_id"], edge["target_id"])) for edge in closings}
    others = [
        edge for edge in edges.to_pylist() if frozenset((edge["source_id"], edge["target_id"])) not in pairs
    ]
    unique = {edge["edge_id"]: edge for edge in [*others, *closings]}
    return EDGES.of([edge for _, edge in sorted(unique.items())])


def _checked(events: pa.Table) -> set[tuple[str, str, str]]:
    """Return session, layer and text of the facts of models that passed the checks, a stranger's left out."""
    is_checked = pc.starts_with(events["layer"], LAYER_PREFIX)
    rows = events.filter(is_checked).select(CLOSER_COLUMNS).to_pylist()
    return {
        (row["session_id"], row["layer"], row["text"])
        for row in rows
        if row["confidence"] > REFUSED_CONFIDENCE and row["trust"] != TRUSTS[0]
    }


def _closings(
    memories: pa.Table, replies: Iterable[Row], checked: Collection[tuple[str, str, str]]
) -> Iterator[Row]:
    is_active = pc.field("status") == "active"
    active = {row["memory_id"]: row for row in memories.filter(is_active).select(CLOSING_COLUMNS).to_pylist()}
    for reply in replies:
        answer = parsed_answer(reply["text"])
        for fact in answer.facts if answer else ():
            if not fact.closes:
                continue
            if fact.state not in OVER:
                newer = _memory_of(fact, reply, active)
            elif (reply["session_id"], _layer(reply), statement_of(fact)) in checked:
                newer = _record_of(reply, active)
            else:
                newer = None
            for name in _closed(fact, reply["known"]):
                older = active.get(name)
                if newer and older and newer is not older and older["updated_at"] <= newer["updated_at"]:
                    yield closing_edge(newer, older)


def _last_replies(replies: pa.Table) -> list[Row]:
    """Return of each session and layer the reply that counts, where its request named anything."""
    last: dict[tuple[str, str], tuple[tuple[int, datetime], Row]] = {}
    sessions = replies.filter(pc.field("purpose") == SESSION_PURPOSE)
    for row in sessions.select(REPLY_COLUMNS).to_pylist():
        name, order = (row["session_id"], _layer(row)), (len(row["turn_ids"]), row["asked_at"])
        if name not in last or order > last[name][0]:
            last[name] = (order, row)
    return [row for _, (_, row) in sorted(last.items(), key=lambda item: item[0]) if row["known"]]


def _layer(reply: Row) -> str:
    return f"{LAYER_PREFIX}{reply['model']}@{reply['prompt']}"


def _memory_of(fact: WrittenFact, reply: Row, active: Mapping[str, Row]) -> Row | None:
    """Return the memory that a fact of a reply makes; none where it was refused or is not shown."""
    _, memory_type = FACT_KINDS.get(fact.fact_type, FACT_KINDS["context"])
    statement = statement_of(fact)
    for scope in sorted({row["project_id"] for row in active.values()}):
        row = active.get(memory_id(scope, memory_type, statement))
        if row and row["trust"] != TRUSTS[0] and _is_seen(row, reply):
            return row
    return None


def _record_of(reply: Row, active: Mapping[str, Row]) -> Row | None:
    """Return the memory that records what came of the session of a reply; none where nothing did."""
    for _, row in sorted(active.items()):
        if row["memory_type"] == "outcome" and _is_seen(row, reply):
            return row
    return None


def _is_seen(row: Row, reply: Row) -> bool:
    """Return whether a memory rests on what a reply says."""
    return any(
        place["session_id"] == reply["session_id"] and place["layer"] == _layer(reply)
        for place in row["evidence"]
    )


def _closed(fact: WrittenFact, known: Iterable[str]) -> set[str]:
    """Return the ids that a fact closes, of those that its request named."""
    ids = {name[:ID_CHARS] for name in fact.closes if len(name) >= ID_CHARS}
    return {name for name in known if name[:ID_CHARS] in ids}


def closing_edge(newer: Row, older: Row) -> Row:
    """Return the EDGES row by which a language model says that `older` is no longer true, by `newer`."""
    source, target = newer["memory_id"], older["memory_id"]
    return {
        "edge_id": content_id(source, target, "contradicts"),
        "project_id": newer["project_id"],
        "source_id": source,
        "target_id": target,
        "edge_type": "contradicts",
        "strength": 1.0,
        "rule": PROPOSED_BY_MODEL,
    }
