"""The tools that change the memory: `learn` and `consolidate`."""

from dataclasses import replace
from typing import Any

from cortex.flows.operations.edit import remember
from cortex.flows.operations.edit import review as merges_operation
from cortex.flows.operations.edit.apply import Applied
from cortex.flows.operations.edit.review import MemoryMerge
from cortex.hooks.prose.memory_types import FACT_TYPES
from cortex.mcp.protocol.access import DELETE, WRITE
from cortex.mcp.protocol.call import (
    DECLINED,
    NOTICE,
    ChoiceQuestion,
    ListItem,
    Option,
    ToolCall,
    ToolReply,
    page_of,
    quoted,
)
from cortex.mcp.tools import tool as schemas
from cortex.mcp.tools.tool import tool
from cortex.transforms.errors import DecisionContradicted, UsageError

ANYWAY, LEAVE, REPLACE = "anyway", "leave", "replace"
EVERYWHERE, HERE = "everywhere", "here"
KEPT_HERE = (
    "It holds in this project alone: a person says what holds everywhere, with cortex remember --global."
)


@tool(
    "learn",
    "Learn a lesson for good",
    "Store one durable fact: a sentence that stands alone and says what holds, of "
    "what, and why. Saved only if an id comes back. Refused: questions, filler, secrets; against a "
    "decision only if the person agrees.",
    takes=schemas.takes(
        "text",
        text=schemas.text(longest=schemas.MAX_TEXT_LENGTH),
        type={"enum": list(FACT_TYPES)},
        evidence={
            "type": "array",
            "items": schemas.text(),
            "maxItems": schemas.MAX_FILES,
            "description": "files that show it",
        },
        everywhere={"type": "boolean", "description": "holds in every project"},
    ),
    gives=schemas.gives(
        id=schemas.STRING,
        outcome={"enum": ["learned", "reinforced", "reworded"]},
        type=schemas.STRING,
        text=schemas.STRING,
        project=schemas.STRING,
        contradicts=schemas.STRING_LIST,
        in_effect={"type": "boolean"},
        note=schemas.STRING,
    ),
    scope=WRITE,
    place=50,
)
def answer_learn(call: ToolCall) -> ToolReply:
    """Store a lesson; if it contradicts a decision, or for every project, only if the person says so."""
    wants_all = bool(call.get("everywhere"))
    is_global = wants_all and _wants_everywhere(call)
    if not (call.has_project or is_global):
        next_step = "A person says what holds everywhere: cortex remember --global"
        raise UsageError("You are in no project here.", next_step)
    try:
        learned = _learn(call, is_global=is_global, anyway=False)
    except DecisionContradicted as error:
        choice = _choice_on(call, error)
        if choice in (LEAVE, DECLINED, None):
            raise
        learned = _learn(call, is_global=is_global, anyway=True)
        if choice == REPLACE:
            for name in learned.contradicts:
                remember.supersede(call.context, name, learned.memory_id)
            learned = replace(learned, contradicts=())
    notes = [KEPT_HERE] if wants_all and not is_global else []
    notes += filter(None, [_queued(learned.applied)])
    data = {
        "notice": NOTICE,
        "id": learned.memory_id,
        "outcome": learned.outcome,
        "type": learned.memory_type,
        "text": quoted(learned.text, call.excerpt * 5),
        "project": quoted(learned.project, call.excerpt),
        "contradicts": list(learned.contradicts),
        "in_effect": learned.applied.is_in_effect,
        "note": " ".join(notes),
    }
    lines = [f'Stored ({learned.outcome}) as {learned.memory_id}: "{quoted(learned.text, call.excerpt)}"']
    if learned.contradicts:
        lines.append("It contradicts a decision; both stand until a person settles them: cortex review")
    return ToolReply(data, "\n".join([*lines, *notes]))


def _learn(call: ToolCall, *, is_global: bool, anyway: bool) -> remember.Learned:
    return remember.learn(
        call.context,
        call.arguments["text"],
        memory_type=call.get("type", "context"),
        is_global=is_global,
        files=call.get("evidence", ()),
        anyway=anyway,
        by_assistant=True,
    )


