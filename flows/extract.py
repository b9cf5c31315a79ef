"""The extract stage: waiting transcripts become turns and events, committed together with their cursors."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.assistants import head_in, is_packed
from cortex.flows.reading import (
    HEAD_BYTES,
    PIECE_BYTES,
    head_of,
    pieces,
    start_from,
    unpacked,
    working_directory,
)
from cortex.flows.report import SetAsideLine, StageReport
from cortex.flows.run import Run
from cortex.storage.files import path_text, stored_name
from cortex.storage.lake import Change, each_key_once
from cortex.storage.manifest import Cursor, Manifest
from cortex.storage.staging import Claim, open_transcript
from cortex.transforms.audit import events_breaches, turns_breaches
from cortex.transforms.extract import extract_events
from cortex.transforms.extract.echoes import Told, without_echoes
from cortex.transforms.extract.extractor import extractor_fingerprint
from cortex.transforms.extract.quotes import with_quotes_lowered
from cortex.transforms.extract.settled import NOTHING_SETTLED, Settled
from cortex.transforms.faults import contained
from cortex.transforms.masking import masked
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, SETTLED, TURNS, values
from cortex.transforms.transcripts.assistants import Head, lines_of_document
from cortex.transforms.transcripts.transcript import Source, read_transcript
from cortex.transforms.transcripts.turn_text import Limits

# Transcript bytes taken up before a commit: some 40 sessions of median size. Rows of one batch and the
# sessions they touch stay in memory together.
BATCH_BYTES = 32 * 1024 * 1024

# Linux takes no longer path (PATH_MAX); a record's working directory may say anything.
PATH_BYTES_MAX = 4_095

# Note of the manifest, by project: sessions that grew since they were shown, and may take back words.
GROWN = "grown"

# Where a turn stands; of copies of a turn the one in the first place counts.
PLACE = ["file", "line", "block"]


@dataclass
class _Batch:
    """What one batch of transcripts gave, not yet committed."""

    turns: list[pa.Table] = field(default_factory=list)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    done: list[Claim] = field(default_factory=list)
    set_aside: list[SetAsideLine] = field(default_factory=list)
    transcripts: int = 0
    size: int = 0

    def keep_back(self, failed: set[str]) -> None:
        """Leave out the transcripts of projects whose audit failed: they wait for the next run."""
        kept_back = {name for name, cursor in self.cursors.items() if cursor.project_id in failed}
        self.cursors = {name: at for name, at in self.cursors.items() if name not in kept_back}
        self.done = [claim for claim in self.done if stored_name(claim.transcript) not in kept_back]


def extract(run: Run) -> None:
    """Take in every waiting transcript; events of sessions that do not grow stay as they are."""
    with run.report.stage("extract") as row:
        for path in run.store.journal.set_aside_damaged():
            run.report.set_aside.append(SetAsideLine(stored_name(path), None, "not a journal entry"))
        run.store.journal.take_in()
        claims = run.store.staging.claim()
        for number, batch in enumerate(_batches(run, claims), start=1):
            _take_in(run, batch, row)
            row.note = f"{number} batch{'es' if number > 1 else ''}"
        run.store.journal.take_in()  # projects met on the way
        old = outdated(run.store.lake.manifest, run.policy)
        if old:
            row.note += f"; {len(old)} projects are of another extractor or policy: cortex rederive"
        run.join_small_files()  # now: what is made from turns and events is known by their files


def _batches(run: Run, claims: list[Claim]) -> Iterator[_Batch]:
    batch = _Batch()
    for done, claim in enumerate(claims, start=1):
        _read_or_set_aside(run, claim, batch)
        if batch.size >= BATCH_BYTES:
            yield batch
            batch = _Batch()
        run.progress("extract", done, len(claims))
    yield batch


def _take_in(run: Run, batch: _Batch, row: StageReport) -> None:
    """Commit a batch and drop its tickets; where that fails, one transcript after another."""
    faults: list[str] = []
    with contained(faults.append):
        _commit(run, batch, row)
    if not faults:
        run.report.set_aside += batch.set_aside
        run.report.transcripts += batch.transcripts
        run.report.transcript_bytes += batch.size
        run.store.staging.release(batch.done)
    elif len(batch.done) == 1:
        _set_aside(run, batch.done[0], faults[0])
    else:
        for claim in batch.done:
            single = _Batch()
            _read_or_set_aside(run, claim, single)
            _take_in(run, single, row)


def _read_or_set_aside(run: Run, claim: Claim, batch: _Batch) -> None:
    faults: list[str] = []
    try:
        with contained(faults.append):
            _read(run, claim, batch)
    except OSError as error:
        faults.append(f"cannot be read: {(error.strerror or 'input error').lower()}")
    if faults:
        _set_aside(run, claim, faults[0])


def _read(run: Run, claim: Claim, batch: _Batch) -> None:
    """Read one transcript from its cursor into the batch, or set it aside with its reason."""
    path = claim.readable()
    if path is None:
        return _set_aside(run, claim, "transcript is gone")
    if not path.is_file():
        return _set_aside(run, claim, "not a file")
    size = path.stat().st_size
    if not size:
        return _set_aside(run, claim, "empty file")
    name = stored_name(claim.transcript)
    cursor = run.store.lake.manifest.cursors.get(name)
    start, first_line = start_from(path, cursor)
    if cursor and start == size:
        batch.done.append(claim)
        return None
    head = head_in(path, claim.transcript, partial(_known_folders, run))
    if head and (head.is_document or is_packed(path)):
        start, first_line = 0, 1
    told = (head.cwd if head else working_directory(path)) or claim.cwd
    told = told if told and _is_path(told) else None
    if not (told or cursor) and _says_nothing_yet(claim, path, head):
        batch.done.append(claim)
        return None
    cwd = path_text(told or claim.transcript.parent)
    if _is_excluded(cwd, run.settings.excluded_projects):
        batch.done.append(claim)
        return None
    project_id = cursor.project_id if cursor else run.store.projects.origin_of(cwd, run.now)
    read = _read_pieces(claim, path, start, first_line, project_id, head, limits_of(run))
    if start == 0 and not read.is_transcript:
        return _set_aside(run, claim, f"not a transcript: {_main_reason(read.set_aside)}")
    if start == 0 and cursor is None and _is_trivial(read.turns, run.settings.min_chars):
        batch.done.append(claim)  # when it grows, its next ticket brings the whole of it
        return None
    batch.set_aside += read.set_aside
    batch.transcripts += 1
    batch.turns.extend(read.turns)
    batch.size += read.read_to - start
    if read.read_to > start:
        head_bytes = min(HEAD_BYTES, read.read_to)
        batch.cursors[name] = Cursor(
            read_bytes=read.read_to,
            read_lines=first_line - 1 + read.lines,
            head=head_of(path, head_bytes),
            head_bytes=head_bytes,
            project_id=project_id,
            session_id=(head.session_id if head else None) or _session_of(claim),
        )
    batch.done.append(claim)
    return None


def _is_path(text: str) -> bool:
    """Return whether the system can be asked about `text` as a path."""
    return "\0" not in text and len(text.encode("utf-8", "replace")) <= PATH_BYTES_MAX


def _is_trivial(turns: list[pa.Table], min_chars: int) -> bool:
    """Return whether a whole transcript says too little to be kept: "hi" and its answer (spec 4.6)."""
    said = "\n".join(text for rows in turns for text in values(rows, "text"))
    return 0 < len(said) < min_chars and "[MEMORY:" not in said  # what is told on purpose may be short


@dataclass
class _Read:
    """What one transcript gave from its cursor on."""

    read_to: int
    turns: list[pa.Table] = field(default_factory=list)
    set_aside: list[SetAsideLine] = field(default_factory=list)
    lines: int = 0
    is_transcript: bool = False  # some line was an object of JSON


def limits_of(run: Run) -> Limits:
    """Return what the settings let the reader keep."""
    return Limits(keeps_personal_data=not run.settings.redacts_personal_data)


def _session_of(claim: Claim) -> str | None:
    return stored_name(claim.session_id) if claim.session_id else None


def _known_folders(run: Run) -> list[str]:
    return [path for project in run.store.projects.all() for path in project.paths]


def _read_pieces(
    claim: Claim,
    path: Path,
    start: int,
    first_line: int,
    project_id: str,
    head: Head | None,
    limits: Limits | None = None,
) -> _Read:
    """Read a transcript piece by piece; unusable lines are named with their reason."""
    name = stored_name(claim.transcript)
    agent_id = head.agent_id if head else claim.agent_id or _agent_of(name)
    source = Source(name, project_id, _session_of(claim), agent_id, head)
    if head and head.is_document:
        return _read_document(path, source, limits)
    read = _Read(start)
    is_whole = head is not None and is_packed(path)
    for piece in unpacked(path) if is_whole else pieces(path, start, first_line):
        if piece.overlong:
            read.set_aside.append(SetAsideLine(name, piece.first_line, "line too long"))
            read.read_to, read.lines = piece.start, read.lines + (not piece.is_last)
            continue
        reading = read_transcript(piece.data, source=source, first_line=piece.first_line, limits=limits)
        read.set_aside += [SetAsideLine(name, a.line, a.reason) for a in reading.set_aside]
        if reading.consumed_bytes < len(piece.data):
            half = piece.first_line + reading.consumed_lines
            read.set_aside.append(SetAsideLine(name, half, "last line is not finished yet"))
        if not read.is_transcript:
            written = sum(1 for line in piece.data[: reading.consumed_bytes].split(b"\n") if line.strip())
            read.is_transcript = reading.turns.num_rows > 0 or len(reading.set_aside) < written
        read.turns.append(reading.turns)
        read.read_to = piece.start + reading.consumed_bytes
        read.lines += reading.consumed_lines
    if is_whole:  # a cursor counts the bytes of the file, and this one will not grow
        read.read_to = path.stat().st_size
    return read


def _read_document(path: Path, source: Source, limits: Limits | None) -> _Read:
    """Read a chat that its assistant writes anew as a whole; turns read before are known by their ids."""
    if path.stat().st_size > PIECE_BYTES:
        return _Read(0, set_aside=[SetAsideLine(source.file, None, "file too long")])
    with open_transcript(path) as file:
        document = file.read(PIECE_BYTES)
    lines = lines_of_document(document)
    if lines is None:  # half written, perhaps: the whole of it is another file, and is staged again
        return _Read(0, set_aside=[SetAsideLine(source.file, None, "not JSON")])
    reading = read_transcript(lines, source=source, final=True, limits=limits)
    set_aside = [SetAsideLine(source.file, a.line, a.reason) for a in reading.set_aside]
    return _Read(len(document), [reading.turns], set_aside, reading.consumed_lines, is_transcript=True)


def _main_reason(lines: list[SetAsideLine]) -> str:
    reasons = [line.reason for line in lines]
    return "binary" if "binary" in reasons else reasons[0] if reasons else "no line could be read"


def _says_nothing_yet(claim: Claim, path: Path, head: Head | None) -> bool:
    """Return whether a transcript holds no turn yet: what follows will tell its project."""
    read = _read_pieces(claim, path, 0, 1, "", head)
    is_begun = (
        head is not None and not head.is_document
    )  # a rollout's first line is long, and written in parts
    return (is_begun or read.is_transcript) and not any(turns.num_rows for turns in read.turns)


def _commit(run: Run, batch: _Batch, row: StageReport) -> None:
    """Commit a batch: its new turns, the events of every session they touch, the cursors."""
    if not batch.cursors:
        return
    read = pa.concat_tables([TURNS.empty(), *batch.turns])
    turns = each_key_once(TURNS, run.tombstones().admitted(read))
    row.rows_in += turns.num_rows
    with run.store.lake.change() as change:
        for project_id in sorted(set(values(turns, "project_id")) - run.failed):
            mine = turns.filter(pc.equal(turns["project_id"], project_id))
            with run.without_damage(project_id):
                row.rows_out += _add_project(run, change, project_id, mine)
        batch.keep_back(run.failed)
        for name, cursor in batch.cursors.items():
            change.move_cursor(name, cursor)


def _add_project(run: Run, change: Change, project_id: str, turns: pa.Table) -> int:
    """Add a project's new turns and the events of their sessions to the change; return rows added."""
    lake = run.store.lake
    known = lake.read(TURNS, project_id, columns=["turn_id", "session_id", *PLACE])
    # Cut after redaction, a turn may hold what looks like a secret: one row must not stop a project.
    fresh = masked(unknown_turns(turns, known), TURNS)
    if not fresh.num_rows:
        return 0
    sessions = _touched_sessions(fresh, known)
    earlier = lake.read(TURNS, project_id, sessions=sessions)
    whole = in_first_place(pa.concat_tables([earlier, fresh]), known)
    events = events_of(run, project_id, whole)
    rows = fresh.num_rows + events.num_rows
    if not run.passes(project_id, rows, lambda: turns_breaches(fresh) + events_breaches(events, whole)):
        return 0
    if not known.num_rows:  # sessions of before stay as an older extractor made them, and so does the note
        change.made(f"extract:{project_id}", extractor_fingerprint(run.policy))
    _note_grown(change.manifest.stages, project_id, sessions & set(values(known, "session_id")))
    change.append(TURNS, project_id, fresh)
    change.append(EVENTS, project_id, events, tuple(sorted(sessions)))
    run.report.new_rows["turns"] = run.report.new_rows.get("turns", 0) + fresh.num_rows
    run.report.new_rows["events"] = run.report.new_rows.get("events", 0) + events.num_rows
    return int(fresh.num_rows + events.num_rows)


