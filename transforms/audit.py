"""The audit: what a stage's output must keep before it becomes visible; tables in, violations out (law 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.tokens import tokens_in
from cortex.transforms.database import query
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.schemas import (
    EDGES,
    EVENTS,
    MEMORIES,
    PASSAGES,
    TURNS,
    Column,
    Table,
    as_polars,
    values,
)

# Imported where rows are checked: a run in which nothing is new has none.
if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, order=True)
class Violation:
    """One row that breaks a promise: its table, its id, and the reason; never its text."""

    table: str
    row_id: str
    reason: str


def turns_violations(turns: pa.Table) -> list[Violation]:
    """Return what is wrong with TURNS about to be committed; secrets are looked for in all of them."""
    return layout_violations(turns, TURNS) or [*column_violations(turns, TURNS), *_secrets(TURNS, turns)]


def events_violations(events: pa.Table, known_turns: pa.Table) -> list[Violation]:
    """Return what is wrong with EVENTS about to be committed; `known_turns` holds the turns they rest on."""
    if violations := layout_violations(events, EVENTS):
        return violations
    is_known = pc.is_in(events["turn_id"], known_turns["turn_id"].combine_chunks())
    resting_on_none = values(events.filter(pc.invert(is_known)), "event_id")
    return [
        *column_violations(events, EVENTS),
        *(Violation("events", name, "rests on no known turn") for name in resting_on_none),
        *_secrets(EVENTS, events),
    ]


def memories_violations(memories: pa.Table, live: pa.Table, scope: str, policy: Policy) -> list[Violation]:
    """
    Return what is wrong with a scope's MEMORIES about to replace `live`, the MEMORIES shown until now.

    Secrets are looked for in rows whose text is not in `live`: what was audited once need not be again.
    Shares of junk and of repetitions count from `audit_share_from_rows` shown memories on.
    """
    if violations := layout_violations(memories, MEMORIES):
        return violations
    is_blank = pc.equal(pc.utf8_trim_whitespace(memories["text"]), pa.scalar(""))
    blank = memories.filter(pc.and_(is_blank, pc.not_equal(memories["status"], pa.scalar("pruned"))))
    return [
        *column_violations(memories, MEMORIES, scope),
        *(Violation("memories", name, "no text") for name in values(blank, "memory_id")),
        *_secrets(MEMORIES, _not_in(memories, live)),
        *_too_many_flawed(memories, scope, policy),
    ]


def edges_violations(edges: pa.Table, memories: pa.Table) -> list[Violation]:
    """Return what is wrong with a scope's EDGES; `memories` are those that they may connect."""
    if violations := layout_violations(edges, EDGES):
        return violations
    misled = query("audit_edges", {}, edges=edges, memories=memories.select(["memory_id"])).to_pylist()
    return [
        *column_violations(edges, EDGES),
        *(Violation("edges", row["row_id"], row["reason"]) for row in misled),
    ]


def passages_violations(passages: pa.Table, scope: str) -> list[Violation]:
    """Return what is wrong with a project's PASSAGES: parts of turns, which were searched for secrets."""
    return layout_violations(passages, PASSAGES) or column_violations(passages, PASSAGES, scope)


def brief_violations(text: str, scope: str, policy: Policy, budget_tokens: int) -> list[Violation]:
    """Return what is wrong with a brief: over its budget, a secret in it, a private section."""
    reasons = [f"secret: {kind}" for kind in kinds_of_secret(text)]
    if tokens_in(text) > budget_tokens or len(text) > policy.threshold("brief_max_chars"):
        reasons.append(f"over its budget of {budget_tokens} tokens")
    if "<private>" in text.lower():
        reasons.append("text of a private section")
    return [Violation("brief", scope, reason) for reason in reasons]


def archive_violations(text: str, scope: str) -> list[Violation]:
    """Return what is wrong with a decisions archive: a secret in it, a private section."""
    reasons = [f"secret: {kind}" for kind in kinds_of_secret(text)]
    if "<private>" in text.lower():
        reasons.append("text of a private section")
    return [Violation("archive", scope, reason) for reason in reasons]


def layout_violations(rows: pa.Table, table: Table) -> list[Violation]:
    """Return a violation for each column of `table` that `rows` lacks or has otherwise."""
    violations = []
    for field in table.arrow:
        if field.name not in rows.schema.names:
            violations.append(Violation(table.name, field.name, "column is missing"))
        elif rows.schema.field(field.name).type != field.type:
            violations.append(Violation(table.name, field.name, "column has another type"))
        elif not field.nullable and rows[field.name].null_count:
            violations.append(Violation(table.name, field.name, "column has empty cells"))
    return violations


