"""The commands that run a flow: run, nightly, backfill, demo."""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path

from cortex.cli.configuring import publish
from cortex.cli.present import present
from cortex.cli.terminal import clock_at, hint, now, print_json, progress_bars, say, size_of, table
from cortex.flows.report import RunReport
from cortex.flows.runs import Backfill, execute, grown, look_for, stage_all
from cortex.storage.assistant_folders import folders
from cortex.storage.background_run import note_engine
from cortex.storage.reference import read_policy
from cortex.storage.settings import Settings, load_settings
from cortex.transforms.errors import NotFound, NothingUsable
from cortex.transforms.transcripts.assistants import NAMES

# Seen on two cores: reading, extracting and embedding. Only for the estimate of --dry-run.
EXPECTED_BYTES_PER_SECOND = 500_000
SET_ASIDE_SHOWN = 12

# The day after the last sample session: plans fade within weeks, and the demo shows a living one.
DEMO_DAY = datetime(2026, 10, 27, 9, tzinfo=UTC)
DEMO_QUESTION = "why SQLite and not Postgres?"


def _hosted_cost(settings: Settings, transcript_bytes: int) -> dict[str, object]:
    """Return the tokens that the hosted embedder would be sent and their price; none without its key."""
    policy = read_policy(settings.home)
    per_megabyte = policy.threshold("embed_tokens_per_megabyte") if settings.voyage_api_key else 0.0
    tokens = round(transcript_bytes / 1e6 * per_megabyte)
    price = policy.threshold("embed_usd_per_million_tokens")
    return {"model_tokens": tokens, "cost_usd": round(tokens / 1e6 * price, 4)}


def _cost_in_words(plan: dict[str, object]) -> str:
    if not plan["model_tokens"]:
        return "No hosted model is asked: no tokens, no cost."
    return f"Voyage AI would be sent about {plan['model_tokens']:,} tokens, ${plan['cost_usd']}."


def run_flow(flow: str, *, engine: str, accepts_loss: bool = False, as_json: bool) -> None:
    """Run a flow over what is staged and print its report."""
    settings = load_settings()
    stage_all(settings, grown(settings))
    print_report(_execute(flow, settings, engine, accepts_loss), as_json=as_json)


def backfill(
    paths: Sequence[Path], *, dry_run: bool, engine: str, accepts_loss: bool = False, as_json: bool
) -> None:
    """Stage what is new below `paths`, run, print the report; with `dry_run` only say what would be read."""
    settings = load_settings()
    found = look_for(settings, paths or transcript_folders())
    if dry_run:
        plan: dict[str, object] = {
            "transcripts": len(found.transcripts),
            "bytes": found.waiting_bytes,
            "by_assistant": {
                name: {"transcripts": count, "bytes": size}
                for name, (count, size) in found.by_assistant.items()
            },
            "read_before": found.read_before,
            "expected_seconds": round(found.waiting_bytes / EXPECTED_BYTES_PER_SECOND),
            **_hosted_cost(settings, found.waiting_bytes),
        }
        if as_json:
            return print_json({"would_read": plan})
        say(
            f"Would read {plan['transcripts']} transcripts, {size_of(found.waiting_bytes)}, in some "
            f"{plan['expected_seconds']} s; {found.read_before} were read before. "
            f"{_cost_in_words(plan)}"
        )
        return _say_whose(found)
    with progress_bars() as progress:
        missed = stage_all(settings, found.transcripts, progress)
    report = _execute("backfill", settings, engine, accepts_loss)
    report.set_aside += missed
    if found.read_before or report.transcripts or not report.set_aside:
        return print_report(report, as_json=as_json)
    error = NothingUsable(
        f"none of the {len(found.transcripts)} files could be read as a transcript.",
        "The report names each with its reason.",
    )
    if not as_json:
        print_report(report, as_json=False)
        raise error
    # One JSON object, not two: the report says what is wrong as well.
    print_json({**report.as_dict(), **error.as_dict()})
    hint(f"cortex: {error} [{error.code}]")
    sys.exit(error.exit_code)


