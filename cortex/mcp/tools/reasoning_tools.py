"""The tools that put memories together: `reflect` and `infer`."""

from collections.abc import Mapping, Sequence
from typing import Any

from cortex.flows.operations.ask import reasoning
from cortex.flows.operations.ask.reasoning import CitedAnswer, Inference, Point, Step, looks_like_path
from cortex.flows.operations.lookup import is_memory_id
from cortex.mcp.protocol.call import (
    ALL,
    DECLINED,
    NOTICE,
    ChoiceQuestion,
    ListItem,
    Option,
    ToolCall,
    ToolReply,
    note,
    page_of,
    position_of,
    quoted,
)
from cortex.mcp.tools import tool as schemas
from cortex.mcp.tools.read_tools import OPTION_CHARS
from cortex.mcp.tools.tool import tool
from cortex.transforms.vocabulary import STATUSES
from cortex.transforms.words.ages import outcome_lines

POINTS_SHOWN = 20


@tool(
    "reflect",
    "Reflect on what is unsettled",
    "List what is open, contradictory or stale in this project; with a question, also an answer that "
    "cites memories.",
    takes=schemas.takes(
        "",
        question=schemas.text(longest=schemas.MAX_TEXT_LENGTH),
        limit=schemas.ITEM_LIMIT,
        project=schemas.PROJECT,
        cursor=schemas.CURSOR,
    ),
    gives=schemas.gives(
        points=schemas.list_of(
            kind={"enum": ["open", "contradictory", "stale"]},
            texts=schemas.STRING_LIST,
            reason=schemas.STRING,
            memory_ids=schemas.STRING_LIST,
            project=schemas.STRING,
        ),
        answer=schemas.STATEMENTS,
        source=schemas.STRING,
        note=schemas.STRING,
        cursor=schemas.STRING_OR_NULL,
    ),
    place=30,
)
def answer_reflect(call: ToolCall) -> ToolReply:
    """List unresolved points; answer a question from memories."""
    question = call.get("question", "")
    subject = f"reflect {question} {call.get('project')}"
    skip = position_of(call.get("cursor"), subject)
    reflection = reasoning.reflect(call.context, question, project=call.get("project"))
    points = reflection.points[skip:]
    answer = None if skip else reflection.answer
    items = [_point(call, point, reflection.project_names) for point in points]
    statements = _statements(call, answer)
    page = page_of(
        items,
        limit=call.get("limit", POINTS_SHOWN),
        chars=call.chars - sum(len(each["text"]) + 120 for each in statements),
        at=skip,
        subject=subject,
        more=False,
    )
    data: dict[str, Any] = {"notice": NOTICE, "points": page.data, "cursor": page.cursor}
    heading = f"{len(points)} unsettled." if points else "Nothing is unsettled."
    lines = [page.text(heading)]
    if answer is not None:
        data |= {"answer": statements, "source": answer.source, "note": answer.note}
        lines += ["Answer:", *_cited(statements), *([answer.note] if answer.note else [])]
    return ToolReply(data, "\n".join(lines)[: call.chars])


def _point(call: ToolCall, point: Point, names: Mapping[str, str]) -> ListItem:
    texts = [quoted(text, call.excerpt) for text in point.texts]
    data = {
        "kind": point.kind,
        "texts": texts,
        "reason": quoted(point.reason, call.excerpt),
        "memory_ids": list(point.memory_ids),
        "project": quoted(names.get(point.project_id, point.project_id), OPTION_CHARS),
    }
    ids = ", ".join(name[:12] for name in point.memory_ids)
    quotes = " / ".join(f'"{text}"' for text in texts)
    return ListItem(data, [f"- [{point.kind}] {quotes} ({data['reason']}, id {ids})"])


def _statements(call: ToolCall, answer: CitedAnswer | None) -> list[dict[str, Any]]:
    statements = answer.statements if answer else ()
    return [
        {"text": quoted(each.text, call.excerpt * 2), "memory_ids": list(each.memory_ids)}
        for each in statements
    ]


def _cited(statements: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f'- "{each["text"]}" (id {", ".join(name[:12] for name in each["memory_ids"])})'
        for each in statements
    ]


