"""Keeps a lesson that passes a quality gate: a fact by itself, new, and not at odds with a decision."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.context import Context
from cortex.flows.operations.change.apply import Applied, apply_now
from cortex.flows.operations.change.remember import remember
from cortex.flows.operations.lookup.targets import project_of
from cortex.flows.stages.order import APPLY
from cortex.hooks.prose.plain import without_private
from cortex.storage.settings.reference import word_ranks
from cortex.storage.store import Store
from cortex.transforms.errors import DecisionContradicted, LowQuality
from cortex.transforms.journal_entries import Recall
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.lessons import flaw_of_lesson
from cortex.transforms.memory.link import at_odds_with
from cortex.transforms.memory.quality import Known, known_as
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORY_TYPES, SOURCE_TYPES, Row, checked
from cortex.transforms.words.sentences import excerpt

_COLUMNS = ["memory_id", "project_id", "memory_type", "text", "rejected", "status", "source_type"]
_COMPARED = [*_COLUMNS, "files", "evidence"]
# What was indexed of code follows the code.
_COMPARED_TYPES = tuple(name for name in SOURCE_TYPES if name != "code_index")


@dataclass(frozen=True)
class Learned:
    """
    The memory that holds a lesson now.

    `outcome` is `learned`, `reinforced` where it was known, or `reworded` where the new words say more;
    `text` is the memory's; `project` the name of its project; `contradicts` the ids of decisions that it is
    at odds with and that were accepted.
    """

    memory_id: str
    memory_type: str
    text: str
    project: str
    outcome: str
    contradicts: tuple[str, ...]
    applied: Applied


def learn(
    context: Context,
    text: str,
    *,
    memory_type: str = "context",
    is_global: bool = False,
    anyway: bool = False,
    project: str | None = None,
    files: Sequence[str] = (),
    by_assistant: bool = False,
) -> Learned:
    """
    Journal a lesson as `remember` does a fact, unless it is none; what is known already is reinforced.

    `files` and `by_assistant` are those of `remember`; the assistant rewords nothing that a person said, and
    brings back nothing that a person replaced.

    Raises LowQuality, with the reason, for a question, filler, what is too short, names nothing, leans on
    what is not said or holds a secret; DecisionContradicted where an active decision says otherwise, unless
    `anyway`: both then stand, and the review lists them.
    """
    checked("memory type", memory_type, MEMORY_TYPES)
    policy = context.policy
    lesson = without_private(" ".join(text.split())).strip()
    if flaw := flaw_of_lesson(lesson, policy, word_ranks()):
        raise LowQuality(
            f"nothing was learned: {flaw}.",
            'Say what holds, of what, and why: cortex learn "Retries in poll.py stop after 3 tries"',
        )
    store = context.open_store()
    scope = GLOBAL_SCOPE if is_global else project_of(context, store, project)
    memories = _memories(store, scope)
    known = known_as(lesson, memories, policy, _COMPARED_TYPES)
    is_known = known is not None and not known.says_more
    if known is not None and is_known and (by_assistant or not _is_own(known, memories, scope)):
        return _reinforced(context, store, known, _row_of(known.memory_id, memories))
    contradicted = {} if is_known else at_odds_with(lesson, memories, policy)
    if contradicted and not anyway:
        raise _contradiction(contradicted, memories)
    if by_assistant:
        _check_not_replaced(memory_id(scope, memory_type, lesson), memories)
    memory = remember(
        context,
        lesson,
        memory_type=memory_type,
        is_global=is_global,
        project=project,
        files=files,
        by_assistant=by_assistant,
    )
    return Learned(
        memory.memory_id,
        memory.memory_type,
        lesson,
        memory.project,
        "learned" if memory.outcome == "remembered" else memory.outcome,
        tuple(contradicted),
        memory.applied,
    )


def _memories(store: Store, scope: str) -> pa.Table:
    """Return the MEMORIES that a lesson is compared with: those of its scope, and the global ones."""
    scopes = sorted({scope, GLOBAL_SCOPE})
    return pa.concat_tables([store.tables.open(name, "memories").read(_COMPARED) for name in scopes])


def _row_of(memory_id: str, memories: pa.Table) -> Row:
    [row] = memories.filter(pc.field("memory_id") == memory_id).to_pylist()
    return row


def _is_own(known: Known, memories: pa.Table, scope: str) -> bool:
    """Return whether a memory was said on purpose in this scope: `remember` reinforces it by itself."""
    row = _row_of(known.memory_id, memories)
    return bool(row["source_type"] == "explicit" and row["project_id"] == scope)


def _reinforced(context: Context, store: Store, known: Known, row: Row) -> Learned:
    """Journal that a memory which no person worded was said again, or a global one."""
    holder = str(row["project_id"])
    store.journal.write(Recall([known.memory_id], []).to_row(holder, recorded_at=context.now, actor="learn"))
    applied = apply_now(context, APPLY)
    name = store.projects.name_of(holder)
    return Learned(known.memory_id, known.memory_type, known.text, name, "reinforced", (), applied)


def _check_not_replaced(name: str, memories: pa.Table) -> None:
    is_replaced = (pc.field("memory_id") == name) & (pc.field("status") == "superseded")
    if memories.filter(is_replaced).num_rows:
        raise DecisionContradicted(
            f"nothing was learned: a person replaced the memory {name[:12]}, which says the same.",
            "If it holds again, a person brings it back: cortex supersede --undo",
        )


def _contradiction(contradicted: dict[str, str], memories: pa.Table) -> DecisionContradicted:
    name = next(iter(contradicted))
    words = excerpt(str(_row_of(name, memories)["text"]), 160)
    more = f" and {len(contradicted) - 1} more" if len(contradicted) > 1 else ""
    return DecisionContradicted(
        f"nothing was learned: it contradicts the decision {name[:12]}{more}: {words}",
        "Keep both for the review with --anyway, or put the new one in its place: cortex supersede",
    )
