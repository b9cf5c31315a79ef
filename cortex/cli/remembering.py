"""The command `remember`: what a person says on purpose is kept, unless it says nothing or is known."""

from cortex.cli.memories import apply_now, open_store, own_scope
from cortex.cli.repeating import last_word
from cortex.cli.terminal import now, print_json, say
from cortex.flows.stages.order import APPLY
from cortex.hooks.plain import without_private
from cortex.storage.reference import read_policy
from cortex.storage.settings import load_settings
from cortex.storage.store import Store
from cortex.transforms.errors import LowQuality
from cortex.transforms.journal_entries import Remember
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.quality import Known, flaw_of, known_as
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORY_TYPES, checked

EXPLICIT = {"status": ["active"], "source_type": ["explicit"]}


def remember(
    text: str,
    *,
    memory_type: str,
    priority: int,
    is_global: bool,
    pin: bool,
    project: str | None,
    as_json: bool,
) -> None:
    """
    Journal a fact; it is searchable at once where no other run is writing, else after that run.

    What an explicit memory of the scope says already reinforces that one: its words stay, or give way to the
    new ones where these say more. Raises LowQuality for what is no fact.
    """
    checked("memory type", memory_type, MEMORY_TYPES)
    policy = read_policy(load_settings().home)
    fact = fact_of(text, policy)
    store = open_store()
    scope = GLOBAL_SCOPE if is_global else own_scope(store, project)
    known = _known(store, scope, fact, policy)
    entry = Remember(
        known.text if known and not known.says_more else fact,
        known.memory_type if known else memory_type,
        GLOBAL_SCOPE if is_global else "project",
        priority=priority,
        pinned=pin,
        files=[],
    )
    name = known.memory_id if known else memory_id(scope, memory_type, fact)
    is_unfinished = known is None and last_word(store, entry, scope, name) == entry
    if not is_unfinished:  # killed before the tables had it: given again, it is one entry
        store.journal.write(entry.to_row(scope, recorded_at=now(), memory_id=name))
    applied = apply_now(APPLY)
    outcome = "remembered" if known is None else "reworded" if known.says_more else "reinforced"
    project_name = store.projects.name_of(scope)
    if as_json:
        told = {"id": name, "project": project_name, "searchable": applied, "outcome": outcome}
        return print_json(told)
    return say(_sentence(outcome, name, known.memory_type if known else memory_type, project_name))


def fact_of(text: str, policy: Policy) -> str:
    """Return what of `text` may be kept, on one line and redacted. Raises LowQuality for what is no fact."""
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


def _sentence(outcome: str, name: str, memory_type: str, project: str) -> str:
    where = f"{name[:12]} ({memory_type}, {project})"
    if outcome == "reinforced":
        return f"Known already as {where}, which is reinforced."
    return f"Remembered as {where}" + (", in place of its shorter words." if outcome == "reworded" else ".")
