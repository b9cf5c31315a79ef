"""The commands `forget` and `reset`: what would go is shown before a person is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, can_ask, command
from cortex.cli.options import PROJECT_OPTION
from cortex.transforms.errors import UsageError
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.operations.change.copies import Copies
    from cortex.flows.operations.change.forget import ForgetPlan, Forgotten

NOTHING_FORGOTTEN = Answer({"forgotten": False}, ["Nothing forgotten."])
TRANSCRIPT_STAYS = "The assistant's own transcript is stored outside Cortex and is still there; backups too."


@command("forget")
@click.argument("target", nargs=-1)
@PROJECT_OPTION
@click.option(
    "--session", metavar="ID", help="Forget everything said in this session, instead of one memory."
)
@click.option("--yes", is_flag=True, help="Forget the memory that the words name without asking.")
def forget(
    context: Context, target: tuple[str, ...], project: str | None, session: str | None, yes: bool
) -> Iterator[Answer]:
    """Forget a memory by its id (first 4 characters or more), or by words that no other memory has.

    Its text is erased from every file of the store, including the turns it comes from. If the words fit
    several memories, these are only listed. With --yes, one memory must hold two or more of the words, and
    any other at most half of them.
    """
    from cortex.flows.operations.change import forget

    if bool(target) == bool(session):
        raise UsageError("Name one thing to forget.", "Give an id or a question, or --session.")
    if session:
        yield _session(context, session)
        return
    plan = forget.plan_forget(context, " ".join(target), project=project)
    asks = can_ask() and not yes
    if not (asks and plan.words is not None and len(plan.words.exact) == 1):
        plan.check_words(count=yes)
    if asks and plan.needs_consent:
        yield _announcement(plan)
        if not click.confirm("Forget it?"):
            yield NOTHING_FORGOTTEN
            return
    yield _answer(forget.forget(context, plan))


def _announcement(plan: ForgetPlan) -> Answer:
    assert plan.memory is not None
    lines = [f"This will be erased: {plan.memory_id[:12]}  {excerpt(plan.memory['text'])}"]
    lines += [f"  and its words in: {row['memory_id'][:12]}  {excerpt(row['text'])}" for row in plan.others]
    return Answer({}, lines)


def _answer(forgotten: Forgotten) -> Answer:
    from cortex.flows.operations.change import copies

    data = {
        "id": forgotten.memory_id,
        "forgotten": True,
        "applied": forgotten.applied.is_in_effect,
        "went_with_it": list(forgotten.others),
        "copies_left": list(forgotten.copies),
        "copies_reached": list(forgotten.reached),
    }
    if forgotten.text is None:
        done = f"Already forgotten: {forgotten.memory_id[:12]}. The remaining copies are now erased."
        return Answer(data, [done], warnings=forgotten.applied.warnings)
    lines = [f"Forgotten: {forgotten.memory_id[:12]} {excerpt(forgotten.text)}"]
    if forgotten.others:
        lines.append(f"With it, for the same words: {', '.join(other[:12] for other in forgotten.others)}.")
    lines += _copies(copies.Copies(forgotten.reached, forgotten.copies))
    return Answer(data, lines, [TRANSCRIPT_STAYS], forgotten.applied.warnings)


def _session(context: Context, session: str) -> Answer:
    from cortex.flows.operations.change import forget

    forgotten = forget.forget_session(context, session)
    name, applied = forgotten.session_id, forgotten.applied
    return Answer(
        {"session": name, "forgotten": True, "applied": applied.is_in_effect, **_data(forgotten.copies)},
        [
            f"Forgotten: session {name}, its turns, and what was learned only from them.",
            *_copies(forgotten.copies),
        ],
        ["The assistant's own transcript of the session is stored outside Cortex and still exists."],
        applied.warnings,
    )


def _copies(copies: Copies) -> list[str]:
    """Return lines that name what was reached, where there is more than the store, and what was not."""
    reached = [f"Erased from: {each}." for each in copies.reached] if len(copies.reached) > 1 else []
    return [*reached, *(f"Still in: {each}." for each in copies.left)]


def _data(copies: Copies) -> dict[str, object]:
    return {"copies_left": list(copies.left), "copies_reached": list(copies.reached)}


@command("reset")
@click.option("--project", metavar="NAME", required=True, help="Project name, id or path.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def reset(context: Context, project: str, yes: bool) -> Iterator[Answer]:
    """Erase everything about a project up to now; later sessions are kept."""
    from cortex.flows.operations.change import forget

    plan = forget.plan_reset(context, project)
    names = ", ".join(plan.project_ids)
    if not yes:
        loss = f"{plan.memories} memories and {plan.turns} turns of {names} for good"
        if not can_ask():
            raise UsageError(f"this forgets {loss}.", "To continue, repeat the command with --yes.")
        if not click.confirm(f"This forgets {loss}. Go on?"):
            yield NOTHING_FORGOTTEN
            return
    done = forget.reset(context, plan)
    applied = done.applied
    data = {
        "projects": list(plan.project_ids),
        "memories": plan.memories,
        "turns": plan.turns,
        "applied": applied.is_in_effect,
        **_data(done.copies),
    }
    yield Answer(
        data,
        [f"Forgotten: {plan.memories} memories and {plan.turns} turns of {names}.", *_copies(done.copies)],
        ["The assistant's own transcripts are stored outside Cortex and are still there; backups too."],
        applied.warnings,
    )
