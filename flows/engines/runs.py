"""The flows by name, each a list of stages run under the lease, one after another or as tasks of Prefect."""

import atexit
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TypeVar

import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.embedders import Embedding
from cortex.flows.reading.shard_worker import NO_WORKERS, runner_for
from cortex.flows.run.run import Progress, Run, Stage, no_progress
from cortex.flows.run_report import QuarantinedLine, RunReport
from cortex.flows.stages.order import INGEST, NIGHTLY, TABLES
from cortex.storage.copies.swapping import finish_swap, forget_swap
from cortex.storage.filesystem.files import stored_name, writing_to
from cortex.storage.lake.manifest import Cursor
from cortex.storage.machine.prefect_server import PrefectServer, server_set_up
from cortex.storage.published.reports import (
    keep_report,
    last_report,
    noted_progress,
    prefect_history,
    tables_as_left,
    unchanged_counts,
)
from cortex.storage.remote.store_lease import lease
from cortex.storage.settings.settings import Settings
from cortex.storage.staging.assistant_folders import changed_at, find_transcripts, folders
from cortex.storage.staging.staging import is_in_database
from cortex.storage.staging.transcripts import open_transcript
from cortex.storage.store import Store
from cortex.transforms.errors import FileDamaged, NothingUsable, TablesDamaged, UnknownValue
from cortex.transforms.schemas import EVENTS, JOURNAL, TURNS, VECTORS
from cortex.transforms.transcripts.assistants import KNOWN_ASSISTANTS, USUAL

# -- Which engine runs the stages: Prefect where a server of it answers, plain elsewhere.

AUTO, PREFECT, PLAIN = "auto", "prefect", "plain"
ENGINES = (AUTO, PREFECT, PLAIN)

# A server that was set up answers in milliseconds, one across the world in less than this.
ANSWER_SECONDS = 2.0


@dataclass(frozen=True)
class EngineChoice:
    """
    The engine of a run: `prefect` or `plain`; `note` says why where a person may not expect it.

    `server` is the one that answers; under Prefect without one a temporary one is started.
    """

    engine: str
    server: PrefectServer | None = None
    note: str = ""


def engine_for(wanted: str, home: Path) -> EngineChoice:
    """Return the engine that `wanted` (one of ENGINES) means here and now. Raises UnknownValue."""
    if wanted not in ENGINES:
        raise UnknownValue("engine", wanted, ENGINES)
    server = server_set_up(home) if wanted != PLAIN else None
    if wanted == PLAIN or (server is None and wanted == AUTO):
        return EngineChoice(PLAIN)
    if server is None:
        return EngineChoice(PREFECT)
    if answers(server.url):
        return EngineChoice(PREFECT, server)
    if server.source == "cortex serve":  # it was killed, and could not take its note back
        return EngineChoice(PREFECT if wanted == PREFECT else PLAIN)
    note = f"Prefect's server at {server.url} ({server.source}) does not answer: the stages ran without it."
    return EngineChoice(PLAIN, note=note)


def answers(url: str) -> bool:
    """Return whether a Prefect API answers at `url`; one that wants a login answers too."""
    if not url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=ANSWER_SECONDS):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False


def prepare(choice: EngineChoice) -> None:
    """Give Prefect what it is to know of the server; the environment's own word counts."""
    for name, value in choice.server.settings.items() if choice.server else ():
        os.environ.setdefault(name, value)


# -- The two ways of running a list of stages: one after another, or as tasks of a Prefect flow.

_Result = TypeVar("_Result")

PREFECT_REASON_CHARS = 160


def run_plain(stages: Sequence[Stage], run: Run) -> None:
    """Run the stages one after another in this process."""
    for stage in stages:
        healing(stage)(run)


