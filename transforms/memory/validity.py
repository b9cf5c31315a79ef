"""The end of a memory's valid time: what no longer holds, by a later word or a language model's finding."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.memory.link import PRACTICE_ENDED, contrary_rules
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import MEMORIES, PROPOSED_BY_MODEL, TRUSTS, Row

_COLUMNS = [
    *("memory_id", "memory_type", "source_type", "is_pinned", "trust", "status", "initial_confidence"),
    *("created_at", "updated_at"),
]
_ENDS = ["source_id", "target_id", "rule"]


@dataclass(frozen=True)
class Ending:
    """When a memory stopped to hold, and by what: a memory's id, or a commit."""

    until: datetime
    by: str


def with_valid_time(
    memories: pa.Table, edges: pa.Table, by_others: Mapping[str, Ending], policy: Policy
) -> pa.Table:
    """
    Return MEMORIES with `valid_until` and `closed_by`, by the edges of what is at odds.

    Of two that rules found at odds the later word holds; what a language model proposed says itself which.
    Takes EDGES of their scope, and the endings that no memory stands for, such as a commit's. What was said
    again since holds; so does, until a person settles it, what they said on purpose or what is trusted more
    than what would close it: a transcript may talk a model into anything.
    """
    endings = _endings(memories, edges, by_others, policy)
    if not endings:
        return memories
    endings_by_row = [endings.get(str(name)) for name in memories["memory_id"].to_pylist()]
    for name, given in (
        ("valid_until", [ending and ending.until for ending in endings_by_row]),
        ("closed_by", [ending and ending.by for ending in endings_by_row]),
    ):
        field = MEMORIES.arrow.field(name)
        memories = memories.set_column(
            memories.schema.get_field_index(name), field, pa.array(given, field.type)
        )
    return memories


def _endings(
    memories: pa.Table, edges: pa.Table, by_others: Mapping[str, Ending], policy: Policy
) -> dict[str, Ending]:
    pairs = edges.filter(pc.field("edge_type") == "contradicts").select(_ENDS).to_pylist()
    names = {pair[end] for pair in pairs for end in ("source_id", "target_id")} | by_others.keys()
    if not names:
        return {}
    is_end = pc.field("memory_id").isin(pa.array(sorted(names), pa.string()))
    rows = {row["memory_id"]: row for row in memories.filter(is_end).select(_COLUMNS).to_pylist()}
    endings: dict[str, Ending] = {}
    for name, ending in sorted(by_others.items()):
        if name in rows and not _is_on_purpose(rows[name]) and rows[name]["updated_at"] <= ending.until:
            endings[name] = ending
    least, disputed = policy.threshold("brief_min_confidence"), policy.types_with("is_disputed")
    sure = contrary_rules(policy, is_sure=True)
    for pair in pairs:
        newer, older = rows.get(pair["source_id"]), rows.get(pair["target_id"])
        if newer and older and pair["rule"] != PROPOSED_BY_MODEL:
            is_asked = {newer["memory_type"], older["memory_type"]} <= disputed
            if pair["rule"] not in sure or not (is_asked or pair["rule"] == PRACTICE_ENDED):
                continue
            older, newer = sorted((older, newer), key=lambda row: (row["updated_at"], row["created_at"]))
        if newer and older and _is_believed(newer, least) and not is_kept(older, newer):
            ending = Ending(newer["updated_at"], newer["memory_id"])
            first = endings.get(older["memory_id"], ending)
            endings[older["memory_id"]] = min(ending, first, key=lambda each: (each.until, each.by))
    return endings


def _is_believed(row: Row, least: float) -> bool:
    # A record of how a session came out closes what it closed when age has archived it.
    is_there = row["status"] in ("active", "archived") and row["trust"] != TRUSTS[0]
    return is_there and bool(row["initial_confidence"] >= least)


def is_kept(older: Row, newer: Row) -> bool:
    """Return whether a memory holds, until a person settles it, whatever a newer one says."""
    return _is_on_purpose(older) or TRUSTS.index(older["trust"]) > TRUSTS.index(newer["trust"])


def _is_on_purpose(row: Row) -> bool:
    """Return whether a person remembered, edited or pinned a memory, indexed code aside."""
    is_edited_code = row["source_type"] == "code_index" and row["trust"] == "user"
    return row["source_type"] == "explicit" or is_edited_code or bool(row["is_pinned"])