def _note_grown(stages: dict[str, str], project_id: str, sessions: Iterable[str]) -> None:
    """Note in a manifest's stages which sessions that were there before have gone on."""
    name = f"{GROWN}:{project_id}"
    known = {*json.loads(stages.get(name, "[]")), *sessions}
    if known:
        stages[name] = json.dumps(sorted(known))


def unknown_turns(turns: pa.Table, known: pa.Table) -> pa.Table:
    """
    Return the rows of `turns` that are not in `known`, or stand at an earlier place than there.

    The earlier place wins whenever rows are read, so the lake says the same whichever copy of a
    resumed or forked session came first.
    """
    new, old = _frame(turns), _frame(known)
    first = old.sort(PLACE).unique(subset="turn_id", keep="first").select("turn_id", known=pl.struct(PLACE))
    joined = new.join(first, on="turn_id", how="left", maintain_order="left")
    earlier = pl.struct(PLACE).struct.field("file") < pl.col("known").struct.field("file")
    same_file = pl.col("file") == pl.col("known").struct.field("file")
    earlier |= same_file & (pl.col("line") < pl.col("known").struct.field("line"))
    kept = joined.filter(pl.col("known").is_null() | earlier).drop("known")
    return kept.to_arrow().cast(TURNS.arrow)


def _touched_sessions(fresh: pa.Table, known: pa.Table) -> set[str]:
    """Return the sessions whose turns change: those of `fresh`, and those that held one of them until now."""
    moved = known.filter(pa.compute.is_in(known["turn_id"], fresh["turn_id"].combine_chunks()))
    return {*values(fresh, "session_id"), *values(moved, "session_id")}


