"""The command `forget`: what would go is shown before a person is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import (
    NOTHING_FORGOTTEN,
    PROJECT_OPTION,
    Answer,
    can_ask,
    command,
    copies_data,
    copies_lines,
)
from cortex.transforms.errors import UsageError
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context import Context
    from cortex.flows.operations.edit.forget import ForgetPlan, Forgotten

BACKUPS_STAY = "Backups made before still have it."
TRANSCRIPT_STAYS = "The assistant's own transcript is stored outside Cortex and is still there; backups too."


@command("forget", "Erase a memory or a session.", place=130)
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
    from cortex.flows.operations.edit import forget

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
    yield _answer(forget.forget(context, plan), plan)


def _announcement(plan: ForgetPlan) -> Answer:
    assert plan.memory is not None
    lines = [f"This will be erased: {plan.memory_id[:12]}  {excerpt(plan.memory['text'])}"]
    lines += [f"  and its words in: {row['memory_id'][:12]}  {excerpt(row['text'])}" for row in plan.others]
    return Answer({}, [*lines, "There is no way back but a backup: cortex restore FILE"])


def _answer(forgotten: Forgotten, plan: ForgetPlan) -> Answer:
    from cortex.flows.operations.edit import forget as copies

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
    text_of = {row["memory_id"]: excerpt(row["text"]) for row in plan.others}
    lines += [
        f"With it, for the same words: {other[:12]} {text_of.get(other, '')}".rstrip()
        for other in forgotten.others
    ]
    lines += copies_lines(copies.Copies(forgotten.reached, forgotten.copies))
    stays = BACKUPS_STAY if forgotten.is_typed else TRANSCRIPT_STAYS
    return Answer(data, lines, [stays], forgotten.applied.warnings)


def _session(context: Context, session: str) -> Answer:
    from cortex.flows.operations.edit import forget

    forgotten = forget.forget_session(context, session)
    name, applied = forgotten.session_id, forgotten.applied
    return Answer(
        {
            "session": name,
            "forgotten": True,
            "applied": applied.is_in_effect,
            "went_with_it": list(forgotten.others),
            **copies_data(forgotten.copies),
        },
        [
            f"Forgotten: session {name}, its turns, and what was learned only from them.",
            *(f"With it, as nothing else says it: global memory {name[:12]}." for name in forgotten.others),
            *copies_lines(forgotten.copies),
        ],
        ["The assistant's own transcript of the session is stored outside Cortex and still exists."],
        applied.warnings,
    )