def column_violations(rows: pa.Table, table: Table, scope: str | None = None) -> list[Violation]:
    """
    Return what breaks the rules of `table`: a key that is there twice, and each rule of its columns.

    Rows of a `scope` must be of that scope.
    """
    import polars as pl

    row_id = table.key[-1]  # of a key of several columns the last one tells a reader most
    rules = [("its key is there twice", pl.struct(*table.key).is_duplicated())]
    if scope is not None:
        rules.append(("of another scope", pl.col("project_id") != scope))
    rules += [rule for column in table.columns for rule in _rules_of(column)]
    names = {name for _, broken in rules for name in broken.meta.root_names()}
    frame = as_polars(rows.select(sorted({*table.key, *names})))
    is_broken = frame.select(broken.any().alias(str(at)) for at, (_, broken) in enumerate(rules)).row(0)
    return sorted(
        {
            Violation(table.name, name, reason)
            for (reason, broken), is_any in zip(rules, is_broken, strict=True)
            if is_any
            for name in frame.filter(broken)[row_id]
        }
    )


def _rules_of(column: Column) -> Iterator[tuple[str, pl.Expr]]:
    """Yield (reason, whether a value breaks it) for each rule of a column; null breaks none."""
    import polars as pl

    value, name = pl.col(column.name), column.name.replace("_", " ")
    if column.one_of:
        yield f"unknown {name}", ~value.is_in(list(column.one_of))
    if column.between:
        low, high = column.between
        # Not a number sorts above all numbers, so this catches it too.
        yield f"{name} outside {low:g} to {high:g}", ~value.is_between(low, high)
    if column.is_filled:
        yield f"no {name}", value.str.strip_chars() == ""
    if column.is_text:
        yield "text of a private section", value.str.contains("(?i)<private>")


def _secrets(table: Table, rows: pa.Table) -> list[Violation]:
    ids = values(rows, *table.key)
    return [
        Violation(table.name, ids[at], f"secret: {kind}")
        for name in table.texts
        for at, text in enumerate(values(rows, name))
        if text
        for kind in kinds_of_secret(text)
    ]


def _not_in(memories: pa.Table, live: pa.Table) -> pa.Table:
    """Return the rows of `memories` that do not stand in `live` with the same words."""
    columns = ["memory_id", *MEMORIES.texts]
    rows = as_polars(memories.select(columns)).with_row_index("position")
    new = rows.join(as_polars(live.select(columns)), on=columns, how="anti", nulls_equal=True)
    return memories.take(new["position"].sort().to_arrow())


def _too_many_flawed(memories: pa.Table, scope: str, policy: Policy) -> list[Violation]:
    """Return each junk memory, or each repetition, of a scope in which they are more than a few."""
    import polars as pl

    is_shown = (
        (pc.field("status") == "active")
        & pc.field("merged_into").is_null()
        & (pc.field("memory_type") != "code")
    )
    columns = ["memory_id", "memory_type", "text"]
    shown = as_polars(memories.filter(is_shown).select(columns)).sort("memory_id")
    if shown.height < policy.threshold("audit_share_from_rows"):
        return []
    # In Polars: of 10,000 memories .08 s of processor time, where DuckDB's patterns took .3.
    text = pl.col("text")
    letters = text.str.replace_all(r"[^\pL]+", "").str.len_chars()
    characters = text.str.replace_all(r"\s+", "").str.len_chars()
    words = text.str.to_lowercase().str.replace_all(r"[^\pL\pN]+", " ").str.strip_chars()
    is_short = text.str.strip_chars().str.len_chars() < policy.threshold("junk_below_chars")
    # Letters of every script; code has more digits, signs and brackets.
    is_code = (letters == 0) | (letters < policy.threshold("junk_below_letters") * characters)
    # Each session has an outcome of its own: sessions that do the same thing end alike and repeat nothing.
    lasting = shown.filter(pl.col("memory_type") != "outcome")
    junk, repeated = shown.filter(is_short | is_code), lasting.filter(~words.is_first_distinct())
    violations: list[Violation] = []
    for flaw, limit, rows in (
        ("junk", "audit_max_junk", junk),
        ("duplicate", "audit_max_duplicates", repeated),
    ):
        ids = rows["memory_id"].to_list()
        if len(ids) > policy.threshold(limit) * shown.height:
            reason = f"{flaw}: {len(ids)} of {shown.height} shown memories"
            violations += [Violation("memories", name, reason) for name in ids]
    return violations
