"""The commands `rebuild` and `rederive`: tables from the lake, or what today's extractor makes of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import ACCEPT_LOSS, PROJECT_OPTION, Answer, cell, command, hint, progress_bar
from cortex.cli.run_answer import report_answer
from cortex.transforms.errors import AuditFailed, UsageError
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context import Context
    from cortex.flows.operations.maintain.cost import PlannedStage
    from cortex.flows.operations.maintain.rebuild import Rederived
    from cortex.flows.past.rebuilding import Comparison, Repair
    from cortex.flows.past.rederive import Proposal


DIFFERENCES_SHOWN = 40


@command("rebuild", "Rebuild the tables from the lake, or check them.", place=60)
@click.option("--check", is_flag=True, help="List every difference without changing anything.")
@click.option(
    "--adopt-lake", is_flag=True, help="First rebuild a missing or wrong manifest from the lake's files."
)
@click.option(
    "--set-aside",
    "quarantine",
    is_flag=True,
    help="First move damaged and unknown lake files out of the store and continue without them.",
)
@ACCEPT_LOSS
def rebuild(context: Context, check: bool, adopt_lake: bool, quarantine: bool, accept_loss: bool) -> Answer:
    """Rebuild tables and briefs from the lake and replace the live ones.

    With --check, only compares them row by row; a difference exits with code 12.
    """
    from cortex.flows.operations.maintain import rebuild

    if check and (adopt_lake or quarantine):
        raise UsageError("--check changes nothing.", "Give it alone, or omit it.")
    if check:
        return _compared(rebuild.compare_tables(context))
    with progress_bar() as progress:
        report = rebuild.rebuild_tables(
            context,
            adopt_lake=adopt_lake,
            quarantine=quarantine,
            accepts_loss=accept_loss,
            progress=progress,
            on_repair=_print_repair,
        )
    return report_answer(report)


def _print_repair(repair: Repair) -> None:
    """Print at once what happened to the lake's files: the rebuild that follows may fail."""
    if repair.adopted:
        hint(f"Adopted {repair.adopted} lake files. The next backfill reads the transcripts again.")
    for path in repair.left_out:
        hint(f"Left out: {path}")
    if repair.folder:
        hint(
            f"The skipped files are in {repair.folder}, where `cortex forget` does not reach. "
            "Delete it when you no longer need it. To read transcripts again: cortex backfill"
        )


def _compared(comparison: Comparison) -> Answer:
    differences = comparison.differences
    error = AuditFailed(
        f"{len(differences)} cells of the live tables differ from the lake.",
        "Rebuild them: cortex rebuild",
    )
    return Answer(
        {
            "clean": not differences,
            "rows": comparison.rows,
            "differences": [asdict(difference) for difference in differences],
            "notes": comparison.notes,
        },
        list(_lines(comparison)),
        error=error if differences else None,
    )


def _lines(comparison: Comparison) -> Iterator[str]:
    differences = comparison.differences
    yield from (f"Note: {note}." for note in comparison.notes)
    for each in differences[:DIFFERENCES_SHOWN]:
        cells = f"{each.column}: {cell(each.live)} ≠ {cell(each.rebuilt)}" if each.column else "whole row"
        rows = "" if each.column else f": live {each.live}, rebuilt {each.rebuilt}"
        yield f"{each.scope} {each.table} {each.key[:12]} {cells}{rows}"
    if len(differences) > DIFFERENCES_SHOWN:
        yield f"… {len(differences) - DIFFERENCES_SHOWN} more; all of them: --json"
    if not differences:
        yield f"Clean: {comparison.rows:,} rows match the lake."


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
    from cortex.flows.operations.maintain import rebuild

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
    return Answer(data, [*rederived.notes, *_rederive_lines(rederived)])


def _rederive_lines(rederived: Rederived) -> Iterator[str]:
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
