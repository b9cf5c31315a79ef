"""The brief: which memories a new session is told of, why those, and their layout (spec 8.4, 11.2)."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.prose.plain import on_one_line
from cortex.transforms.brief.brief_budget import (
    Room,
    by_turns,
    framed,
    heading_lines,
)
from cortex.transforms.brief.brief_sections import CONFIRM, NO_ORDER, REPOSITORY, Choice, TellingOrder
from cortex.transforms.brief.candidates import (
    about_repository,
    candidates_of,
    printed_order,
    sign_to_archive,
)
from cortex.transforms.brief.confirmation import question_about
from cortex.transforms.brief.eligible import (
    NO_SESSIONS,
    believed,
    is_on_purpose,
    standings,
    with_choices_first,
    with_places,
)
from cortex.transforms.brief.wording import day
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import PROPOSED_BY_MODEL, Row
from cortex.transforms.words.sentences import first_sentences

NO_MARKS: Mapping[str, str] = {}


def lay_out(choices: Iterable[Choice], *, project_name: str, is_by_model: bool = False) -> str:
    """
    Return the brief that shows the chosen lines in their order, or nothing if none is shown.

    `is_by_model` says that a language model wrote what it shows of sessions, not the rules.
    """
    lines: list[str] = []
    section = ""
    for choice in choices:
        if choice.is_shown:
            lines += [*(heading_lines(choice.section) if choice.section != section else []), choice.text]
            section = choice.section
    return framed(project_name, lines, is_by_model=is_by_model) if section != REPOSITORY else ""


def choose(
    memories: pa.Table,
    edges: pa.Table,
    policy: Policy,
    *,
    project_name: str,
    budget_tokens: int,
    marks: Mapping[str, str] = NO_MARKS,
    sessions: pa.Table = NO_SESSIONS,
    repository: str = "",
    confirms_until: datetime | None = None,
    is_read_by_model: bool = True,
    order: TellingOrder = NO_ORDER,
) -> list[Choice]:
    """
    Return every candidate for the brief in the order of printing, each shown or left out with its reason.

    Candidates are active, believed, sure enough, and among the best-ranked of their type; of one subject the
    newest. What a person said on purpose (remembered, edited, pinned) is seated first, then where the work
    stands; then each section gets its guaranteed lines, by turns; then rank alone decides until the budget
    is spent. Decisions stay within their share of it. Where `confirms_until` is given, a last line asks
    whether the oldest claims that were last said until then still hold. If no language model has read
    the project's sessions, newest comes first in the place of rank, and the last sessions are told
    with what was asked. Where one that read all of the project put it in `order`, that decides in the place
    of turns and rank, and what has no place in it is left out, but for what a person said on purpose, what
    was tagged of late, and what is newer than the order.
    """
    memories = with_choices_first(memories, policy)
    memories = memories.append_column("is_on_purpose", is_on_purpose(memories))
    memories = with_places(memories, order, sessions, policy)
    rows = believed(memories, policy)
    standing = standings(rows, sessions, policy)
    disputes, ended = _disputes(edges, rows) | _kept_though_closed(edges, rows), _ended(rows, memories)
    for memory_id, mark in marks.items():
        disputes[memory_id] = f" {on_one_line(mark)}{disputes.get(memory_id, '')}"
    candidates = candidates_of(memories, rows, standing, disputes, policy, is_read_by_model=is_read_by_model)
    for candidate in candidates:
        if candidate.choice.memory_id in ended:
            candidate.leave_out(ended[candidate.choice.memory_id])
    signs = [*about_repository(repository), *sign_to_archive(standing, policy)]
    kept_tokens = int(policy.threshold("brief_confirm_tokens")) if confirms_until else 0
    room = Room(project_name, budget_tokens, policy, kept_tokens=kept_tokens)
    for candidate in [*signs, *by_turns(candidates, policy)]:
        room.seat(candidate)
    if confirms_until:
        room.open_kept()
        for question in question_about(candidates, confirms_until, policy, disputed=disputes):
            room.seat(question)
            signs.append(question)
    sections = (REPOSITORY, *policy.brief_sections(), CONFIRM)
    printed = sorted(printed_order([*candidates, *signs]), key=lambda each: sections.index(each.section))
    return [candidate.choice for candidate in printed]


def _disputes(edges: pa.Table, rows: pa.Table) -> dict[str, str]:
    """Return, by memory id, the mark of a memory that another believed one contradicts."""
    is_between = (pc.field("edge_type") == "contradicts") & (pc.field("rule") != PROPOSED_BY_MODEL)
    contradictions = edges.filter(is_between).to_pylist()
    pairs = {(edge["source_id"], edge["target_id"]) for edge in contradictions}
    pairs |= {(target_id, source_id) for source_id, target_id in pairs}
    ends = pa.array(sorted({source_id for source_id, _ in pairs}), pa.string())
    # Only decisions can be at odds: an overview is not refuted by the change that came after it.
    is_end = pc.field("memory_id").isin(ends) & (pc.field("memory_type") == "decision")
    named = rows.filter(is_end).to_pylist()
    texts = {row["memory_id"]: on_one_line(row["text"]) for row in named}
    contradicting: dict[str, list[str]] = {}
    for name, other in pairs:
        if name != other and name in texts and other in texts:
            contradicting.setdefault(name, []).append(first_sentences(texts[other], count=1, chars=60))
    return {name: _mark(min(others)) for name, others in contradicting.items()}


def _mark(text: str) -> str:
    return f' [contradicted by "{text}"]'


def _came_of(row: Row) -> str:
    """Return the first words of a memory; of the record of a session what came of it, without its goal."""
    text = on_one_line(row["text"])
    text = text.partition("Outcome: ")[2] or text if row["memory_type"] == "outcome" else text
    return first_sentences(text, count=1, chars=60)


def _kept_though_closed(edges: pa.Table, rows: pa.Table) -> dict[str, str]:
    """
    Return, by memory id, the mark of what holds though a language model says that it is no longer true.

    Until a person settles it, what they said on purpose, or what is trusted more than the newer, is told.
    """
    closings = edges.filter(pc.field("rule") == PROPOSED_BY_MODEL).to_pylist()
    ends = {edge[end] for edge in closings for end in ("source_id", "target_id")}
    is_end = pc.field("memory_id").isin(pa.array(sorted(ends), pa.string()))
    known = {row["memory_id"]: row for row in rows.filter(is_end).to_pylist()}
    return {
        edge["target_id"]: _mark(_came_of(known[edge["source_id"]]))
        for edge in closings
        if edge["edge_type"] == "contradicts"
        and edge["source_id"] in known
        and edge["target_id"] in known
        and known[edge["target_id"]]["valid_until"] is None
    }


def _ended(rows: pa.Table, memories: pa.Table) -> dict[str, str]:
    """Return, by memory id, why the believed rows whose valid time has an end are left out."""
    ended = rows.filter(~pc.field("valid_until").is_null() & (pc.field("memory_type") != "outcome"))
    columns = ["memory_id", "memory_type", "text"]
    is_closer = pc.field("memory_id").isin(ended["closed_by"].combine_chunks())
    closers = {row["memory_id"]: row for row in memories.filter(is_closer).select(columns).to_pylist()}
    reasons = {}
    for row in ended.select(["memory_id", "valid_until", "closed_by"]).to_pylist():
        closer = closers.get(row["closed_by"])
        by = (
            f'"{_came_of(closer)}" ({row["closed_by"][:8]}): cortex review asks'
            if closer
            else row["closed_by"]
        )
        reasons[row["memory_id"]] = f"no longer true since {day(row['valid_until'])}, by {by}"
    return reasons
