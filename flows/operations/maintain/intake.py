"""Takes transcripts in: what the hooks have staged, and old ones that a backfill finds."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cortex.flows.context import Context
from cortex.flows.engines.runs import Backfill, execute, grown, look_for, stage_all
from cortex.flows.operations.maintain.config import publish_settings
from cortex.flows.run.run import Progress, no_progress
from cortex.flows.run_report import RunReport
from cortex.flows.transcript_batches import agent_of
from cortex.storage.machine.background_run import note_engine
from cortex.storage.published.reports import (
    EMBEDDED_BYTES_PER_SECOND,
    READ_BYTES_PER_SECOND,
    expected_seconds,
)
from cortex.storage.staging.assistant_folders import changed_at, find_transcripts, folders
from cortex.storage.staging.transcripts import open_transcript
from cortex.transforms.errors import NotFound, NothingUsable, UsageError
from cortex.transforms.transcripts.assistants import KNOWN_ASSISTANTS, USUAL

if TYPE_CHECKING:
    from cortex.flows.operations.maintain.cost import PlannedStage

# Two minutes for the first brief, at 25 s an answer with the start of a client.
FIRST_SESSIONS = 3
# To learn a transcript's folder and last message its ends are read: 1 ms each.
MAX_OPENED = 500


@dataclass(frozen=True)
class BackfillPlan:
    """
    What a backfill would read, how long it would take (`seconds`, an estimate), and what that would cost.

    `model_tokens` would be sent to the hosted embedding model for `cost_usd`; both are 0 without its key.
    `asking` are the stages that would ask a language model then; none without one.
    """

    backfill: Backfill
    seconds: int
    model_tokens: int
    cost_usd: float
    asking: "Sequence[PlannedStage]" = ()


@dataclass(frozen=True)
class BackfillResult:
    """What a backfill did: the report of its run; `problem` if no file could be read as a transcript."""

    report: RunReport
    problem: NothingUsable | None = None


def run_flow(
    context: Context,
    flow: str,
    *,
    engine: str = "plain",
    progress: Progress = no_progress,
    accepts_loss: bool = False,
    runner: str | None = None,
) -> RunReport:
    """Run `ingest` or `nightly` over what is staged and over what has grown. Raises as `execute` does."""
    stage_all(context.settings, grown(context.settings))
    return _execute(context, flow, engine, progress, accepts_loss, runner)


def stage_session(context: Context, session: str) -> Path:
    """
    Stage the transcript of a session, named by its id or the beginning of one, for the next run.

    Raises NotFound if the assistants' folders have none, UsageError if several begin so.
    """
    paths = [path for place in transcript_folders() for path in find_transcripts(place)]
    matches = [path for path in paths if session and path.stem.startswith(session)]
    exact = [path for path in matches if path.stem == session]
    if not matches:
        raise NotFound(
            f"no transcript is of a session '{session}'.",
            "Give the id that the client shows with /status, or the beginning of it.",
        )
    if len(exact or matches) > 1:
        names = ", ".join(sorted(path.stem for path in matches))
        raise UsageError(f"{len(matches)} sessions begin with '{session}': {names}.", "Give more of the id.")
    [path] = exact or matches
    stage_all(context.settings, [path.absolute()])
    return path


def plan_backfill(context: Context, paths: Sequence[Path]) -> BackfillPlan:
    """Return what a backfill of `paths` (default: the assistants' folders) would read; changes nothing."""
    backfill = look_for(context.settings, paths or transcript_folders())
    policy = context.policy
    has_key = bool(context.settings.voyage_api_key)
    per_megabyte = policy.threshold("embed_tokens_per_megabyte") if has_key else 0.0
    tokens = round(backfill.waiting_bytes / 1e6 * per_megabyte)
    price = policy.threshold("embed_usd_per_million_tokens")
    count = backfill.waiting_bytes
    rates = (READ_BYTES_PER_SECOND, EMBEDDED_BYTES_PER_SECOND)
    seconds = round(sum(expected_seconds(count, rate) for rate in rates))
    asking: Sequence[PlannedStage] = ()
    if context.settings.models.is_on:
        from cortex.flows.operations.maintain.cost import plan_transcripts

        asking = plan_transcripts(context, backfill.transcripts)
    return BackfillPlan(backfill, seconds, tokens, round(tokens / 1e6 * price, 4), asking)


def backfill(
    context: Context,
    paths: Sequence[Path],
    *,
    engine: str = "plain",
    progress: Progress = no_progress,
    accepts_loss: bool = False,
    runner: str | None = None,
) -> BackfillResult:
    """Read the transcripts below `paths` (default: the assistants' folders)."""
    look = look_for(context.settings, paths or transcript_folders())
    missed = stage_all(context.settings, look.transcripts, progress)
    report = _execute(context, "backfill", engine, progress, accepts_loss, runner)
    report.quarantined.extend(missed)
    if look.read_before or report.transcripts or not report.quarantined:
        return BackfillResult(report)
    problem = NothingUsable(
        f"none of the {len(look.transcripts)} files could be read as a transcript.",
        "The report names each with its reason.",
    )
    return BackfillResult(report, problem)


def read_first(context: Context, *, progress: Progress = no_progress) -> RunReport:
    """
    Let the language model read the newest sessions of the project one stands in, and publish its brief.

    Where that has no transcripts, those of the newest one's folder are read. Of all others nothing is taken
    in, so that the first brief waits for FIRST_SESSIONS answers and no more.
    """
    try:
        newest = _newest_of(context, transcript_folders())
    except (NotFound, NothingUsable):
        newest = _Newest("", [])
    settings = context.settings
    budget = replace(settings.budget, run_requests=min(FIRST_SESSIONS, settings.budget.run_requests))
    first = replace(context, settings=replace(settings, budget=budget))
    stage_all(settings, newest.transcripts, progress)
    folder = newest.folder or str(context.folder)
    note_engine(context.home)
    return execute("ingest", first, progress=progress, first_folder=folder)


@dataclass(frozen=True)
class _Newest:
    """The folder that is read first, and its newest transcripts whose sessions are over."""

    folder: str
    transcripts: list[Path]


def _newest_of(context: Context, places: Sequence[Path]) -> _Newest:
    quiet_since = context.now.timestamp() - 60 * context.policy.threshold("writer_quiet_minutes")
    paths = [path for place in places for path in find_transcripts(place) if agent_of(path.name) is None]
    aged = sorted(((changed_at(path), path) for path in paths), reverse=True)
    over = [(at, path.absolute()) for at, path in aged if at <= quiet_since]
    looks = sorted(((*_end_and_folder_of(path, at), path) for at, path in over[:MAX_OPENED]), reverse=True)
    opened = [(path, folder) for _, folder, path in looks]
    here = [path for path, folder in opened if _is_within(folder, str(context.folder))]
    if here:
        return _Newest(str(context.folder), here[:FIRST_SESSIONS])
    folder = next((folder for _, folder in opened if folder), "")
    return _Newest(folder, [path for path, other in opened if folder and other == folder][:FIRST_SESSIONS])


def _end_and_folder_of(path: Path, changed: float) -> tuple[float, str]:
    """Return when the last message of a transcript was said, else when its file changed, and its folder."""
    with suppress(OSError), open_transcript(path) as transcript:
        said_at = transcript.last_message_at
        return said_at.timestamp() if said_at else changed, transcript.cwd or ""
    return changed, ""


def _is_within(folder: str, top: str) -> bool:
    return folder == top or folder.startswith(top.rstrip("/") + "/")


def transcript_folders() -> list[Path]:
    """Return where assistants keep transcripts on this machine. Raises NotFound if none does."""
    places = [place for places in folders().values() for place in places if place.exists()]
    return places or [_client_projects()]


def _execute(
    context: Context, flow: str, engine: str, progress: Progress, accepts_loss: bool, runner: str | None
) -> RunReport:
    note_engine(context.home)
    report = execute(
        flow, context, engine=engine, progress=progress, accepts_loss=accepts_loss, runner=runner
    )
    publish_settings(context)
    return report


def _client_projects() -> Path:
    [folder] = folders()[USUAL]
    if not folder.is_dir():
        raise NotFound(
            f"there is no folder {folder}, where {KNOWN_ASSISTANTS[USUAL].label} keeps its transcripts.",
            "Name the folder: cortex backfill PATH",
        )
    return folder
