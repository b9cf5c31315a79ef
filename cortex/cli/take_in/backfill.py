"""The command `backfill`: reads old transcripts."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ACCEPT_LOSS, ENGINE
from cortex.cli.run_answer import report_answer, running
from cortex.cli.terminal import size_of
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.care.intake import BackfillPlan


@command("backfill", "Read old transcripts.", place=10)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show what would be read, without reading it.")
@ENGINE
@ACCEPT_LOSS
def backfill(
    context: Context, paths: tuple[Path, ...], dry_run: bool, engine: str | None, accept_loss: bool
) -> Answer:
    """
    Read old transcripts in PATHS and their subfolders.

    Default: the folders in which Claude Code, Codex CLI, Gemini CLI and Copilot CLI keep theirs.
    """
    from cortex.flows.operations.care import intake

    if dry_run:
        return _planned(intake.plan_backfill(context, paths))
    with running(context, engine) as (choice, progress):
        result = intake.backfill(context, paths, engine=choice, progress=progress, accepts_loss=accept_loss)
    return replace(report_answer(result.report), error=result.problem)


def _planned(plan: BackfillPlan) -> Answer:
    from cortex.transforms.transcripts.assistants import KNOWN_ASSISTANTS, USUAL

    backfill = plan.backfill
    data = {
        "transcripts": len(backfill.transcripts),
        "bytes": backfill.waiting_bytes,
        "by_assistant": {
            name: {"transcripts": count, "bytes": size}
            for name, (count, size) in backfill.by_assistant.items()
        },
        "read_before": backfill.read_before,
        "expected_seconds": plan.seconds,
        "model_tokens": plan.model_tokens,
        "cost_usd": plan.cost_usd,
        "asking": [asdict(stage) for stage in plan.asking],
    }
    cost = (
        f"Voyage AI would be sent about {plan.model_tokens:,} tokens, ${plan.cost_usd}."
        if plan.model_tokens
        else "No text is embedded by a hosted model."
        if plan.asking
        else "No hosted model is used: no tokens, no cost."
    )
    lines = [
        f"Would read {len(backfill.transcripts)} transcripts, {size_of(backfill.waiting_bytes)}, in about "
        f"{plan.seconds} s; {backfill.read_before} were read before. {cost}"
    ]
    if plan.asking:
        write, *more = plan.asking
        requests, usd = sum(each.requests for each in more), sum(each.usd for each in more)
        lines.append(
            f"The language model would be asked about {counted(write.sessions, 'session')}: "
            f"{write.input_tokens:,} tokens, ${write.usd:.4f}, or ${write.batch_usd:.4f} in batches; then, "
            f"in {counted(requests, 'request')}, how near their memories stand to each other: ${usd:.4f}. "
            f"One by one that takes about {sum(each.minutes for each in plan.asking)} min."
        )
    if set(backfill.by_assistant) - {KNOWN_ASSISTANTS[USUAL].label}:
        lines += [
            f"  {name}: {count} transcripts, {size_of(size)}"
            for name, (count, size) in sorted(backfill.by_assistant.items())
        ]
    return Answer({"would_read": data}, lines)
