"""The commands `run`, `nightly`, `backfill`, `import` and `index-code`: what is taken in, and from where."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import ACCEPT_LOSS, ENGINE, PROJECT_OPTION, Answer, can_ask, command, size_of
from cortex.cli.run_answer import report_answer, running
from cortex.transforms.errors import UsageError
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from cortex.flows.context import Context
    from cortex.flows.operations.maintain.intake import BackfillPlan
    from cortex.flows.operations.share.exchange import ImportResult


@command("run", "Read the sessions that the hooks have staged.", place=20)
@click.option("--session", metavar="ID", help="Also read this session now, as far as it has come.")
@ENGINE
@ACCEPT_LOSS
def run(context: Context, session: str | None, engine: str | None, accept_loss: bool) -> Answer:
    """Read the sessions that the hooks have staged."""
    from cortex.flows.operations.maintain import intake

    if session is not None:
        intake.stage_session(context, session)
    with running(context, engine) as (choice, progress):
        report = intake.run_flow(
            context, "ingest", engine=choice, progress=progress, accepts_loss=accept_loss
        )
    return report_answer(report)


@command("nightly", "Read staged sessions, age and merge memories, publish.", place=30)
@click.option("--if-due", "at", metavar="HH:MM", help="Do nothing if one has started since that time of day.")
@ENGINE
@ACCEPT_LOSS
def nightly(context: Context, at: str | None, engine: str | None, accept_loss: bool) -> Answer:
    """Read staged sessions, age all memories, merge those that say the same, publish."""
    from cortex.flows.operations.maintain import intake, setup

    if at and not setup.is_due(context, at):
        return Answer({"due": False})
    with running(context, engine) as (choice, progress):
        report = intake.run_flow(
            context, "nightly", engine=choice, progress=progress, accepts_loss=accept_loss
        )
    return report_answer(report)


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

    Default: the folders in which Claude Code, Codex CLI, Gemini CLI, Copilot CLI and opencode keep theirs.
    """
    from cortex.flows.operations.maintain import intake

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
    waiting = f"{counted(len(backfill.transcripts), 'transcript')}, {size_of(backfill.waiting_bytes)}"
    lines = [
        f"Would read {waiting}, in about {plan.seconds} s; {backfill.read_before} were read before. {cost}"
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
            f"  {name}: {counted(count, 'transcript')}, {size_of(size)}"
            for name, (count, size) in sorted(backfill.by_assistant.items())
        ]
    return Answer({"would_read": data}, lines)


@command("import", "Read memories from a file.", place=50)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--own", is_flag=True, help="Trust the file: it is your own export from another machine.")
@PROJECT_OPTION
def import_(context: Context, file: Path, own: bool, project: str | None) -> Answer:
    """
    Read memories from FILE: an export of Cortex, a Markdown list, or JSON of claude-mem, mem0 and others.

    Your own export, recognized by its signature, is restored as it was, each memory in its project. Anything
    else counts as external: recall finds it, but no brief shows it. If FILE is a folder, Cortex reads the
    notes that Claude Code keeps there (~/.claude/projects/*/memory) into the project of their transcripts.
    """
    from cortex.flows.operations.share import exchange

    if not own and project is None and can_ask() and exchange.is_unvouched_export(file):
        own = click.confirm(f"{file} is an export of Cortex, from another machine or user. Is it your own?")
    result = exchange.import_memories(context, file, project=project, is_own=own)
    data = {
        "format": result.form,
        "own_export": result.is_own,
        "imported": result.imported,
        "known": result.known,
        "forgotten_before": result.forgotten,
        "unknown_project": result.homeless,
        "unusable": result.unusable,
        "refused": result.refused,
        "applied": result.applied.is_in_effect,
    }
    counts = [
        f"{result.imported} imported",
        f"{result.known} known already",
        f"{result.unusable} unusable",
    ]
    if result.refused:
        counts.append(f"{result.refused} refused, which give an assistant orders against you")
    if result.forgotten:
        counts.append(f"{result.forgotten} forgotten or pruned here before, not brought back")
    hints = _hints(result, file) + result.applied.warnings
    return Answer(data, [f"{result.form}: {', '.join(counts)}."], hints)


