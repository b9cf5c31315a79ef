"""Batches of waiting transcripts, read from their cursors on, here or by workers, and the outcome of each."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path, PurePath, PurePosixPath

import pyarrow as pa

from cortex.flows.reading.shards import (
    Carrier,
    Extraction,
    ShardAnswers,
    TranscriptAnswer,
    TranscriptShard,
    Unread,
    packed,
    unpacked,
)
from cortex.flows.reading.transcript_reader import UNFINISHED, TurnsRead, read_turns
from cortex.flows.run.run import Run
from cortex.flows.run_report import QuarantinedLine
from cortex.hooks.private import is_below, is_named_after, is_word_in
from cortex.storage.filesystem.files import path_text, stored_name
from cortex.storage.lake.manifest import Cursor
from cortex.storage.staging.staging import Claim
from cortex.storage.staging.transcripts import (
    FINGERPRINT_BYTES,
    PIECE_BYTES,
    START,
    Transcript,
    open_transcript,
)
from cortex.transforms.errors import contained
from cortex.transforms.extract.language.settled import NOTHING_SETTLED, Settled
from cortex.transforms.schemas import EVENTS, SETTLED, values
from cortex.transforms.transcripts.records import Limits
from cortex.transforms.transcripts.transcript import Source

# -- What is never taken in: excluded folders, sessions that say too little, and private ones.


# Why a file is set aside of which no line is an object of JSON: whoever wrote its ticket may name any file.
NO_TRANSCRIPT = "not a transcript"


def is_trivial(turns: list[pa.Table], min_chars: int) -> bool:
    """Return whether a whole transcript says too little to be kept: "hi" and its answer (spec 4.6)."""
    text = "\n".join(text for rows in turns for text in values(rows, "text"))
    return 0 < len(text) < min_chars and "[MEMORY:" not in text  # what is told on purpose may be short


def asks_for_privacy(turns: list[pa.Table]) -> bool:
    """Return whether the first prompt of a whole transcript, or a command before it, makes it private."""
    for rows in turns:
        for kind, text in zip(values(rows, "kind"), values(rows, "text"), strict=True):
            if kind in ("prompt", "command") and is_word_in(text or ""):
                return True
            if kind == "prompt":
                return False
    return False


class BytesShown:
    """How many bytes of transcripts are done, for a progress bar: half once read, whole once committed."""

    def __init__(self, run: Run, claims: Sequence[Claim]) -> None:
        cursors = run.store.lake.manifest.cursors
        self._show = run.progress
        self._sizes = {
            claim.transcript: claim.unread_bytes(cursors.get(stored_name(claim.transcript)))
            for claim in claims
        }
        self._total, self._read, self._taken_in = sum(self._sizes.values()), 0, 0
        self._advance()

    def read(self, claim: Claim, most_bytes: int | None = None) -> None:
        """Count what is left of a transcript as read, or so many bytes of it."""
        left = self._sizes[claim.transcript]
        part = left if most_bytes is None else min(most_bytes, left)
        self._sizes[claim.transcript] = left - part
        self._read += part
        self._advance()

    def take_in(self) -> None:
        """Count all that was read as committed."""
        self._taken_in = self._read
        self._advance()

    def _advance(self) -> None:
        if self._total:
            self._show("extract", (self._read + self._taken_in) // 2, self._total)


# -- What extraction needs to know of a project besides its turns: lines it was shown, and turns that lost
# words.


def extraction_of(run: Run, project_id: str, turns: pa.Table) -> Extraction:
    """Return what is to be extracted of TURNS of a project, whole sessions."""
    return Extraction(turns, run.readings.shown_lines(project_id), settled_of(run, project_id))


def settled_of(run: Run, project_id: str) -> Settled:
    """Return the turns of a project that nothing is extracted from again."""
    settled = run.store.lake.read(SETTLED, project_id)
    if not settled.num_rows:
        return NOTHING_SETTLED
    return Settled.of(settled, run.store.lake.read(EVENTS, project_id))


# -- Batches of waiting transcripts, each read from its cursor on, and what happens to those that cannot be
# read.

# Transcript bytes taken up before a commit: about 40 sessions of median size. Rows of one batch and the
# sessions they touch stay in memory together.
BATCH_BYTES = 32 * 1024 * 1024

# Linux takes no longer path (PATH_MAX); a record's working directory may say anything.
PATH_BYTES_MAX = 4_095


@dataclass
class Batch:
    """
    What one batch of transcripts gave, not yet committed.

    It may be one piece of a long transcript, `piece_of`: the events of its sessions come after the last one.
    """

    turns: list[pa.Table] = field(default_factory=list)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    done: list[Claim] = field(default_factory=list)
    quarantined: list[QuarantinedLine] = field(default_factory=list)
    transcripts: int = 0
    size: int = 0
    piece_of: Claim | None = None

    def keep_back(self, failed: set[str]) -> None:
        """Leave out the transcripts of projects whose audit failed: they wait for the next run."""
        kept_back = {name for name, cursor in self.cursors.items() if cursor.project_id in failed}
        self.cursors = {name: at for name, at in self.cursors.items() if name not in kept_back}
        self.done = [claim for claim in self.done if stored_name(claim.transcript) not in kept_back]


def batches_of(run: Run, claims: list[Claim], shown: BytesShown) -> Iterator[Batch]:
    """Yield what waits, read, in batches of BATCH_BYTES or a piece; the last one may be empty."""
    batch = Batch()
    for claim in claims:
        if is_long(run, claim):
            yield batch
            yield from batches_of_pieces(run, claim, shown)
            batch = Batch()
            continue
        read_or_quarantine(run, claim, batch)
        shown.read(claim)
        if batch.size >= BATCH_BYTES:
            yield batch
            batch = Batch()
    yield batch


def is_long(run: Run, claim: Claim) -> bool:
    """Return whether more of a transcript waits than one piece, so that it is committed piece by piece."""
    cursor = run.store.lake.manifest.cursors.get(stored_name(claim.transcript))
    return claim.unread_bytes(cursor) > PIECE_BYTES


def batches_of_pieces(run: Run, claim: Claim, shown: BytesShown) -> Iterator[Batch]:
    """Yield a long transcript in pieces, each once the one before it is committed; a kill keeps these."""
    name, is_left = stored_name(claim.transcript), True
    while is_left:
        batch = Batch(piece_of=claim)
        read_or_quarantine(run, claim, batch)
        is_left = bool(batch.cursors) and not batch.done
        shown.read(claim, batch.size if is_left else None)
        yield batch
        is_left &= run.store.lake.manifest.cursors.get(name) == batch.cursors.get(name, ())


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
            result = result or _read_piece(run, transcript, unread)
            return _take_turns(run, claim, transcript, unread, result, batch)
    batch.done.append(claim)
    return None


def _read_piece(run: Run, transcript: Transcript, unread: Unread) -> TurnsRead:
    """Read the next piece of a transcript; from its start so much that it shows whether it is taken in."""
    where = transcript, unread.source, unread.begin, unread.limits
    result = read_turns(*where, is_piece=True)
    has_prompt = any("prompt" in values(turns, "kind") for turns in result.turns)
    is_begun = unread.begin.byte > 0 or (
        has_prompt and not is_trivial(result.turns, run.settings.min_chars) and result.is_transcript
    )
    return result if is_begun or not result.is_partial else read_turns(*where)


def planned(run: Run, claim: Claim) -> Unread | None:
    """Return what is to be read of a transcript that waits, as far as can be seen now; None for nothing."""
    path, faults = claim.readable(), list[str]()
    if path is None or run.store.staging.is_private(claim.transcript) or is_long(run, claim):
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
    excluded = run.settings.excluded_projects
    if not cwd and is_named_after(str(claim.transcript.parent), excluded):
        return None
    cwd = path_text(cwd or claim.transcript.parent)
    if is_below(cwd, excluded):
        return None
    return cursor.project_id if cursor else run.store.projects.origin_of(cwd, run.now)


def _take_turns(
    run: Run, claim: Claim, transcript: Transcript, unread: Unread, result: TurnsRead, batch: Batch
) -> str | None:
    """Take what was read of a transcript into the batch, and how far that was; return why not, if not."""
    source, begin = unread.source, unread.begin
    if begin.byte == 0 and not result.is_transcript:
        return f"{NO_TRANSCRIPT}: {_main_reason(result.quarantined)}"
    is_new = begin.byte == 0 and source.file not in run.store.lake.manifest.cursors
    is_private = is_new and asks_for_privacy(result.turns)
    if is_private:
        run.store.staging.make_private(claim.transcript)
    if is_private or not result.is_partial:
        batch.done.append(claim)
    if is_private or (is_new and is_trivial(result.turns, run.settings.min_chars)):
        return None  # when a trivial one grows, its next ticket brings the whole of it
    batch.quarantined += result.all_quarantined(source.file)
    batch.transcripts += not result.is_partial
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
    chosen = run.settings
    return Limits(
        keeps_personal_data=not chosen.redacts_personal_data, excluded_folders=chosen.excluded_projects
    )


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
    result = read_turns(transcript, _source_of(claim, transcript, ""), START, is_piece=True)
    # A rollout's first line is long, and written in parts.
    is_begun = transcript.head is not None and transcript.format != "document"
    return (is_begun or result.is_transcript) and not any(turns.num_rows for turns in result.turns)


def quarantine(run: Run, claim: Claim, reason: str) -> None:
    """Set a transcript aside, in staging and in the report."""
    run.store.staging.quarantine(claim, reason, is_kept=_may_be_transcript(claim, reason))
    run.report.quarantined.append(QuarantinedLine(stored_name(claim.transcript), None, reason))


def _may_be_transcript(claim: Claim, reason: str) -> bool:
    """Return whether what was set aside may still be one: a first line that its client is writing."""
    path = claim.readable()
    if not reason.startswith(NO_TRANSCRIPT) or path is None or not path.is_file():
        return True
    with path.open("rb") as file:
        return UNFINISHED in reason and file.read(1) == b"{"


def agent_of(name: str) -> str | None:
    """Return the id of the subagent that a transcript's file is named after; None for a session's own."""
    stem = PurePosixPath(name).stem
    return stem.removeprefix("agent-") if stem.startswith("agent-") else None


# -- Batches of waiting transcripts that workers have read, shard by shard, and extracted from.

MEGABYTE = 1_000_000

Sessions = list[list[Claim]]


def sharded_batches(
    run: Run, carrier: Carrier, claims: Sequence[Claim], shown: BytesShown, shard_bytes: float
) -> Iterator[tuple[Batch, ShardAnswers | None]]:
    """
    Yield what waits in batches of about BATCH_BYTES, read by workers, with what they extracted.

    Between two batches the shards behind them are being worked on. A session's transcripts are in one batch:
    what a worker extracted of it is what the run would extract. A long transcript is read here instead, each
    piece a batch.
    """
    asked: deque[tuple[Sessions, TranscriptShard]] = deque()

    def requests() -> Iterator[bytes]:
        for bundle in bundles_of(run, claims, shard_bytes):
            shard = _shard_of(run, [claim for session in bundle for claim in session])
            asked.append((bundle, shard))
            yield packed(shard)

    batch, answers = Batch(), ShardAnswers()
    for reply in carrier.map(requests()):
        bundle, shard = asked.popleft()
        answer = TranscriptAnswer() if reply is None else unpacked(reply)
        assert isinstance(answer, TranscriptAnswer)
        answers.add(shard, answer)
        for session in bundle:
            for claim in session:
                if is_long(run, claim):
                    yield batch, answers
                    yield from ((piece, None) for piece in batches_of_pieces(run, claim, shown))
                    batch, answers = Batch(), ShardAnswers((shard, answer))
                    continue
                read_or_quarantine(run, claim, batch, answers)
                shown.read(claim)
            if batch.size >= BATCH_BYTES:
                yield batch, answers
                batch, answers = Batch(), ShardAnswers((shard, answer))
    yield batch, answers


def bytes_of_a_task(run: Run) -> float:
    """Return about how many bytes of transcripts a shard has that is a task of its own."""
    return run.policy.threshold("shard_megabytes") * MEGABYTE


def bundles_of(run: Run, claims: Sequence[Claim], limit: float) -> list[Sessions]:
    """Return the transcripts that wait in bundles of about `limit` bytes, those of a session together."""
    cursors = run.store.lake.manifest.cursors
    bundles: list[Sessions] = []
    size = limit
    # A session's own transcript stands before its subagents': it says whether all of them are private.
    ordered = sorted(
        claims, key=lambda claim: (_session_folder(claim), "subagents" in claim.transcript.parts)
    )
    for _, session in groupby(ordered, key=_session_folder):
        transcripts = list(session)
        if size >= limit:
            bundles.append([])
            size = 0
        bundles[-1].append(transcripts)
        size += sum(each.unread_bytes(cursors.get(stored_name(each.transcript))) for each in transcripts)
    return bundles


def _session_folder(claim: Claim) -> PurePath:
    """Return where the files of a transcript's session are: next to it, in a folder of its name."""
    path = claim.transcript
    if "subagents" in path.parts:
        return PurePath(*path.parts[: path.parts.index("subagents")])
    return path.with_suffix("")


def _shard_of(run: Run, claims: Sequence[Claim]) -> TranscriptShard:
    unread = tuple(filter(None, (planned(run, claim) for claim in claims)))
    projects = sorted({each.source.project_id for each in unread})
    return TranscriptShard(
        unread,
        {name: run.readings.shown_lines(name) for name in projects},
        {name: settled_of(run, name) for name in projects},
        run.policy,
    )