def _wants_everywhere(call: ToolCall) -> bool:
    """Return whether the person wants a lesson in all of their projects; no, where nobody can be asked."""
    question = ChoiceQuestion(
        "The assistant wants to remember this in every project of yours: "
        f'"{quoted(call.arguments["text"], call.excerpt)}"',
        [Option(HERE, "In this project alone"), Option(EVERYWHERE, "In every project")],
    )
    return call.person.choose(question) == EVERYWHERE


def _choice_on(call: ToolCall, error: DecisionContradicted) -> str | None:
    """Return what the person says is to become of a lesson that contradicts a decision."""
    question = ChoiceQuestion(
        f'The assistant wants to remember: "{quoted(call.arguments["text"], call.excerpt)}" '
        f"But {quoted(error.problem, call.excerpt)}",
        [
            Option(LEAVE, "Do not remember it"),
            Option(REPLACE, "It takes the place of the old one"),
            Option(ANYWAY, "Keep both"),
        ],
    )
    return call.person.choose(question)


@tool(
    "consolidate",
    "Consolidate duplicates",
    "Plan the merging of memories that say the same; changes nothing and returns a plan id. Called with "
    "that plan, carries out exactly it. Originals are kept.",
    takes=schemas.takes("", plan=schemas.text("id of a plan that was shown")),
    gives=schemas.gives(
        plan=schemas.STRING,
        merges=schemas.list_of(
            id=schemas.STRING,
            project=schemas.STRING,
            text=schemas.STRING,
            members=schemas.STRING_LIST,
            texts=schemas.STRING_LIST,
        ),
        is_done={"type": "boolean"},
        in_effect={"type": "boolean"},
        note=schemas.STRING,
    ),
    scope_with={"plan": DELETE},  # what is merged can be taken back, so nothing is destroyed
    place=60,
)
def answer_consolidate(call: ToolCall) -> ToolReply:
    """Plan merges, or carry out the plan named."""
    plan_id = call.get("plan")
    if plan_id is None:
        plan = merges_operation.plan_merges(call.context)
        heading = f"Plan {plan.plan_id}: {len(plan.merges)} merges; nothing is changed."
        return _merges(call, plan.plan_id, list(plan.merges), heading, {"is_done": False})
    done = merges_operation.carry_out(call.context, plan_id)
    outcome = {"is_done": True, "in_effect": done.applied.is_in_effect, "note": _queued(done.applied)}
    heading = f"{len(done.merges)} merges done; the originals stay, archived. {outcome['note']}".strip()
    return _merges(call, plan_id, list(done.merges), heading, outcome)


def _merges(
    call: ToolCall, plan_id: str, merges: list[MemoryMerge], heading: str, outcome: dict[str, Any]
) -> ToolReply:
    items = [_merge(call, merge) for merge in merges]
    page = page_of(items, limit=len(items), chars=call.chars, at=0, subject="merges", more=False)
    page.cursor = None
    if len(page.items) < len(items):
        heading += f" The first {len(page.items)} of them:"
    data = {"notice": NOTICE, "plan": plan_id, "merges": page.data, **outcome}
    return ToolReply(data, page.text(heading)[: call.chars])


def _merge(call: ToolCall, merge: MemoryMerge) -> ListItem:
    texts = [quoted(text, call.excerpt) for text in merge.texts]
    data = {
        "id": merge.memory_id,
        "project": merge.project_id,
        "text": quoted(merge.text, call.excerpt),
        "members": list(merge.members),
        "texts": texts,
    }
    lines = [f'- {len(merge.members)} become one: "{data["text"]}" (id {merge.memory_id[:12]})']
    return ListItem(data, [*lines, *(f'  - "{text}"' for text in texts)])


def _queued(applied: Applied) -> str:
    return "" if applied.is_in_effect else f"Queued: {applied.warning}"
