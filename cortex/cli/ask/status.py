"""The command `status`: what is stored, what is waiting, how the last run went."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import Listing, size_of
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.operations.care.status import ProjectCounts, Status, WriterProgress
    from cortex.storage.model_calls.model_failure import ModelFailure


@command("status")
def status(context: Context) -> Answer:
    """Show what the store holds, what is waiting and how the last run went."""
    from cortex.flows.operations.care import status

    state = status.read_status(context)
    return Answer(_as_dict(state), list(_lines(state)))


def _lines(state: Status) -> Iterator[str | Listing]:
    yield f"Store {state.home}, {size_of(state.bytes)}; {counted(state.waiting, 'transcript')} waiting."
    if state.outdated:
        projects = counted(len(state.outdated), "project")
        yield f"Read with another extractor or policy: {projects}. See: cortex rederive"
    if loss := state.pending_loss:
        yield (
            f"The last run would have hidden {loss['lost']} of {loss['shown']} {loss['what']}, so it "
            f"published nothing; {loss['why']}. See: cortex rederive. "
            "Undo the change, or accept it: cortex run --accept-loss"
        )
    if run := state.last_run:
        yield f"Last run: {run['flow']} at {run['started_at']}, {run['seconds']} s."
    if failure := state.embedding_failure:
        failed_at = f"{failure.failed_at:%Y-%m-%d %H:%M} UTC"
        yield f"{failure.model} has not answered since {failed_at}: {failure.reason}"
        yield "The local model and its vectors stand in; a later run tries again."
    if failure := state.writer_failure:
        failed_at = f"{failure.failed_at:%Y-%m-%d %H:%M} UTC"
        if failure.until:
            yield f"The language model is asked again when a limit is reset: {failure.reason}"
        else:
            yield f"The language model has answered nothing since {failed_at}: {failure.reason}"
    yield _writing(state.writing)
    background = state.background
    if background.started_at:
        started_at = f"{background.started_at:%Y-%m-%d %H:%M} UTC"
        yield f"Last background run: {background.outcome}, started {started_at}; log {background.log}"
    yield from (f"Erased by age: {rules}" for rules in state.retention)
    if not state.projects:
        if state.waiting:
            yield "Transcripts are waiting, and none has been read yet: cortex run"
        else:
            yield "Nothing has been remembered yet. Start with: cortex backfill"
        return
    columns = ["project", "memories", "faded", "sessions", "last worked on"]
    rows = [_row(project) for project in state.projects]
    totals = ["", *(str(sum(int(row[at]) for row in rows)) for at in (1, 2, 3)), ""]
    yield Listing("Projects", columns, rows, numbers=set(columns[1:4]), totals=totals)


def _writing(writing: WriterProgress) -> str:
    """Return in a line who writes the memories, and how far a language model has come."""
    if writing.writer == "rules":
        return "Written by rules alone."
    who = f"{writing.model} ({writing.writer})"
    left = writing.sessions - writing.read
    rest = f"; the other {left}, the newest first, in the background and at night" if left else ""
    return f"Written by {who}: {writing.read} of {counted(writing.sessions, 'session')} read{rest}."


def _row(project: ProjectCounts) -> list[str]:
    at = project.last_worked_at
    counts = (project.memories, project.faded, project.sessions)
    return [project.name, *map(str, counts), f"{at:%Y-%m-%d}" if at else ""]


def _as_dict(state: Status) -> dict[str, object]:
    return {
        "home": str(state.home),
        "bytes": state.bytes,
        "waiting": state.waiting,
        "outdated": state.outdated,
        "pending_loss": state.pending_loss,
        "projects": [asdict(project) for project in state.projects],
        "last_run": state.last_run,
        "background": {**asdict(state.background), "outcome": state.background.outcome},
        "embedding": _failure_as_dict(state.embedding_failure),
        "writer": _failure_as_dict(state.writer_failure),
        "writing": asdict(state.writing),
        "retention": state.retention,
    }


def _failure_as_dict(failure: ModelFailure | None) -> dict[str, object] | None:
    if failure is None:
        return None
    since = failure.failed_at.isoformat()
    return {"model": failure.model, "failing_since": since, "reason": failure.reason}