def _hints(result: ImportResult, file: Path) -> list[str]:
    hints, is_unvouched = [], result.form == "cortex" and not result.is_own
    if is_unvouched and (result.imported or result.homeless):
        hints.append(
            "It is not signed with this machine's key. If it is your own export, put everything back as it "
            f"was: cortex import {file} --own"
        )
    if result.homeless:
        left = "and was" if result.homeless == 1 else "and were"
        other = "Somebody else's, into one project" if is_unvouched else "Into one project"
        hints.append(
            f"{counted(result.homeless, 'memory')} of projects that are not known here {left} left out. "
            f"{other}: cortex import {file} --project NAME"
        )
    if result.imported and not result.is_own:
        hints.append(
            "The contents of the file count as external: recall finds them, but no brief shows them."
        )
    return hints


@command("index-code", "Store searchable descriptions of source files.", place=40)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--describe", metavar="TEXT", help="What the file does and why. Default: standard input.")
@click.option(
    "--many", is_flag=True, help='Index all files of a JSON object on standard input: {"PATH": "TEXT", ...}.'
)
@click.option(
    "--changed",
    is_flag=True,
    help="List indexed files that changed, and those of PATH (folders, globs) that are not indexed.",
)
@PROJECT_OPTION
def index_code(
    context: Context,
    paths: tuple[str, ...],
    describe: str | None,
    many: bool,
    changed: bool,
    project: str | None,
) -> Answer:
    """Store a searchable description of the source file PATH, with its code.

    The code is stored, but never embedded or shown in a brief. Indexing a file again replaces its old entry.
    """
    from cortex.flows.operations.edit import remember

    if many and changed:
        raise UsageError("--many cannot be combined with --changed.", "Give one of them.")
    if changed:
        states = remember.files_to_describe(context, paths, project=project)
        lines = [f"{state:8} {path}" for path, state in states]
        hint = "Describe them: cortex index-code PATH --describe TEXT, or many at once with --many."
        return Answer(
            {"files": [{"path": path, "state": state} for path, state in states]},
            lines or ["All indexed files are up to date."],
            [hint if lines else "To list those that are not indexed: cortex index-code --changed FOLDER"],
        )
    if many == bool(paths) or len(paths) > 1:
        raise UsageError(
            "index-code takes one PATH.", "For several files use --many, or --changed to list them."
        )
    described = _many_described() if many else {Path(paths[0]): _described(describe)}
    indexed = remember.index_files(context, described, project=project)
    data = [
        {
            "file": code.file,
            "code": code.code_id,
            "code_description": code.description_id,
            "searchable": code.applied.is_in_effect,
        }
        for code in indexed
    ]
    lines = [
        f"Indexed {code.file}: description {code.description_id[:12]}, code {code.code_id[:12]}."
        for code in indexed
    ]
    return Answer({"files": data} if many else data[0], lines, warnings=indexed[0].applied.warnings)


def _many_described() -> dict[Path, str]:
    """Return the descriptions on standard input by file. Raises UsageError."""
    import json

    try:
        described = json.loads(sys.stdin.read())
        is_right = bool(described) and all(isinstance(text, str) for text in described.values())
    except (ValueError, AttributeError, RecursionError):
        is_right = False
    if not is_right:
        raise UsageError(
            "standard input is not a JSON object of descriptions by path.",
            'Give {"src/clock.py": "What it does and why."}.',
        )
    return {Path(path): text for path, text in described.items()}


def _described(description: str | None) -> str:
    if description is not None:
        return description
    if sys.stdin.isatty():
        raise UsageError(
            "the description is missing.", "Give --describe TEXT, or the text on standard input."
        )
    return sys.stdin.read()