def in_first_place(turns: pa.Table, known: pa.Table) -> pa.Table:
    """Return each of `turns` once, without those that stand earlier in another session (a fork's)."""
    rows = _frame(turns)
    places = pl.concat([rows.select("turn_id", *PLACE), _frame(known).select("turn_id", *PLACE)])
    first = places.sort(PLACE).unique(subset="turn_id", keep="first")
    kept = rows.join(first, on=["turn_id", *PLACE], how="semi")
    return each_key_once(TURNS, kept.to_arrow().cast(TURNS.arrow))


def _frame(rows: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame


def events_of(run: Run, project_id: str, turns: pa.Table) -> pa.Table:
    """
    Return the EVENTS of a project's whole sessions; what Cortex said itself is no evidence of anything.

    Sessions that lost words keep what was chosen from them before.
    """
    told, settled = run.told(project_id), _settled(run, project_id)
    faults: list[str] = []
    with contained(faults.append):
        return _events_of(turns, told, run.policy, settled)
    events = [EVENTS.empty()]
    for session_id in sorted(set(values(turns, "session_id"))):
        mine, reasons = turns.filter(pc.equal(turns["session_id"], session_id)), list[str]()
        with contained(reasons.append):
            events.append(_events_of(mine, told, run.policy, settled))
        for reason in reasons:  # its turns are kept: a later extractor reads them again
            run.report.set_aside.append(
                SetAsideLine(values(mine, "file")[0], None, f"nothing extracted from session: {reason}")
            )
    return pa.concat_tables(events)


def _events_of(turns: pa.Table, told: Told, policy: Policy, settled: Settled) -> pa.Table:
    events = extract_events(without_echoes(turns, told), policy, settled)
    return masked(with_quotes_lowered(events, turns), EVENTS)


def _settled(run: Run, project_id: str) -> Settled:
    settled = run.store.lake.read(SETTLED, project_id)
    if not settled.num_rows:
        return NOTHING_SETTLED
    return Settled.of(settled, run.store.lake.read(EVENTS, project_id))


def outdated(manifest: Manifest, policy: Policy) -> list[str]:
    """Return the projects with events of another extractor or policy than today's, but for those declined."""
    today = extractor_fingerprint(policy)
    noted = manifest.stages
    return [
        name
        for name in manifest.partitions("turns")
        if today not in (noted.get(f"extract:{name}"), noted.get(f"declined:{name}"))
    ]


def _set_aside(run: Run, claim: Claim, reason: str) -> None:
    run.store.staging.set_aside(claim, reason)
    run.report.set_aside.append(SetAsideLine(stored_name(claim.transcript), None, reason))


def _is_excluded(cwd: str, excluded: tuple[str, ...]) -> bool:
    return any(cwd == path.rstrip("/") or cwd.startswith(path.rstrip("/") + "/") for path in excluded)


def _agent_of(name: str) -> str | None:
    stem = PurePosixPath(name).stem
    return stem.removeprefix("agent-") if stem.startswith("agent-") else None
