"""The command `reflect`: what is open, contradictory or stale, and answers that cite their memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ALL_PROJECTS, PROJECT_OPTION
from cortex.transforms.words.ages import ago
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.reflect import CitedAnswer, Reflection
    from cortex.transforms.views.reflection import Point

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
    from cortex.flows.operations.ask import reflect

    reflection = reflect.reflect(
        context, " ".join(question), project=project, all_projects=all_projects, limit=limit
    )
    data: dict[str, object] = {
        kind: [point_as_dict(point, reflection) for point in reflection.of_kind(kind)] for kind in _TITLES
    }
    data["answer"] = answer_as_dict(reflection.answer) if reflection.answer else None
    warnings = [reflection.warning] if reflection.warning else []
    return Answer(data, _lines(reflection, context.now, limit), _hints(reflection), warnings)


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
