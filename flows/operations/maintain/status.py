"""What the store holds, what is waiting, how the last runs went."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cortex.flows.context import Context
from cortex.storage.filesystem.files import folder_bytes
from cortex.storage.lake.manifest import outdated
from cortex.storage.machine.background_run import Background, background_state
from cortex.storage.model_failure import WRITER, ModelFailure, hosted_failure, read_failure
from cortex.storage.published.catalogue import GLOBAL_LABEL, Catalogue
from cortex.storage.published.reports import RunProgress, kept_reports, last_report, read_progress
from cortex.storage.settings.settings import Settings
from cortex.transforms.memory.retention import days_of_type
from cortex.transforms.vocabulary import GLOBAL_SCOPE


@dataclass(frozen=True)
class ProjectCounts:
    """
    What is published of a project: memories that count and faded ones, sessions, edges, passages.

    `name` tells it from the others; `last_worked_at` is the end of its last session (UTC).
    """

    name: str
    memories: int
    faded: int
    sessions: int
    last_worked_at: datetime | None
    edges: int
    passages: int
    id: str


@dataclass(frozen=True)
class WritingProgress:
    """Who writes: `rules` or a provider, with its model; `read` of `sessions` sessions were asked about."""

    writer: str
    model: str
    read: int
    sessions: int


_FOR_EVER = "kept for ever"


@dataclass(frozen=True)
class Status:
    """
    The state of a store of `bytes` bytes in the folder `home`.

    `waiting` transcripts are staged; `outdated` are projects whose memories another extractor or policy
    extracted; `pending_loss` is what a run would have hidden and so did not publish; `last_run` is the last
    report; `embedding_failure` is that of the hosted model while it gives no answer;
    `writer_failure` is since when the language model has answered nothing though sessions wait; `writing`
    is who writes, and how far that is; `progress` is that of the run at work or of one that was stopped,
    `is_ready` whether what looks around answers already; `retention` says in words what goes by its age,
    for all projects and for those with rules of their own.
    """

    home: Path
    bytes: int
    waiting: int
    outdated: list[str]
    pending_loss: dict[str, object] | None
    projects: list[ProjectCounts]
    last_run: dict[str, object] | None
    background: Background
    embedding_failure: ModelFailure | None
    writer_failure: ModelFailure | None
    writing: WritingProgress
    progress: RunProgress | None
    is_ready: bool
    retention: list[str]


def list_reports(context: Context) -> dict[str, dict[str, object]]:
    """Return the reports of the last runs, the newest first, by name, as `run --json` prints them."""
    return kept_reports(context.home / "runs")


def read_status(context: Context) -> Status:
    """Return the state of the store."""
    catalogue = context.open_catalogue()
    manifest = catalogue.manifest
    loss = manifest.notes.refused_loss
    return Status(
        home=context.home,
        bytes=folder_bytes(context.home),
        waiting=catalogue.waiting(),
        outdated=outdated(manifest, context.policy),
        pending_loss=loss.as_dict() if loss else None,
        projects=_counts(catalogue),
        last_run=last_report(context.home / "runs"),
        background=background_state(context.home),
        embedding_failure=hosted_failure(context.settings),
        writer_failure=read_failure(context.home, WRITER) if context.settings.models.is_on else None,
        writing=read_writing(context),
        progress=read_progress(context.home),
        is_ready=catalogue.is_ready,
        retention=_retention(context.settings),
    )


def read_writing(context: Context) -> WritingProgress:
    """Return who writes the memories, and how many of the sessions that are over a model has read."""
    models = context.settings.models
    if not models.is_on:
        return WritingProgress("rules", "", 0, 0)
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.asking_model.writing import quiet_sessions, unread_sessions
    from cortex.flows.engines.runs import read_only_run
    from cortex.transforms.schemas import TURNS

    run = read_only_run(context, with_model=False)
    projects = run.store.lake.manifest.partitions(TURNS.name)
    sessions = sum(len(quiet_sessions(run, project_id)) for project_id in projects)
    return WritingProgress(models.writer, models.writer_model, sessions - len(unread_sessions(run)), sessions)


def _retention(settings: Settings) -> list[str]:
    """Return what goes by its age, a line for all projects and one for each section with its own rules."""
    everywhere = _rules(settings)
    own = {name: _rules(settings.of_project(name, [])) for name in sorted(settings.by_project)}
    lines = [f"every project: {everywhere}"] if everywhere != _FOR_EVER else []
    return lines + [f"{name}: {rules}" for name, rules in own.items() if rules != everywhere]


def _rules(settings: Settings) -> str:
    everything = [f"everything after {settings.retention_days} days"] if settings.retention_days else []
    types = [
        f"{name} after {days} days" for name, days in map(days_of_type, settings.retention_types) if days
    ]
    return ", ".join(everything + types) or _FOR_EVER


def _counts(catalogue: Catalogue) -> list[ProjectCounts]:
    if not catalogue.is_ready:
        return []
    rows = catalogue.projects()
    counts = [
        ProjectCounts(
            row["label"],
            row["active"],
            row["faded"],
            row["sessions"],
            row["last_worked_at"],
            row["edges"],
            row["passages"],
            row["project_id"],
        )
        for row in rows
    ]
    active, faded = catalogue.everywhere()
    everywhere = ProjectCounts(GLOBAL_LABEL, active, faded, 0, None, 0, 0, GLOBAL_SCOPE)
    return [*counts, *([everywhere] if active or faded else [])]