def healing(stage: Callable[[Run], _Result]) -> Callable[[Run], _Result]:
    """Return `stage` so that damaged tables in its way are made again from the lake, once a scope."""

    @wraps(stage)
    def healed(run: Run) -> _Result:
        healed_scopes: set[str | None] = set()
        while True:
            try:
                return stage(run)
            except TablesDamaged as error:
                if error.scope is None or error.scope in healed_scopes:
                    raise
                healed_scopes.add(error.scope)
                run.report.note(error.problem + " It was made again from the lake.")
                run.store.tables.drop(error.scope)
                for table_stage in TABLES:
                    table_stage(run)

    return healed


def run_with_prefect(stages: Sequence[Stage], run: Run) -> None:
    """
    Run the stages as tasks of a Prefect flow run: that in which this is called, or one of its own.

    Starts Prefect's temporary server (7 to 10 s) unless the environment names one; it ends with the flow.
    Its history lies in the store's own folder and nothing is reported to its makers. If Prefect itself
    fails, such as a server that starts late, the stages run without it: they are safe to repeat.
    """
    configure_prefect(run.store.home)
    atexit.register(_end_quietly)
    faults: list[BaseException] = []
    try:
        _run_flow([(stage.name, noting(healing(stage), faults)) for stage in stages], run)
    except Exception as error:
        if any(error is fault for fault in faults):
            raise
        run.report.engine = PLAIN
        run.report.note(f"Prefect failed ({_reason_of(error)}): the stages ran without it.")
        run_plain(stages, run)


def noting(work: Callable[[Run], _Result], faults: list[BaseException]) -> Callable[[Run], _Result]:
    """Return `work` so that what it raises is noted: all else that ends a flow is Prefect's."""

    @wraps(work)
    def noted(run: Run) -> _Result:
        try:
            return work(run)
        except BaseException as error:
            faults.append(error)
            raise

    return noted


def _run_flow(stages: Sequence[tuple[str, Callable[[Run], object]]], run: Run) -> None:
    from cortex.flows.engines.prefect_stages import run_stages

    run_stages(stages, run)


def _reason_of(error: BaseException) -> str:
    """Return the first line of what went wrong, without the address and output that may follow it."""
    lines = str(error).splitlines()
    return (lines[0] if lines else type(error).__name__)[:PREFECT_REASON_CHARS].rstrip(". ")


def configure_prefect(home: Path) -> None:
    """Keep Prefect's files inside the store and its reports to its makers off; the user's own choice wins."""
    chosen = {
        "PREFECT_HOME": str(prefect_history(home)),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",  # the command says what failed, without a traceback
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
        # Its own 20 s are too few on a busy machine: 37 s were seen on two busy cores. Past this the stages
        # run without it.
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "60",
        "DO_NOT_TRACK": "1",
        # Its servers and runs are started by `python -m`, which would import from the present folder first.
        "PYTHONSAFEPATH": "1",
    }
    for name, value in chosen.items():
        os.environ.setdefault(name, value)


