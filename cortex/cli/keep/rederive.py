"""The command `rederive`: what today's extractor would make of old sessions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ACCEPT_LOSS, PROJECT_OPTION
from cortex.cli.terminal import cell
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.operations.care.plan import PlannedStage
    from cortex.flows.operations.care.rebuild import Rederived
    from cortex.flows.past.rederive import Proposal

LINES_SHOWN = 5


@command("rederive", "Show what the current extractor would make of old sessions.", place=70)
@PROJECT_OPTION
@click.option("--prompt", metavar="VERSION", help="Version of the language model's prompt to use.")
@click.option(
    "--ask", is_flag=True, help="First read again the sessions that other versions read, within the budget."
)
@click.option("--promote", is_flag=True, help="Replace the stored memories with the result.")
@click.option("--drop", is_flag=True, help="Keep the stored memories and stop reporting the difference.")
@ACCEPT_LOSS
def rederive(
    context: Context,
    project: str | None,
    prompt: str | None,
    ask: bool,
    promote: bool,
    drop: bool,
    accept_loss: bool,
) -> Answer:
    """Extract old sessions again with the current extractor and policy.

    Shows what would appear, disappear and change, and what it costs. Without --project: every project.

    A new version of the language model's prompt (session@2) reads new sessions only. With --ask it also reads
    sessions that older versions have read; this changes nothing until --promote, and --prompt session@1
    --promote goes back at no cost.
    """
    from cortex.flows.operations.care import rebuild

    rederived = rebuild.rederive(
        context,
        project,
        promote=promote,
        drop=drop,
        accepts_loss=accept_loss,
        prompt=prompt,
        asks=ask,
    )
    rederivation = rederived.rederivation
    cost = {
        "seconds": round(rederivation.seconds, 3),
        "texts_to_embed": sum(proposal.texts_to_embed for proposal in rederivation.proposals),
        "seconds_to_embed": round(rederivation.seconds_to_embed, 1),
    }
    scopes = [asdict(proposal) for proposal in rederivation.proposals]
    again = asdict(rederived.again) if rederived.again else None
    data = {"outcome": rederived.outcome, "scopes": scopes, "cost": cost, "reading_again": again}
    return Answer(data, [*rederived.notes, *_lines(rederived)])


def _lines(rederived: Rederived) -> Iterator[str]:
    rederivation = rederived.rederivation
    for proposal in rederivation.proposals:
        yield from _proposal_lines(proposal)
    texts = sum(proposal.texts_to_embed for proposal in rederivation.proposals)
    yield (
        f"Cost: {rederivation.seconds:.1f} s to derive, {texts} texts to embed "
        f"(about {rederivation.seconds_to_embed:.0f} s); no model tokens."
    )
    if rederived.again:
        yield _price(rederived.again, sorted(set(rederivation.prompts.values())))
    if rederived.outcome == "promoted":
        yield "Promoted."
    elif rederived.outcome == "dropped":
        yield f"Dropped: {rederived.declined} projects stay as they are, except for sessions that grow."
    else:
        yield "Nothing was changed. Accept it: cortex rederive --promote; decline it: cortex rederive --drop"


def _price(again: PlannedStage, prompts: list[str]) -> str:
    are = "was" if again.sessions == 1 else "were"
    return (
        f"{counted(again.sessions, 'session')} {are} read by another version than {' or '.join(prompts)}. To "
        f"read again: {counted(again.requests, 'request')}, {again.input_tokens:,} tokens in, "
        f"{again.output_tokens:,} out, ${again.usd:.4f}, about {again.minutes} min: cortex rederive --ask"
    )


def _proposal_lines(proposal: Proposal) -> Iterator[str]:
    counts = (len(proposal.appears), len(proposal.vanishes), len(proposal.changes))
    if not any(counts):
        yield f"{proposal.scope}: the same {proposal.unchanged} memories."
        return
    yield (
        f"{proposal.scope}: {counts[0]} appear, {counts[1]} vanish, {counts[2]} change, "
        f"{proposal.unchanged} stay."
    )
    for mark, rows in (("+", proposal.appears), ("-", proposal.vanishes)):
        yield from (f"  {mark} [{row['memory_type']}] {cell(row['text'])}" for row in rows[:LINES_SHOWN])
    for change in proposal.changes[:LINES_SHOWN]:
        before = f"{cell(change.before)} → " if "text" in change.columns else ""
        yield f"  ~ [{change.memory_type}] {', '.join(change.columns)}: {before}{cell(change.after)}"
    yield from _entry_lines(proposal)


def _entry_lines(proposal: Proposal) -> Iterator[str]:
    """Yield what happens to pins, edits and other changes of memories with a new wording."""
    if proposal.carried_entries:
        yield f"  = {proposal.carried_entries} of your changes (pins, edits, ...) go on with the new wording."
    if proposal.kept_memories:
        yield f"  = {proposal.kept_memories} memories stay because you pinned, edited or preferred them."
    if proposal.lapsed_entries:
        kinds = ", ".join(sorted({row["kind"] for row in proposal.lapsed_entries}))
        yield f"  ! {len(proposal.lapsed_entries)} changes ({kinds}) are about memories without a successor."
