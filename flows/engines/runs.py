"""The flows by name: ingest, nightly and backfill; each is a list of stages run under the lease."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc

from cortex.flows.context.context import Context
from cortex.flows.context.run_report import QuarantinedLine, RunReport
from cortex.flows.embedders.embedder_choice import hosted_again
from cortex.flows.embedders.embedding import Embedding
from cortex.flows.engines.engine_choice import PREFECT, engine_for, prepare
from cortex.flows.engines.engines import healing, run_plain, run_with_prefect
from cortex.flows.reading.runner_choice import NO_WORKERS, runner_for
from cortex.flows.run.run import Progress, Run, no_progress
from cortex.flows.stages.order import INGEST, NIGHTLY
from cortex.storage.copies.swapping import finish_swap, forget_swap
from cortex.storage.elsewhere.store_lease import lease
from cortex.storage.ground.files import stored_name
from cortex.storage.lake.manifest import Cursor
from cortex.storage.lake.migrations import migrate
from cortex.storage.model_calls.model_failure import hosted_failure
from cortex.storage.published.reports import (
    keep_report,
    last_report,
    tables_as_left,
    unchanged_counts,
)
from cortex.storage.settings.settings import Settings
from cortex.storage.staging.assistant_folders import find_transcripts, folders
from cortex.storage.staging.transcripts import open_transcript
from cortex.storage.store import Store
from cortex.transforms.errors import NothingUsable
from cortex.transforms.schemas import EVENTS, JOURNAL, TURNS, VECTORS
from cortex.transforms.transcripts.assistants import NAMES

# Between looking for files and the run's own beginning lies the staging of what was found.
LOOKING_SECONDS = 60

FLOWS = {"ingest": INGEST, "nightly": NIGHTLY, "backfill": INGEST}


def execute(
    flow: str,
    context: Context,
    *,
    engine: str = "plain",
    progress: Progress = no_progress,
    accepts_loss: bool = False,
    runner: str | None = None,
    first_folder: str = "",
) -> RunReport:
    """
    Run a flow over the store and return its report, which is kept in the store too.

    `engine` is auto, prefect or plain (`cortex.flows.engines.engine_choice`); the report names the one that
    ran.
    `runner` is who works on shards under Prefect (`cortex.flows.reading.runner_choice`; default: by the
    settings); `first_folder` is that of the project which a language model reads, alone in this run.
    Raises StoreBusy when another run holds the lease, StoreNotWritable when the disk refuses, LossRefused
    where it would hide much of what is shown and `accepts_loss` is not given; what was committed before stays
    and the next run goes on from there.
    """
    choice = engine_for(engine, context.home)
    workers = runner_for(runner, context.settings.workers) if choice.engine == PREFECT else NO_WORKERS
    begun = time.perf_counter()
    with opened(flow, context, choice.engine, progress) as run:
        run.accepts_loss, run.runner, run.first_folder = accepts_loss, workers, first_folder
        stages = FLOWS[flow]
        if choice.note:
            run.report.note(choice.note)
        if choice.engine == PREFECT:
            prepare(choice)
            run_with_prefect(stages, run)
        else:
            run_plain(stages, run)
        run.report.rows = healing(row_counts)(run)
        run.report.seconds = time.perf_counter() - begun
        keep_report(run.store.runs, run.report)
    return run.report


@contextmanager
def opened(
    flow: str,
    context: Context,
    engine: str = "plain",
    progress: Progress = no_progress,
    *,
    prepare: Callable[[], object] = lambda: None,
) -> Iterator[Run]:
    """
    Yield a run that holds the lease, after removing what a killed run left half written.

    `prepare` is called under the lease before the store is opened. Raises LakeUnclear where manifest and lake
    do not belong together, KeyUnavailable where the lake is sealed and its key is not to be had, AuditFailed
    at the end of the block when an audit failed within it.
    """
    settings, now = context.settings, context.now
    finish_swap(settings.home)
    with lease(settings.home):
        prepare()
        migrate(settings.home)
        store = Store(settings.home)
        store.lake.check_belongs()
        store.lake.check_key()  # before anything is claimed: what waits goes on waiting
        store.repair()
        again = hosted_again(settings, now)
        run = Run(
            store=store,
            settings=settings,
            policy=context.policy,
            now=now,
            report=RunReport(flow=flow, engine=engine, started_at=now),
            embedding=Embedding(
                again or context.embedder(),
                is_hosted=bool(settings.voyage_api_key),
                is_doubted=again is not None,
                failure=hosted_failure(settings) if again is None else None,
            ),
            progress=progress,
            tables_as_left=tables_as_left(settings.home),
        )
        yield run
        run.outcome.check_passed()
        forget_swap(settings.home)


def looking(context: Context, *, with_model: bool = True) -> Run:
    """Return a run that only reads the store and so needs no lease; a model takes a third of a second."""
    now = context.now
    return Run(
        store=Store(context.home),
        settings=context.settings,
        policy=context.policy,
        now=now,
        report=RunReport(flow="look", engine="plain", started_at=now),
        embedding=Embedding(
            context.embedder() if with_model else None, is_hosted=bool(context.settings.voyage_api_key)
        ),
    )


@dataclass(frozen=True)
class Backfill:
    """
    What a backfill would read: transcripts, their new bytes; and how many were read before.

    `by_assistant` holds transcripts and new bytes of each assistant that has some to read.
    """

    transcripts: tuple[Path, ...]
    waiting_bytes: int
    read_before: int
    by_assistant: dict[str, tuple[int, int]] = field(default_factory=dict)


def look_for(settings: Settings, paths: Sequence[Path]) -> Backfill:
    """
    Find the transcripts below `paths` and which of them have something new.

    Raises NotFound for a path that is not there, NothingUsable when there is no transcript at all.
    """
    transcripts = list(dict.fromkeys(t.absolute() for path in paths for t in find_transcripts(path)))
    if not transcripts:
        listed = ", ".join(str(path) for path in paths)
        raise NothingUsable(
            f"there is no transcript (*.jsonl) below {listed}.", "Name a folder that has some."
        )
    cursors = Store(settings.home).lake.manifest.cursors
    new: list[Path] = []
    waiting = 0
    by_assistant: dict[str, tuple[int, int]] = {}
    for path in transcripts:
        size, unread, name = 0, 0, NAMES["claude"]
        with suppress(OSError), open_transcript(path) as transcript:  # staging names what cannot be read
            size, name = transcript.size, NAMES[transcript.assistant]
            unread = size - transcript.position_behind(cursors.get(stored_name(path))).byte
        if unread or not size:
            new.append(path)
            waiting += unread
            count, size_bytes = by_assistant.get(name, (0, 0))
            by_assistant[name] = count + 1, size_bytes + unread
    return Backfill(tuple(new), waiting, len(transcripts) - len(new), by_assistant)


def grown(settings: Settings) -> list[Path]:
    """
    Return the other assistants' transcripts that grew where a backfill has read before.

    Those assistants have no hooks that report a session, so a run looks for itself, by size and time alone.
    Where no backfill went, nothing is taken in. A file that was looked at and gave nothing (too short, no
    transcript) is looked at again once it changes.
    """
    store = Store(settings.home)
    cursors, since = store.lake.manifest.cursors, _looked_at(store) - LOOKING_SECONDS
    transcripts: list[Path] = []
    for name, places in folders().items():
        for place in places:
            begins = stored_name(place.absolute()).rstrip("/") + "/"
            if name != "claude" and any(read.startswith(begins) for read in cursors) and place.is_dir():
                transcripts += [path for path in find_transcripts(place) if _has_grown(path, cursors, since)]
    return transcripts


def _looked_at(store: Store) -> float:
    """Return when the last run began, in seconds since 1970; 0 without one."""
    started_at = (last_report(store.runs) or {}).get("started_at")
    return datetime.fromisoformat(started_at).timestamp() if isinstance(started_at, str) else 0.0


def _has_grown(path: Path, cursors: Mapping[str, Cursor], since: float) -> bool:
    cursor = cursors.get(stored_name(path.absolute()))
    try:
        status = path.stat()
    except OSError:
        return False
    if cursor is None:
        return max(status.st_mtime, status.st_ctime) >= since
    return status.st_size != cursor.read_bytes


def stage_all(
    settings: Settings, transcripts: Sequence[Path], progress: Progress = no_progress
) -> list[QuarantinedLine]:
    """
    Stage each transcript: a ticket and a hard link, so that a killed backfill goes on by itself.

    Returns those that are gone or may not be read.
    """
    store = Store(settings.home)
    missed = []
    for done, path in enumerate(transcripts, start=1):
        if not store.staging.stage(path):
            missed.append(QuarantinedLine(stored_name(path), None, "gone, or not to be read"))
        progress("stage", done, len(transcripts))
    return missed


def row_counts(run: Run) -> dict[str, int]:
    """
    Return how many rows each table holds; repeated keys counted once.

    Where nobody has written since the last run's report its counts are taken over: to open each table takes
    half a second. Where somebody has, each is opened, and a damaged one met.
    """
    lake, tables = run.store.lake, run.store.tables
    if not run.outcome.damages:
        counts = unchanged_counts(run.store.home)
        if counts is not None:
            return counts
    files = list(lake.manifest.files.values())
    counts = {t.name: sum(f.rows for f in files if f.table == t.name) for t in (TURNS, EVENTS, JOURNAL)}
    if not run.outcome.damages:  # else as the manifest says: not all of it can be read
        # Part by part: a long history has millions of turns.
        parts = lake.manifest.partitions
        turns = (lake.read(TURNS, part, columns=["turn_id"])["turn_id"] for part in parts(TURNS.name))
        counts["turns"] = sum(pc.count_distinct(names).as_py() for names in turns)
        events = (lake.read(EVENTS, part, columns=["session_id"]) for part in parts(EVENTS.name))
        counts["events"] = sum(rows.num_rows for rows in events)
        counts["journal"] = pc.count_distinct(lake.read(JOURNAL)["entry_id"]).as_py()
        counts["vectors"] = sum(file.rows for file in files if file.table == VECTORS.name)
    for name in ("memories", "edges", "passages"):
        counts[name] = sum(tables.open(scope, name).count() for scope in run.readings.scopes())
    return counts
