"""Keeps what a person says on purpose, unless it says nothing or is known."""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.flows.context.context import Context
from cortex.flows.operations.change.apply import Applied, apply_now
from cortex.flows.operations.change.repetition import last_word
from cortex.flows.operations.lookup.targets import project_of
from cortex.flows.stages.order import APPLY
from cortex.hooks.prose.plain import without_private
from cortex.storage.store import Store
from cortex.transforms.errors import LowQuality
from cortex.transforms.journal_entries import Remember
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.quality import Known, flaw_of, known_as
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORY_TYPES, checked

EXPLICIT = {"status": ["active"], "source_type": ["explicit"]}


@dataclass(frozen=True)
class Remembered:
    """
    The memory that holds a fact now.

    `outcome` is `remembered`, `reinforced` where it was known, or `reworded` where the new words say more;
    `project` is the name of its project.
    """

    memory_id: str
    memory_type: str
    project: str
    outcome: str
    applied: Applied


def remember(
    context: Context,
    text: str,
    *,
    memory_type: str = "context",
    priority: int = 5,
    is_global: bool = False,
    is_pinned: bool = False,
    project: str | None = None,
    files: Sequence[str] = (),
    by_assistant: bool = False,
) -> Remembered:
    """
    Journal a fact; it is searchable at once if no other run is writing, else after that run.

    What an explicit memory of the scope says already reinforces that one: its words stay, or give way to the
    new ones where these say more. `priority` (1 to 10) weighs in ranking; `files` are those that the fact
    names as its evidence. What is kept `by_assistant` is believed as its words in a session are, not as a
    person's. Raises LowQuality for what is not a fact.
    """
    checked("memory type", memory_type, MEMORY_TYPES)
    policy = context.policy
    fact = fact_of(text, policy)
    store = context.open_store()
    scope = GLOBAL_SCOPE if is_global else project_of(context, store, project)
    # The words of a person are reworded by a person alone.
    known = None if by_assistant else _known(store, scope, fact, policy)
    entry = Remember(
        known.text if known and not known.says_more else fact,
        known.memory_type if known else memory_type,
        GLOBAL_SCOPE if is_global else "project",
        priority=priority,
        pinned=is_pinned,
        files=sorted(set(files)),
        source_type="conversation" if by_assistant else None,
        trust="assistant" if by_assistant else None,
    )
    name = known.memory_id if known else memory_id(scope, memory_type, fact)
    last = last_word(store, entry, scope, name) if known is None else None
    if last != entry:  # killed before the tables had it: repeated, it is one entry
        actor = "assistant" if by_assistant else "user"
        store.journal.write(entry.to_row(scope, recorded_at=context.now, memory_id=name, actor=actor))
    return Remembered(
        memory_id=name,
        memory_type=entry.memory_type,
        outcome="remembered" if known is None else "reworded" if known.says_more else "reinforced",
        applied=apply_now(context, APPLY),
        project=store.projects.name_of(scope),
    )


def fact_of(text: str, policy: Policy) -> str:
    """Return what of `text` may be kept, on one line and redacted. Raises LowQuality for empty words."""
    fact, _ = redact(without_private(" ".join(text.split())).strip())
    flaw = flaw_of(fact, policy)
    if flaw:
        raise LowQuality(
            f"nothing was kept: {flaw}.",
            'Say what holds in a short sentence: cortex remember "Use pnpm, not npm"',
        )
    return fact


def _known(store: Store, scope: str, fact: str, policy: Policy) -> Known | None:
    columns = ["memory_id", "memory_type", "text", "status", "source_type"]
    return known_as(fact, store.tables.open(scope, "memories").read(columns, EXPLICIT), policy)
