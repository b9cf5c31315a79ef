"""The brief: which memories a new session is told of, why those, and their layout (spec 8.4, 11.2)."""

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.plain import on_one_line
from cortex.transforms.brief.candidates import (
    about_repository,
    candidates_of,
    printed_order,
    sign_to_archive,
)
from cortex.transforms.brief.choice import PLACES, REPOSITORY, Choice
from cortex.transforms.brief.eligible import (
    NO_SESSIONS,
    believed,
    is_on_purpose,
    standings,
    with_choices_first,
)
from cortex.transforms.brief.room import Room, by_turns, framed, heading_lines
from cortex.transforms.policy import Policy
from cortex.transforms.words.sentences import first_sentences

NO_MARKS: Mapping[str, str] = {}


def lay_out(choices: Iterable[Choice], *, project_name: str) -> str:
    """Return the brief that shows the chosen lines in their order, or nothing if none is shown."""
    lines: list[str] = []
    section = ""
    for choice in choices:
        if choice.is_shown:
            lines += [*(heading_lines(choice.section) if choice.section != section else []), choice.text]
            section = choice.section
    return framed(project_name, lines) if section != REPOSITORY else ""


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
) -> list[Choice]:
    """
    Return every candidate for the brief in the order of printing, each shown or left out with its reason.

    Candidates are active, believed, sure enough, and among the best-ranked of their type; of one subject the
    newest. What a person said on purpose (remembered, edited, pinned) is seated first, then where the work
    stands; then each section gets its guaranteed lines, by turns; then rank alone decides until the budget
    is spent. Decisions stay within their share of it.
    """
    memories = with_choices_first(memories, policy)
    memories = memories.append_column("is_on_purpose", is_on_purpose(memories))
    rows = believed(memories, policy)
    standing = standings(rows, sessions, policy)
    disputes = _disputes(edges, rows)
    for memory_id, mark in marks.items():
        disputes[memory_id] = f" {on_one_line(mark)}{disputes.get(memory_id, '')}"
    candidates = candidates_of(memories, rows, standing, disputes, policy)
    signs = [*about_repository(repository), *sign_to_archive(standing, policy)]
    room = Room(project_name, budget_tokens, policy)
    for candidate in [*signs, *by_turns(candidates, int(policy.threshold("brief_section_lines")))]:
        room.seat(candidate)
    printed = sorted(printed_order([*candidates, *signs]), key=lambda each: PLACES[each.section])
    return [candidate.choice for candidate in printed]


def _disputes(edges: pa.Table, rows: pa.Table) -> dict[str, str]:
    """Return, by memory id, the mark of a memory that another believed one contradicts."""
    contradictions = edges.filter(pc.field("edge_type") == "contradicts").to_pylist()
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
    return {name: f' [contradicted by "{min(others)}"]' for name, others in contradicting.items()}