def _say_whose(found: Backfill) -> None:
    """Name the transcripts of each assistant, where they are not all Claude Code's."""
    if set(found.by_assistant) - {NAMES["claude"]}:
        for name, (count, size) in sorted(found.by_assistant.items()):
            say(f"  {name}: {count} transcripts, {size_of(size)}")


def demo(engine: str) -> None:
    """Backfill the samples into a scratch store; print the report, the brief and a recall."""
    from cortex.cli import memories, views
    from cortex.cli.main import main

    with (
        tempfile.TemporaryDirectory(prefix="cortex-demo-") as scratch,
        as_file(files("cortex.data") / "samples") as samples,
        clock_at(DEMO_DAY),
    ):
        os.environ["CORTEX_HOME"] = scratch
        say(f"Six sample sessions of an invented project, as of {DEMO_DAY:%-d %B %Y}, in a scratch store.\n")
        say("$ cortex backfill samples/")
        backfill([samples], dry_run=False, engine=engine, as_json=False)
        (project,) = memories.open_store().projects.all()
        say(f"\n$ cortex brief --project {project.name}\n")
        views.brief(project.name, as_json=False)
        say(f'\n$ cortex recall --project {project.name} "{DEMO_QUESTION}"\n')
        main(["recall", "--project", project.name, "--limit", "3", DEMO_QUESTION], obj=present())
    say("\nThe scratch store is gone again. Your own sessions: cortex backfill")


def print_report(report: RunReport, *, as_json: bool) -> None:
    """Print a run report as JSON, or as tables for people."""
    if as_json:
        return print_json(report.as_dict())
    table(
        f"{report.flow} ({report.engine}): {report.transcripts} transcripts, "
        f"{size_of(report.transcript_bytes)}, {report.seconds:.1f} s",
        ["stage", "rows in", "rows out", "seconds", "note"],
        [[s.stage, f"{s.rows_in:,}", f"{s.rows_out:,}", f"{s.seconds:.2f}", s.note] for s in report.stages],
        numbers={"rows in", "rows out", "seconds"},
    )
    held = ", ".join(f"{name} {count:,}" for name, count in report.rows.items())
    new = ", ".join(f"{count:,} {name}" for name, count in report.new_rows.items() if count)
    say(f"Store now: {held}. New: {new or 'nothing'}.")
    for note in report.notes:
        say(f"Note: {note}")
    if report.set_aside:
        _print_set_aside(report)
    for line in report.left_out:
        say(
            f"Left out of the brief: {line.row_id[:12]} {line.reason}. "
            f"`cortex forget {line.row_id[:12]}` removes it."
        )
    return None


def _print_set_aside(report: RunReport) -> None:
    rows = [[a.file, str(a.line or ""), a.reason] for a in report.set_aside[:SET_ASIDE_SHOWN]]
    table(f"Set aside: {len(report.set_aside)}", ["file", "line", "reason"], rows, numbers={"line"})
    if len(report.set_aside) > SET_ASIDE_SHOWN:
        counted = Counter(a.reason for a in report.set_aside)
        more = len(report.set_aside) - SET_ASIDE_SHOWN
        say(f"… {more} more. By reason: {dict(counted)}. All of them: --json")


def _execute(flow: str, settings: Settings, engine: str, accepts_loss: bool) -> RunReport:
    if engine == "prefect":
        hint("Starting Prefect (some 10 s; --engine plain does without) …")
    note_engine(settings.home)
    with progress_bars() as progress:
        report = execute(
            flow, present(settings, now), engine=engine, progress=progress, accepts_loss=accepts_loss
        )
    publish()
    return report


def transcript_folders() -> list[Path]:
    """Return where assistants keep transcripts on this machine. Raises NotFound where none does."""
    found = [place for places in folders().values() for place in places if place.is_dir()]
    return found or [client_projects()]


def client_projects() -> Path:
    """Return the folder of the client's transcripts. Raises NotFound where there is none."""
    [folder] = folders()["claude"]
    if not folder.is_dir():
        raise NotFound(
            f"there is no folder {folder}, where Claude Code keeps its transcripts.",
            "Name the folder: cortex backfill PATH",
        )
    return folder
