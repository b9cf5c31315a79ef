"""The commands `reflect` and `infer`: what is open or contradictory, and why something is so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import ALL_PROJECTS, LIMIT, PROJECT_OPTION, SEARCHED_ALL, Answer, command
from cortex.transforms.words.ages import ago, outcome_lines
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cortex.flows.context import Context
    from cortex.flows.operations.ask.reasoning import CitedAnswer, Inference, Point, Reflection, Step


_ID_DIGITS = 8
_TITLES = {"open": "Open", "contradictory": "Contradictory", "stale": "Stale"}


@command("reflect", "List open, contradictory and stale points, or answer with citations.", place=20)
@click.argument("question", nargs=-1)
@PROJECT_OPTION
@ALL_PROJECTS
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    metavar="COUNT",
    help="Maximum number of points of a kind, and of memories to answer from.",
)
def reflect(
    context: Context, question: tuple[str, ...], project: str | None, all_projects: bool, limit: int
) -> Answer:
    """List open, contradictory and stale points; with a QUESTION, answer it and cite the memories.

    If you have chosen a language model, it writes the answer, and sentences that cite no recalled memory are
    dropped. Otherwise the answer is the recalled memories themselves, those still valid first.
    """
    from cortex.flows.operations.ask import reasoning
    from cortex.flows.operations.lookup import is_outside

    outside = is_outside(context, project, all_projects=all_projects)
    all_projects = all_projects or outside
    reflection = reasoning.reflect(
        context, " ".join(question), project=project, all_projects=all_projects, limit=limit
    )
    data: dict[str, object] = {
        kind: [point_as_dict(point, reflection) for point in reflection.of_kind(kind)] for kind in _TITLES
    }
    data["answer"] = answer_as_dict(reflection.answer) if reflection.answer else None
    warnings = [reflection.warning] if reflection.warning else []
    hints = [SEARCHED_ALL] * outside + _hints(reflection)
    return Answer(data, _lines(reflection, context.now, limit), hints, warnings)


def answer_as_dict(answer: CitedAnswer) -> dict[str, object]:
    """Return a cited answer for programs."""
    return {
        "statements": [
            {"text": each.text, "memory_ids": list(each.memory_ids)} for each in answer.statements
        ],
        "source": answer.source,
        "note": answer.note,
    }


def answer_lines(answer: CitedAnswer) -> Iterator[str]:
    """Yield a cited answer for people, a statement a line."""
    for each in answer.statements:
        places = [short(each.memory_ids)]
        places += [f"{each.said_at:%Y-%m-%d}"] * bool(each.said_at)
        places += [each.status] * (each.status != "active")
        yield f"{excerpt(each.text, 400)}  [{', '.join(places)}]"
    if not answer.statements:
        yield "No memory answers that."


def note_of(answer: CitedAnswer) -> str:
    """Return why rules answered, as a sentence."""
    return f"By rules alone: {answer.note}."


def short(memory_ids: Sequence[str]) -> str:
    """Return the beginnings of ids, enough for `cortex show`."""
    return ", ".join(name[:_ID_DIGITS] for name in memory_ids)


def point_as_dict(point: Point, reflection: Reflection) -> dict[str, object]:
    """Return a point for programs."""
    return {
        "project_id": point.project_id,
        "project": reflection.project_names.get(point.project_id, point.project_id),
        "memory_ids": list(point.memory_ids),
        "texts": list(point.texts),
        "reason": point.reason,
        "since": point.since.isoformat() if point.since else None,
    }


def _lines(reflection: Reflection, now: datetime, limit: int) -> Iterator[str]:
    if reflection.answer:
        yield from answer_lines(reflection.answer)
        if not reflection.points:
            return
        yield ""
    has_several = len({point.project_id for point in reflection.points}) > 1
    for kind, title in _TITLES.items():
        points = reflection.of_kind(kind)
        yield f"{title}: {len(points) or 'nothing'}"
        for point in points[:limit]:
            name = reflection.project_names.get(point.project_id, point.project_id)
            where = f"{name}: " if has_several else ""
            yield f"  {where}{_what(point)}  [{short(point.memory_ids)}]"
            yield f"      {point.reason}" + (f", {ago(point.since, now)}" if point.since else "")
        if len(points) > limit:
            yield f"  and {len(points) - limit} more: --limit {len(points)}"


def _what(point: Point) -> str:
    texts = [excerpt(text, 200) for text in point.texts]
    return " / but: ".join(texts) if point.kind == "contradictory" else "; ".join(texts)


def _hints(reflection: Reflection) -> list[str]:
    notes = [note_of(reflection.answer)] if reflection.answer and reflection.answer.note else []
    settles = any(point.kind != "open" for point in reflection.points)
    return notes + (["Resolve contradictions and stale claims: cortex review"] if settles else [])


@command("infer", "Explain why: the decisions behind it, and the rejected alternatives.", place=30)
@click.argument("target", nargs=-1, required=True, metavar="SUBJECT_OR_PATH...")
@PROJECT_OPTION
@ALL_PROJECTS
@LIMIT
def infer(
    context: Context, target: tuple[str, ...], project: str | None, all_projects: bool, limit: int
) -> Answer:
    """Explain why something is as it is: the decisions about a path or a subject, oldest first.

    Each decision comes with its reason, the alternatives it rejected, what it replaced and what replaced it.
    For the id of a memory, shows the chain of decisions it belongs to.
    """
    from cortex.flows.operations.ask import reasoning
    from cortex.flows.operations.lookup import is_outside

    outside = is_outside(context, project, all_projects=all_projects)
    all_projects = all_projects or outside
    inference = reasoning.infer(
        context, " ".join(target), project=project, all_projects=all_projects, limit=limit
    )
    data: dict[str, object] = {
        "target": inference.target,
        "chain": [_as_dict(step, inference) for step in inference.chain],
        "narrative": answer_as_dict(inference.narrative),
    }
    hints = [SEARCHED_ALL] * outside
    if not inference.chain:
        return Answer(data, hints=[*hints, f"No memory is about '{inference.target}'."])
    hints += [note_of(inference.narrative)] if inference.narrative.note else []
    return Answer(data, _infer_lines(inference), hints)


def _as_dict(step: Step, inference: Inference) -> dict[str, object]:
    return {
        "id": step.memory_id,
        "project": inference.project_names.get(step.project_id, step.project_id),
        "project_id": step.project_id,
        "memory_type": step.memory_type,
        "text": step.text,
        "reason": step.reason,
        "rejected": step.rejected,
        "status": step.status,
        "trust": step.trust,
        "created_at": step.at.isoformat(),
        "outcomes": list(step.outcomes),
        "relations": [{"relation": each.word, "id": each.memory_id} for each in step.relations],
    }


def _infer_lines(inference: Inference) -> Iterator[str]:
    has_several = len({step.project_id for step in inference.chain}) > 1
    if inference.narrative.is_written:
        yield from answer_lines(inference.narrative)
        yield ""
    for step in inference.chain:
        status = "" if step.status == "active" else f", {step.status}"
        yield f"{step.at:%Y-%m-%d}  {excerpt(step.text, 400)}  [{short([step.memory_id])}]"
        name = inference.project_names.get(step.project_id, step.project_id)
        where = f", {name}" if has_several else ""
        yield f"            {step.memory_type}{status}{where}, said by {step.trust}"
        for label, more in (("why", step.reason), ("rejected", step.rejected)):
            if more and more not in step.text:
                yield f"            {label}: {excerpt(more, 200)}"
        for line in outcome_lines(step.outcomes):
            yield f"            {line}"
        for each in step.relations:
            yield f"            {each.word} {short([each.memory_id])}"
