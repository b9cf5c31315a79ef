"""
Batches of waiting transcripts, each read from its cursor on, and what happens to those that cannot be read.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

import pyarrow as pa

from cortex.flows.context.run_report import QuarantinedLine
from cortex.flows.extracting.read_progress import BytesShown
from cortex.flows.reading.intake_filters import asks_for_privacy, is_excluded, is_trivial
from cortex.flows.reading.sharding import ShardAnswers
from cortex.flows.reading.shards import Unread
from cortex.flows.reading.transcript_reader import TurnsRead, read_turns
from cortex.flows.run.run import Run
from cortex.storage.ground.files import path_text, stored_name
from cortex.storage.lake.manifest import Cursor
from cortex.storage.staging.staging import Claim
from cortex.storage.staging.transcripts import (
    FINGERPRINT_BYTES,
    START,
    Transcript,
    open_transcript,
)
from cortex.transforms.faults import contained
from cortex.transforms.transcripts.transcript import Source
from cortex.transforms.transcripts.turn_text import Limits

# Transcript bytes taken up before a commit: about 40 sessions of median size. Rows of one batch and the
# sessions they touch stay in memory together.
BATCH_BYTES = 32 * 1024 * 1024

# Linux takes no longer path (PATH_MAX); a record's working directory may say anything.
PATH_BYTES_MAX = 4_095


@dataclass
class Batch:
    """What one batch of transcripts gave, not yet committed."""

    turns: list[pa.Table] = field(default_factory=list)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    done: list[Claim] = field(default_factory=list)
    quarantined: list[QuarantinedLine] = field(default_factory=list)
    transcripts: int = 0
    size: int = 0

    def keep_back(self, failed: set[str]) -> None:
        """Leave out the transcripts of projects whose audit failed: they wait for the next run."""
        kept_back = {name for name, cursor in self.cursors.items() if cursor.project_id in failed}
        self.cursors = {name: at for name, at in self.cursors.items() if name not in kept_back}
        self.done = [claim for claim in self.done if stored_name(claim.transcript) not in kept_back]


def batches_of(run: Run, claims: list[Claim], shown: BytesShown) -> Iterator[Batch]:
    """Yield what waits, read, in batches of BATCH_BYTES; the last one may be empty."""
    batch = Batch()
    for claim in claims:
        read_or_quarantine(run, claim, batch)
        shown.read(claim)
        if batch.size >= BATCH_BYTES:
            yield batch
            batch = Batch()
    yield batch


def read_or_quarantine(run: Run, claim: Claim, batch: Batch, answers: ShardAnswers | None = None) -> None:
    """Read one transcript from its cursor, or from workers' answers; what cannot be read is set aside."""
    faults: list[str] = []
    try:
        with contained(faults.append):
            faults += filter(None, [_read(run, claim, batch, answers)])
    except OSError as error:
        faults.append(f"cannot be read: {(error.strerror or 'input error').lower()}")
    if faults:
        quarantine(run, claim, faults[0])


def _read(run: Run, claim: Claim, batch: Batch, answers: ShardAnswers | None) -> str | None:
    """Read one transcript from its cursor into the batch; return why it cannot be used, if it cannot."""
    path = claim.readable()
    if path is None:
        return "transcript is gone"
    if run.store.staging.is_private(claim.transcript):
        batch.done.append(claim)
        return None
    with open_transcript(path, claim.transcript, partial(_known_folders, run)) as transcript:
        if not transcript.size:
            return "empty file"
        unread = _unread_of(run, claim, path, transcript)
        if unread is not None:
            result = answers.reading(unread, transcript) if answers else None
            result = result or read_turns(transcript, unread.source, unread.begin, unread.limits)
            return _take_turns(run, claim, transcript, unread, result, batch)
    batch.done.append(claim)
    return None


def planned(run: Run, claim: Claim) -> Unread | None:
    """Return what is to be read of a transcript that waits, as far as can be seen now; None for nothing."""
    path, faults = claim.readable(), list[str]()
    if path is None or run.store.staging.is_private(claim.transcript):
        return None
    with (
        suppress(OSError),  # whoever reads it for good says why it cannot be
        contained(faults.append),
        open_transcript(path, claim.transcript, partial(_known_folders, run)) as transcript,
    ):
        return _unread_of(run, claim, path, transcript) if transcript.size else None
    return None