def _end_quietly() -> None:
    """
    Drop what libraries print after the last exit handler.

    DuckDB's binding reports each of its own types as leaked when the interpreter ends after a Prefect run
    (about 40 lines, tried with duckdb 2.0 and prefect 3.8). Registered before Prefect's handlers, so it runs
    after them and hides nothing of theirs.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


# -- The flows by name: ingest, nightly and backfill; each is a list of stages run under the lease.

# Between looking for files and the run's own beginning lies the staging of what was found.
DISCOVERY_SECONDS = 60

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

    `engine` is auto, prefect or plain (`cortex.flows.engines.runs`); the report names the one that ran.
    `runner` is who works on shards under Prefect (`cortex.flows.reading.shard_worker`; default: by the
    settings); `first_folder` is that of the project which a language model reads, alone in this run. Raises
    StoreBusy when another run holds the lease, StoreNotWritable when the disk refuses, LossRefused if it
    would hide much of what is shown and `accepts_loss` is not given; what was committed before stays and the
    next run goes on from there.
    """
    choice = engine_for(engine, context.home)
    workers = runner_for(runner, context.settings.workers) if choice.engine == PREFECT else NO_WORKERS
    begun = time.perf_counter()
    with opened(flow, context, choice.engine, progress) as run:
        run.accepts_loss, run.runner, run.first_folder = accepts_loss, workers, first_folder
        damage = repair_lake(run, None if flow == "nightly" else CHECKED_BYTES)
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
    if damage is not None:  # at last: what it does not touch has been done
        raise damage
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

    `prepare` is called under the lease before the store is opened. Raises LakeUnclear if manifest and lake
    do not belong together, KeyUnavailable if the lake is sealed and its key is unavailable, AuditFailed
    at the end of the block when an audit failed within it.
    """
    settings, home, now = context.settings, context.home, context.now
    finish_swap(home)
    with writing_to(home, also_others=True), lease(home), noted_progress(home, flow, progress) as progress:
        prepare()
        store = Store(home)
        store.lake.check_belongs()
        store.lake.check_key()  # before anything is claimed: what waits goes on waiting
        store.repair()
        run = Run(
            store=store,
            settings=settings,
            policy=context.policy,
            now=now,
            report=RunReport(flow=flow, engine=engine, started_at=now),
            embedding=Embedding(context.embedder()),
            progress=progress,
            tables_as_left=tables_as_left(home),
        )
        yield run
        run.outcome.check_passed()
        forget_swap(home)


# Reading the lake to find a flipped bit takes about 3 s a GB on two old cores: a run does so of this much, a
# nightly one of all.
CHECKED_BYTES = 64 * 1024 * 1024


def repair_lake(run: Run, most_bytes: int | None = None) -> FileDamaged | None:
    """
    Read the lake's files and put back from a backup those that are not as they were written.

    Of more than `most_bytes` each run reads others. Vectors that no backup holds are given up, to be made
    again; of other files the error is returned.
    """
    lake = run.store.lake
    damaged_files = lake.damaged_files(most_bytes, int(run.now.timestamp() // 60))
    if not damaged_files:
        return None
    from cortex.storage.copies.backup import restore_lake_files

    sound = restore_lake_files(run.store, damaged_files)
    for file in sound:
        run.report.note(f"The lake file {file.path} was damaged, and was put back from a backup.")
    left = [file for file in damaged_files if file not in sound]
    for file in [file for file in left if file.table == VECTORS.name]:
        lake.drop_unreadable(VECTORS, file.partition)
        run.report.note(f"The vectors in {file.path} were damaged, and are made again.")
    return next((lake.error_of(file) for file in left if file.table != VECTORS.name), None)


def read_only_run(context: Context, *, with_model: bool = True) -> Run:
    """Return a run that only reads the store and so needs no lease; a model takes a third of a second."""
    now = context.now
    return Run(
        store=Store(context.home),
        settings=context.settings,
        policy=context.policy,
        now=now,
        report=RunReport(flow="look", engine="plain", started_at=now),
        embedding=Embedding(context.embedder() if with_model else None),
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
        size, unread, name = 0, 0, KNOWN_ASSISTANTS[USUAL].label
        with suppress(OSError), open_transcript(path) as transcript:  # staging names what cannot be read
            size, name = transcript.size, KNOWN_ASSISTANTS[transcript.assistant].label
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
    cursors, since = store.lake.manifest.cursors, _looked_at(store) - DISCOVERY_SECONDS
    transcripts: list[Path] = []
    for name, places in folders().items():
        for place in places if KNOWN_ASSISTANTS[name].adapter else ():
            begins = stored_name(place.absolute()).rstrip("/") + "/"
            if any(read.startswith(begins) for read in cursors) and place.exists():
                transcripts += [path for path in find_transcripts(place) if _has_grown(path, cursors, since)]
    return transcripts


def _looked_at(store: Store) -> float:
    """Return when the last run began, in seconds since 1970; 0 without one."""
    started_at = (last_report(store.runs) or {}).get("started_at")
    return datetime.fromisoformat(started_at).timestamp() if isinstance(started_at, str) else 0.0


def _has_grown(path: Path, cursors: Mapping[str, Cursor], since: float) -> bool:
    if is_in_database(path):  # a session says when it changed, and not how long it is
        return changed_at(path) >= since
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
    half a second. If somebody has, each is opened, and a damaged one met.
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
