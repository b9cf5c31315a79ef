"""The audit: what a stage's output must keep before it becomes visible; tables in, breaches out (law 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms import schemas
from cortex.transforms.database import query
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.schemas import EDGES, EVENTS, MEMORIES, PASSAGES, TURNS, Table, values
from cortex.transforms.words.tokens import upper_bound

# Columns that hold free text and so might hold a secret.
TEXTS = {
    "turns": ("text", "tool_input"),
    "events": ("text", "reason", "rejected"),
    "memories": ("text", "reason", "rejected"),
}


@dataclass(frozen=True, order=True)
class Breach:
    """One row that breaks a promise: its table, its id, and the reason; never its text."""

    table: str
    row_id: str
    reason: str


def turns_breaches(turns: pa.Table) -> list[Breach]:
    """Return what is wrong with TURNS about to be committed; secrets are looked for in all of them."""
    return schema_breaches(turns, TURNS) or [
        *_found_by_query("turns", turns=turns),
        *_secrets("turns", "turn_id", turns),
    ]


def events_breaches(events: pa.Table, known_turns: pa.Table) -> list[Breach]:
    """Return what is wrong with EVENTS about to be committed; `known_turns` holds the turns they rest on."""
    return schema_breaches(events, EVENTS) or [
        *_found_by_query("events", events=events, known_turns=known_turns.select(["turn_id"])),
        *_secrets("events", "event_id", events),
    ]


def memories_breaches(memories: pa.Table, live: pa.Table, scope: str, policy: Policy) -> list[Breach]:
    """
    Return what is wrong with a scope's MEMORIES about to replace `live`, the MEMORIES shown until now.

    Secrets are looked for in rows whose text is not in `live`: what was audited once need not be again.
    Shares of junk and of repetitions count from `audit_share_from_rows` shown memories on.
    """
    return schema_breaches(memories, MEMORIES) or [
        *_found_by_query("memories", {"scope": scope}, memories=memories.drop_columns(["evidence"])),
        *_secrets("memories", "memory_id", _not_in(memories, live)),
        *_too_many_flawed(memories, scope, policy),
    ]


def edges_breaches(edges: pa.Table, memories: pa.Table) -> list[Breach]:
    """Return what is wrong with a scope's EDGES; `memories` are those that they may connect."""
    return schema_breaches(edges, EDGES) or _found_by_query(
        "edges", edges=edges, memories=memories.select(["memory_id"])
    )


def passages_breaches(passages: pa.Table, scope: str) -> list[Breach]:
    """Return what is wrong with a project's PASSAGES: parts of turns, which were searched for secrets."""
    columns = ["passage_id", "project_id", "kind", "trust", "text"]
    return schema_breaches(passages, PASSAGES) or _found_by_query(
        "passages", {"scope": scope}, passages=passages.select(columns)
    )


def brief_breaches(text: str, scope: str, policy: Policy, budget_tokens: int) -> list[Breach]:
    """Return what is wrong with a brief: over its budget, a secret in it, a private section."""
    tokens_max = min(budget_tokens, int(policy.threshold("brief_max_tokens")))
    reasons = [f"secret: {kind}" for kind in kinds_of_secret(text)]
    if upper_bound(text) > tokens_max or len(text) > policy.threshold("brief_max_chars"):
        reasons.append(f"over its budget of {tokens_max} tokens")
    if "<private>" in text.lower():
        reasons.append("text of a private section")
    return [Breach("brief", scope, reason) for reason in reasons]


def archive_breaches(text: str, scope: str) -> list[Breach]:
    """Return what is wrong with a decisions archive: a secret in it, a private section."""
    reasons = [f"secret: {kind}" for kind in kinds_of_secret(text)]
    if "<private>" in text.lower():
        reasons.append("text of a private section")
    return [Breach("archive", scope, reason) for reason in reasons]


def schema_breaches(rows: pa.Table, table: Table) -> list[Breach]:
    """Return a breach for each column of `table` that `rows` lacks or has otherwise."""
    found = []
    for field in table.arrow:
        if field.name not in rows.schema.names:
            found.append(Breach(table.name, field.name, "column is missing"))
        elif rows.schema.field(field.name).type != field.type:
            found.append(Breach(table.name, field.name, "column has another type"))
        elif not field.nullable and rows[field.name].null_count:
            found.append(Breach(table.name, field.name, "column has empty cells"))
    return found


def _found_by_query(
    name: str, params: Mapping[str, object] | None = None, **tables: pa.Table
) -> list[Breach]:
    found = query(f"audit_{name}", params or {}, allowed=closed_sets(), **tables)
    return [Breach(name, row["row_id"], row["reason"]) for row in found.to_pylist()]


@cache
def closed_sets() -> pa.Table:
    """Return every closed set as (name, value), for the queries."""
    sets = {
        "kind": schemas.TURN_KINDS,
        "trust": schemas.TRUSTS,
        "tool_status": schemas.TOOL_STATUSES,
        "event_type": schemas.EVENT_TYPES,
        "edge_type": schemas.EDGE_TYPES,
        "memory_type": schemas.MEMORY_TYPES,
        "category": schemas.CATEGORIES,
        "status": schemas.STATUSES,
        "source_type": schemas.SOURCE_TYPES,
    }
    pairs = [(name, value) for name, values in sets.items() for value in values]
    return pa.table({"name": [name for name, _ in pairs], "value": [value for _, value in pairs]})


def _secrets(table: str, key: str, rows: pa.Table) -> list[Breach]:
    columns: Sequence[str] = TEXTS[table]
    ids = values(rows, key)
    return [
        Breach(table, ids[at], f"secret: {kind}")
        for name in columns
        for at, text in enumerate(values(rows, name))
        if text
        for kind in kinds_of_secret(text)
    ]


def _not_in(memories: pa.Table, live: pa.Table) -> pa.Table:
    """Return the rows of `memories` that do not stand in `live` with the same words."""
    columns = ["memory_id", *TEXTS["memories"]]
    rows = _frame(memories.select(columns)).with_row_index("position")
    new = rows.join(_frame(live.select(columns)), on=columns, how="anti", nulls_equal=True)
    return memories.take(new["position"].sort().to_arrow())


def _frame(rows: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _too_many_flawed(memories: pa.Table, scope: str, policy: Policy) -> list[Breach]:
    """Return each junk memory, or each repetition, of a scope in which they are more than a few."""
    columns = ["memory_id", "memory_type", "text", "status", "merged_into"]
    names = ("junk_below_chars", "junk_below_letters")
    flawed = query(
        "audit_shares",
        {name: policy.threshold(name) for name in names},
        memories=memories.select(columns),
    )
    is_shown = (
        (pc.field("status") == "active")
        & pc.field("merged_into").is_null()
        & (pc.field("memory_type") != "code")
    )
    shown = memories.select(columns).filter(is_shown).num_rows
    if shown < policy.threshold("audit_share_from_rows"):
        return []
    found: list[Breach] = []
    for flaw, limit in (("junk", "audit_max_junk"), ("duplicate", "audit_max_duplicates")):
        ids = values(flawed.filter(pc.field("flaw") == flaw), "memory_id")
        if len(ids) > policy.threshold(limit) * shown:
            reason = f"{flaw}: {len(ids)} of {shown} shown memories"
            found += [Breach("memories", name, reason) for name in ids]
    return found
