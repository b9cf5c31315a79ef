"""The flows by name: ingest, nightly and backfill; each is a list of stages run under the lease."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cortex.errors import ModelUnavailable, NothingUsable, UnknownValue
from cortex.flows.assistants import assistant_in, folders
from cortex.flows.context import Progress, Run, no_progress
from cortex.flows.engines import ENGINES, run_plain, run_with_prefect
from cortex.flows.reading import start_from
from cortex.flows.report import RunReport, SetAsideLine, keep_report, last_report
from cortex.flows.stages import INGEST, NIGHTLY
from cortex.providers import Embedder, choose
from cortex.settings import Settings
from cortex.storage.files import path_text
from cortex.storage.lake import each_key_once
from cortex.storage.lease import lease
from cortex.storage.manifest import Cursor
from cortex.storage.migrations import migrate
from cortex.storage.reference import read_policy
from cortex.storage.staging import find_transcripts
from cortex.storage.store import Store
from cortex.transforms.assistants import NAMES
from cortex.transforms.schemas import EVENTS, JOURNAL, TURNS, VECTORS

# Between looking for files and the run's own beginning lies the staging of what was found.
LOOKING_SECONDS = 60

FLOWS = {"ingest": INGEST, "nightly": NIGHTLY, "backfill": INGEST}


def execute(
    flow: str, settings: Settings, *, now: datetime, engine: str, progress: Progress = no_progress
) -> RunReport:
    """
    Run a flow over the store and return its report, which is kept in the store too.

    Raises StoreBusy when another run holds the lease, StoreNotWritable when the disk refuses; what was
    committed before stays and the next run goes on from there.
    """
    if engine not in ENGINES:
        raise UnknownValue("engine", engine, ENGINES)
    begun = time.perf_counter()
    with opened(flow, settings, now, engine, progress) as run:
        stages = FLOWS[flow]
        if engine == "prefect":
            run_with_prefect(stages, run)
        else:
            run_plain(stages, run)
        run.report.rows = row_counts(run)
        run.report.seconds = time.perf_counter() - begun
        keep_report(run.store.runs, run.report)
    return run.report


@contextmanager
def opened(
    flow: str, settings: Settings, now: datetime, engine: str, progress: Progress = no_progress
) -> Iterator[Run]:
    """
    Yield a run that holds the lease, after removing what a killed run left half written.

    Raises KeyUnavailable where the lake is sealed and its key is not to be had, AuditFailed at the end of the
    block when an audit failed within it.
    """
    with lease(settings.home / "runs"):
        migrate(settings.home)
        store = Store(settings.home)
        store.lake.check_key()  # before anything is claimed: what waits goes on waiting
        store.mend()
        run = Run(
            store=store,
            settings=settings,
            policy=read_policy(settings.home),
            now=now,
            report=RunReport(flow=flow, engine=engine, started_at=now),
            embedder=embedder_of(settings),
            progress=progress,
        )
        yield run
        run.check_passed()


def looking(settings: Settings, now: datetime) -> Run:
    """Return a run that only reads the store and so needs no lease."""
    return Run(
        store=Store(settings.home),
        settings=settings,
        policy=read_policy(settings.home),
        now=now,
        report=RunReport(flow="look", engine="plain", started_at=now),
        embedder=embedder_of(settings),
    )


def embedder_of(settings: Settings) -> Embedder | None:
    """Return the embedding model, or None when there is none: keyword search goes on without."""
    try:
        return choose(settings.voyage_api_key)
    except ModelUnavailable:
        return None


@dataclass(frozen=True)
class Backfill:
    """
    What a backfill found: transcripts to read, their new bytes, how many were read before.

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
    found = list(dict.fromkeys(t.absolute() for path in paths for t in find_transcripts(path)))
    if not found:
        listed = ", ".join(str(path) for path in paths)
        raise NothingUsable(f"no transcript (*.jsonl) lies below {listed}.", "Name a folder that has some.")
    cursors = Store(settings.home).lake.manifest.cursors
    new: list[Path] = []
    waiting = 0
    by_assistant: dict[str, tuple[int, int]] = {}
    for path in found:
        try:
            size = path.stat().st_size
            start, _ = start_from(path, cursors.get(path_text(path)))
        except OSError:  # gone meanwhile, or not to be read: staging names it
            size, start = 0, 0
        if start < size or not size:
            new.append(path)
            waiting += size - start
            name = _assistant_in(path)
            count, size_bytes = by_assistant.get(name, (0, 0))
            by_assistant[name] = count + 1, size_bytes + size - start
    return Backfill(tuple(new), waiting, len(found) - len(new), by_assistant)


def _assistant_in(path: Path) -> str:
    try:
        return NAMES[assistant_in(path)]
    except OSError:  # staging names it
        return NAMES["claude"]


def grown(settings: Settings) -> list[Path]:
    """
    Return the other assistants' transcripts that grew where a backfill has read before.

    Those assistants have no hooks that report a session, so a run looks for itself, by size and time alone.
    Where no backfill went, nothing is taken in. A file that was looked at and gave nothing (too short, no
    transcript) is looked at again once it changes.
    """
    store = Store(settings.home)
    cursors, since = store.lake.manifest.cursors, _looked_at(store) - LOOKING_SECONDS
    found: list[Path] = []
    for name, places in folders().items():
        for place in places:
            begins = path_text(place.absolute()).rstrip("/") + "/"
            if name != "claude" and any(read.startswith(begins) for read in cursors) and place.is_dir():
                found += [path for path in find_transcripts(place) if _has_grown(path, cursors, since)]
    return found


def _looked_at(store: Store) -> float:
    """Return when the last run began, in seconds since 1970; 0 without one."""
    told = (last_report(store.runs) or {}).get("started_at")
    return datetime.fromisoformat(told).timestamp() if isinstance(told, str) else 0.0


def _has_grown(path: Path, cursors: Mapping[str, Cursor], since: float) -> bool:
    cursor = cursors.get(path_text(path.absolute()))
    try:
        found = path.stat()
    except OSError:
        return False
    if cursor is None:
        return max(found.st_mtime, found.st_ctime) >= since
    return found.st_size != cursor.read_bytes


def stage_all(
    settings: Settings, transcripts: Sequence[Path], progress: Progress = no_progress
) -> list[SetAsideLine]:
    """
    Stage each transcript: a ticket and a hard link, so that a killed backfill goes on by itself.

    Returns those that are gone or may not be read.
    """
    store = Store(settings.home)
    missed = []
    for done, path in enumerate(transcripts, start=1):
        if not store.staging.stage(path):
            missed.append(SetAsideLine(path_text(path), None, "gone, or not to be read"))
        progress("stage", done, len(transcripts))
    return missed


def row_counts(run: Run) -> dict[str, int]:
    """Return how many rows each table holds; repeated keys counted once."""
    lake, tables = run.store.lake, run.store.tables
    turns = lake.read(TURNS, columns=["turn_id", "file", "line", "block"])
    counts = {"turns": len(set(turns["turn_id"].to_pylist()))}
    counts["events"] = lake.read(EVENTS, columns=["event_id", "session_id"]).num_rows
    counts["journal"] = each_key_once(JOURNAL, lake.read(JOURNAL)).num_rows
    counts["vectors"] = lake.read(VECTORS, columns=["model", "content_hash"]).num_rows
    for name in ("memories", "edges", "passages"):
        counts[name] = sum(tables.open(scope, name).count() for scope in run.scopes())
    return counts