@tool(
    "infer",
    "Infer why something is so",
    "Explain why code or a design is as it is: the chain of decisions about a file path, subject or "
    "memory id, with reasons and rejected options.",
    takes=schemas.takes(
        "target",
        target=schemas.text(),
        all={"type": "boolean", "description": "every match, if the target means several"},
        limit=schemas.ITEM_LIMIT,
        project=schemas.PROJECT,
    ),
    gives=schemas.gives(
        chain=schemas.list_of(
            id=schemas.STRING,
            type=schemas.STRING,
            text=schemas.STRING,
            reason=schemas.STRING,
            rejected=schemas.STRING,
            trust=schemas.TRUST,
            status={"enum": list(STATUSES)},
            said_on=schemas.STRING,
            outcomes={"type": "array", "items": schemas.STRING},
            relations=schemas.list_of(relation=schemas.STRING, id=schemas.STRING),
        ),
        narrative=schemas.STATEMENTS,
        source=schemas.STRING,
        note=schemas.STRING,
        options=schemas.OPTIONS,
    ),
    place=40,
)
def answer_infer(call: ToolCall) -> ToolReply:
    """Give the chain of decisions about a target; ask which is meant where a word means several."""
    target = call.arguments["target"]
    if len(target.split()) == 1 and not call.get("all") and not _is_exact(target):
        looked = _infer(call, target, narrated=False)
        options = _options(call, looked.chain)
        if len(options) > 2:  # besides "all of them"
            message = f"'{target}' occurs in several unrelated decisions. Which one?"
            choice = call.person.choose(ChoiceQuestion(message, options))
            if choice in (None, DECLINED):
                return _undecided(target, options, was_asked=choice is not None)
            target = target if choice == ALL else choice
    return _explained(call, _infer(call, target, narrated=True))


def _is_exact(target: str) -> bool:
    return looks_like_path(target) or is_memory_id(target)


def _infer(call: ToolCall, target: str, *, narrated: bool) -> Inference:
    limit = call.get("limit", POINTS_SHOWN)
    return reasoning.infer(call.context, target, project=call.get("project"), limit=limit, narrated=narrated)


def _options(call: ToolCall, chain: Sequence[Step]) -> list[Option]:
    """Return the newest step of each chain that has nothing to do with the others, and "all of them"."""
    heads: dict[str, str] = {step.memory_id: step.memory_id for step in chain}

    def head(name: str) -> str:
        while heads[name] != name:
            name = heads[name]
        return name

    for step in chain:
        for relation in step.relations:
            if relation.memory_id in heads:
                heads[head(step.memory_id)] = head(relation.memory_id)
    newest = {head(step.memory_id): step for step in chain}  # the chain is oldest first
    shown = sorted(newest.values(), key=lambda step: (-step.at.timestamp(), step.memory_id))
    shown = shown[: call.number("mcp_options") - 1]
    return [
        *(Option(step.memory_id[:12], quoted(step.text, OPTION_CHARS)) for step in shown),
        Option(ALL, "All of them"),
    ]


def _undecided(target: str, options: Sequence[Option], *, was_asked: bool) -> ToolReply:
    why = "The person chose none." if was_asked else "Call again with the id of one, or with all: true."
    lines = [f"'{quoted(target, OPTION_CHARS)}' means several. {why}", NOTICE]
    lines += [f'- {each.id}: "{each.label}"' for each in options if each.id != ALL]
    listed = [each.as_dict() for each in options]
    return ToolReply({"notice": NOTICE, "chain": [], "options": listed, "note": why}, "\n".join(lines))


def _explained(call: ToolCall, inference: Inference) -> ToolReply:
    answer = inference.narrative
    statements = _statements(call, answer) if answer.is_written else []
    items = [_step(call, step) for step in inference.chain]
    page = page_of(
        items,
        limit=len(items),
        chars=call.chars - sum(len(each["text"]) + 120 for each in statements),
        at=0,
        subject="infer",
        more=False,
    )
    page.cursor = None  # a chain is asked for again by a narrower target
    heading = f"{len(page.items)} decisions, oldest first." if items else "No memory is about this."
    data = {
        "notice": NOTICE,
        "chain": page.data,
        "narrative": statements,
        "source": answer.source,
        "note": answer.note,
    }
    lines = [page.text(heading), *(["In short:", *_cited(statements)] if statements else [])]
    return ToolReply(data, "\n".join(lines)[: call.chars])


def _step(call: ToolCall, step: Step) -> ListItem:
    text, reason, rejected = (
        quoted(words, call.excerpt) for words in (step.text, step.reason, step.rejected)
    )
    outcomes = [quoted(line, call.excerpt) for line in outcome_lines(step.outcomes)]
    data = {
        "id": step.memory_id,
        "type": step.memory_type,
        "text": text,
        "reason": reason,
        "rejected": rejected,
        "trust": step.trust,
        "status": step.status,
        "said_on": f"{step.at:%Y-%m-%d}",
        "outcomes": outcomes,
        "relations": [{"relation": each.word, "id": each.memory_id} for each in step.relations],
    }
    lines = [note(step.trust, text, f"{step.at:%Y-%m-%d}", step.status, f"id {step.memory_id[:12]}")]
    lines += [f'  {name}: "{words}"' for name, words in (("why", reason), ("rejected", rejected)) if words]
    lines += [f'  what came of it: "{line}"' for line in outcomes]
    lines += [f"  {each.word} {each.memory_id[:12]}" for each in step.relations]
    return ListItem(data, lines)
