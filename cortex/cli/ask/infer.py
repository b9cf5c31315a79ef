"""The command `infer`: why something is so, by the chain of decisions about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.ask.reflect import (
    answer_as_dict,
    answer_lines,
    note_of,
    short,
)
from cortex.cli.options import ALL_PROJECTS, LIMIT, PROJECT_OPTION
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.infer import Inference
    from cortex.transforms.views.inference import Step


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
    from cortex.flows.operations.ask import infer

    inference = infer.infer(
        context, " ".join(target), project=project, all_projects=all_projects, limit=limit
    )
    data: dict[str, object] = {
        "target": inference.target,
        "chain": [_as_dict(step, inference) for step in inference.chain],
        "narrative": answer_as_dict(inference.narrative),
    }
    if not inference.chain:
        return Answer(data, hints=[f"No memory is about '{inference.target}'."])
    hints = [note_of(inference.narrative)] if inference.narrative.note else []
    return Answer(data, _lines(inference), hints)


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
        "relations": [{"relation": each.word, "id": each.memory_id} for each in step.relations],
    }


def _lines(inference: Inference) -> Iterator[str]:
    if inference.narrative.is_written:
        yield from answer_lines(inference.narrative)
        yield ""
    for step in inference.chain:
        status = "" if step.status == "active" else f", {step.status}"
        yield f"{step.at:%Y-%m-%d}  {excerpt(step.text, 400)}  [{short([step.memory_id])}]"
        yield f"            {step.memory_type}{status}, said by {step.trust}"
        for label, more in (("why", step.reason), ("rejected", step.rejected)):
            if more and more not in step.text:
                yield f"            {label}: {excerpt(more, 200)}"
        for each in step.relations:
            yield f"            {each.word} {short([each.memory_id])}"
