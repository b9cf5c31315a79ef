"""The brief: which memories a new session is told of, why those, and their layout (spec 8.4, 11.2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
from cortex.transforms.brief.brief_sections import PLACES, REPOSITORY, Choice
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
)
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import PROPOSED_BY_MODEL, TRUSTS, Row
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
) -> list[Choice]:
    """
    Return every candidate for the brief in the order of printing, each shown or left out with its reason.

    Candidates are active, believed, sure enough, and among the best-ranked of their type; of one subject the
    newest. What a person said on purpose (remembered, edited, pinned) is seated first, then where the work
    stands; then each section gets its guaranteed lines, by turns; then rank alone decides until the budget
    is spent. Decisions stay within their share of it. Where `confirms_until` is given, a last line asks
    whether the oldest claims that were last said until then still hold. Where no language model has read
    the project's sessions, newest comes first in the place of rank, and the last sessions are told
    with what was asked.
    """
    memories = with_choices_first(memories, policy)
    memories = memories.append_column("is_on_purpose", is_on_purpose(memories))
    rows = believed(memories, policy)
    standing = standings(rows, sessions, policy)
    disputes, closed = _disputes(edges, rows), _closed(edges, rows, memories)
    disputes.update((name, _mark(text)) for name, text in closed.kept.items())
    for memory_id, mark in marks.items():
        disputes[memory_id] = f" {on_one_line(mark)}{disputes.get(memory_id, '')}"
    candidates = candidates_of(memories, rows, standing, disputes, policy, is_read_by_model=is_read_by_model)
    for candidate in candidates:
        if candidate.choice.memory_id in closed.left_out:
            candidate.leave_out(closed.left_out[candidate.choice.memory_id])
    signs = [*about_repository(repository), *sign_to_archive(standing, policy)]
    kept_tokens = int(policy.threshold("brief_confirm_tokens")) if confirms_until else 0
    room = Room(project_name, budget_tokens, policy, kept_tokens=kept_tokens)
    for candidate in [*signs, *by_turns(candidates, int(policy.threshold("brief_section_lines")))]:
        room.seat(candidate)
    if confirms_until:
        room.open_kept()
        for question in question_about(candidates, confirms_until, policy, disputed=disputes):
            room.seat(question)
            signs.append(question)
    printed = sorted(printed_order([*candidates, *signs]), key=lambda each: PLACES[each.section])
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


@dataclass(frozen=True)
class _Closed:
    """What a language model says is no longer true: why it is left out, or the newer text where kept."""

    left_out: dict[str, str]
    kept: dict[str, str]


def _came_of(row: Row) -> str:
    """Return the words of a memory; of the record of a session what came of it, without its goal."""
    text = on_one_line(row["text"])
    return text.partition("Outcome: ")[2] or text if row["memory_type"] == "outcome" else text


def _closed(edges: pa.Table, rows: pa.Table, memories: pa.Table) -> _Closed:
    """
    Return what becomes of the believed memories that a believed newer one closes, by memory id.

    Takes EDGES, the believed rows and all MEMORIES: a record of how a session came out closes what it closed
    when it is archived itself.
    Until a person settles it, what they said on purpose, or what is trusted more than the newer, is kept with
    a mark: a transcript may talk a model into anything.
    """
    closings = edges.filter(pc.field("rule") == PROPOSED_BY_MODEL).to_pylist()
    ends = {edge[end] for edge in closings for end in ("source_id", "target_id")}
    is_end = pc.field("memory_id").isin(pa.array(sorted(ends), pa.string()))
    is_record = (pc.field("memory_type") == "outcome") & (pc.field("status") == "archived")
    records = (
        memories.filter(is_end & is_record).select(["memory_id", "memory_type", "text", "trust"]).to_pylist()
    )
    known = {row["memory_id"]: row for row in [*records, *rows.filter(is_end).to_pylist()]}
    closed = _Closed({}, {})
    for edge in closings:
        newer, older = known.get(edge["source_id"]), known.get(edge["target_id"])
        if edge["edge_type"] != "contradicts" or newer is None or older is None:
            continue
        text = first_sentences(_came_of(newer), count=1, chars=60)
        is_kept = older["is_on_purpose"] or TRUSTS.index(older["trust"]) > TRUSTS.index(newer["trust"])
        if is_kept:
            closed.kept[older["memory_id"]] = text
        else:
            reason = f'no longer true, by "{text}" ({newer["memory_id"][:8]}): cortex review asks'
            closed.left_out[older["memory_id"]] = reason
    return closed