def _unread_of(run: Run, claim: Claim, path: Path, transcript: Transcript) -> Unread | None:
    """Return what is to be read of an open transcript now; None for nothing."""
    cursor = run.store.lake.manifest.cursors.get(stored_name(claim.transcript))
    position = transcript.position_behind(cursor)
    is_read = cursor is not None and position.byte == transcript.size
    project_id = None if is_read else _project_of(run, claim, transcript, cursor)
    if project_id is None:
        return None
    begin = position if transcript.format == "lines" else START
    source = _source_of(claim, transcript, project_id)
    return Unread(path, claim.transcript, source, begin, limits_of(run))


def _project_of(run: Run, claim: Claim, transcript: Transcript, cursor: Cursor | None) -> str | None:
    """Return the project of a transcript; None if nothing is to be read now."""
    cwd = transcript.cwd or claim.cwd
    cwd = cwd if cwd and _is_path(cwd) else None
    if not (cwd or cursor) and _says_nothing_yet(claim, transcript):
        return None
    cwd = path_text(cwd or claim.transcript.parent)
    if is_excluded(cwd, run.settings.excluded_projects):
        return None
    return cursor.project_id if cursor else run.store.projects.origin_of(cwd, run.now)


def _take_turns(
    run: Run, claim: Claim, transcript: Transcript, unread: Unread, result: TurnsRead, batch: Batch
) -> str | None:
    """Take what was read of a transcript into the batch, and how far that was; return why not, if not."""
    source, begin = unread.source, unread.begin
    if begin.byte == 0 and not result.is_transcript:
        return f"not a transcript: {_main_reason(result.quarantined)}"
    batch.done.append(claim)
    is_new = begin.byte == 0 and source.file not in run.store.lake.manifest.cursors
    if is_new and is_trivial(result.turns, run.settings.min_chars):
        return None  # when it grows, its next ticket brings the whole of it
    if is_new and asks_for_privacy(result.turns):
        run.store.staging.make_private(claim.transcript)
        return None
    batch.quarantined += result.quarantined
    batch.transcripts += 1
    batch.turns.extend(result.turns)
    batch.size += result.read_to - begin.byte
    if result.read_to > begin.byte:
        length = min(FINGERPRINT_BYTES, result.read_to)
        batch.cursors[source.file] = Cursor(
            read_bytes=result.read_to,
            read_lines=begin.line - 1 + result.lines,
            head=transcript.fingerprint(length),
            head_bytes=length,
            project_id=source.project_id,
            session_id=(source.head.session_id if source.head else None) or source.session_id,
        )
    return None


def _is_path(text: str) -> bool:
    """Return whether the system can be asked about `text` as a path."""
    return "\0" not in text and len(text.encode("utf-8", "replace")) <= PATH_BYTES_MAX


def limits_of(run: Run) -> Limits:
    """Return what the settings let the reader keep."""
    return Limits(keeps_personal_data=not run.settings.redacts_personal_data)


def _known_folders(run: Run) -> list[str]:
    return [path for project in run.store.projects.all() for path in project.paths]


def _source_of(claim: Claim, transcript: Transcript, project_id: str) -> Source:
    name, head = stored_name(claim.transcript), transcript.head
    session_id = stored_name(claim.session_id) if claim.session_id else None
    agent_id = head.agent_id if head else claim.agent_id or agent_of(name)
    return Source(name, project_id, session_id, agent_id, head)


def _main_reason(lines: list[QuarantinedLine]) -> str:
    reasons = [line.reason for line in lines]
    return "binary" if "binary" in reasons else reasons[0] if reasons else "no line could be read"


def _says_nothing_yet(claim: Claim, transcript: Transcript) -> bool:
    """Return whether a transcript holds no turn yet: what follows will name its project."""
    result = read_turns(transcript, _source_of(claim, transcript, ""), START)
    # A rollout's first line is long, and written in parts.
    is_begun = transcript.head is not None and transcript.format != "document"
    return (is_begun or result.is_transcript) and not any(turns.num_rows for turns in result.turns)


def quarantine(run: Run, claim: Claim, reason: str) -> None:
    """Set a transcript aside, in staging and in the report."""
    run.store.staging.quarantine(claim, reason)
    run.report.quarantined.append(QuarantinedLine(stored_name(claim.transcript), None, reason))


def agent_of(name: str) -> str | None:
    """Return the id of the subagent that a transcript's file is named after; None for a session's own."""
    stem = PurePosixPath(name).stem
    return stem.removeprefix("agent-") if stem.startswith("agent-") else None
