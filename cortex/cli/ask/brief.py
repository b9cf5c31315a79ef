"""The command `brief`: what the assistant is given at a session's start, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import AS_OF, PROJECT_OPTION
from cortex.hooks.prose.plain import on_one_line
from cortex.transforms.errors import UsageError
from cortex.transforms.words.sentences import first_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.brief import Explanation
    from cortex.transforms.brief.brief_sections import Choice

TEXT_CHARS = 110


@command("brief", "Print the brief that the assistant gets when a session starts.", place=40)
@click.option(
    "--explain", is_flag=True, help="Explain why each line is in the brief, and list what is left out."
)
@click.option("--archive", is_flag=True, help="Print the older decisions that do not fit into the brief.")
@PROJECT_OPTION
@AS_OF
def brief(context: Context, explain: bool, archive: bool, project: str | None, as_of: str | None) -> Answer:
    """Print the brief that the assistant gets when a session starts."""
    from cortex.flows.operations.ask import brief as brief_operation

    if explain and archive:
        raise UsageError("--explain and --archive cannot be combined.", "Give one of them.")
    if explain:
        explanations = brief_operation.explain_briefs(context, project, as_of=as_of)
        lines = [line for explanation in explanations for line in _lines(explanation)]
        return Answer({"briefs": [_as_dict(explanation) for explanation in explanations]}, lines)
    briefs = brief_operation.read_briefs(context, project, archive=archive, as_of=as_of)
    texts = [brief.text for brief in briefs if brief.text]
    return Answer(
        {"briefs": [{"project_id": brief.project_id, "text": brief.text} for brief in briefs]},
        [text.removesuffix("\n") for text in texts],
        [] if texts else [_nothing(context, project, archive, is_known=bool(briefs))],
    )


def _nothing(context: Context, project: str | None, archive: bool, *, is_known: bool) -> str:
    from cortex.flows.operations.ask import listing

    book, what = context.open_store().projects, "older decisions" if archive else "brief"
    if is_known:
        ids = book.named(project) if project else [book.known(str(context.folder)) or ""]
        why = "" if archive else f": {listing.why_nothing(context, ids[0])}"
        return f"No {what} for {project or 'this folder'}{why}."
    known = ", ".join(sorted(book.labels().values()))
    rest = f"Known projects: {known}." if known else "Read your sessions with: cortex backfill"
    return f"No {what} for {project or 'this folder'}: no session of it has been read yet. {rest}"


def _lines(explanation: Explanation) -> Iterator[str]:
    shown, left_out = explanation.shown, explanation.left_out
    yield f"{explanation.project.name}: {len(shown)} of {len(explanation.choices)} candidates are in."
    section = ""
    for choice in shown:
        if choice.section != section:
            section = choice.section
            yield f"\n{section}"
        doubt = explanation.doubts.get(choice.memory_id)
        yield f"  {choice.memory_id[:6] or '-':<6}  {_first_sentence(choice.text)}"
        yield f"          in: {choice.reason}" + (f"; {doubt}" if doubt else "")
    if left_out:
        yield "\nLeft out, the best first"
    for choice in left_out:
        yield f"  {choice.memory_id[:6]}  {_first_sentence(choice.text)}"
        yield f"          out: {choice.reason} (rank {choice.rank:.2f})"


def _first_sentence(text: str) -> str:
    """Return the first line of a text, cut at a sentence end."""
    line = on_one_line(text.split("\n", 1)[0])
    return line if len(line) <= TEXT_CHARS else first_sentences(line, count=1, chars=TEXT_CHARS)


def _as_dict(explanation: Explanation) -> dict[str, object]:
    def choice_as_dict(choice: Choice) -> dict[str, object]:
        return {
            "section": choice.section,
            "memory_id": choice.memory_id or None,
            "text": choice.text,
            "reason": choice.reason,
            "rank": round(choice.rank, 4),
            "doubt": explanation.doubts.get(choice.memory_id),
        }

    return {
        "project_id": explanation.project.project_id,
        "project": explanation.project.name,
        "shown": [choice_as_dict(choice) for choice in explanation.shown],
        "left_out": [choice_as_dict(choice) for choice in explanation.left_out],
    }
