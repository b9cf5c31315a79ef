"""The stage extract: waiting transcripts become turns and events, committed together with their cursors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.reading.shard_worker import LOCAL_SHARD_BYTES, local_workers
from cortex.flows.reading.shards import (
    Extracted,
    Extraction,
    ShardAnswers,
    by_session,
    extract_from,
    extract_or_fault,
)
from cortex.flows.reading.transcript_reader import PLACE, in_first_place, touched_sessions, unknown_turns
from cortex.flows.run.run import Run, stage
from cortex.flows.run_report import QuarantinedLine, StageReport
from cortex.flows.transcript_batches import (
    Batch,
    BytesShown,
    batches_of,
    bytes_of_a_task,
    extraction_of,
    quarantine,
    read_or_quarantine,
    sharded_batches,
)
from cortex.storage.filesystem.files import stored_name
from cortex.storage.lake.lake import Change, each_key_once
from cortex.storage.lake.manifest import outdated
from cortex.storage.staging.staging import Claim
from cortex.transforms.audit import events_violations, turns_violations
from cortex.transforms.errors import contained
from cortex.transforms.extract.language.candidate import extractor_fingerprint
from cortex.transforms.extract.language.settled import Settled
from cortex.transforms.masking import masked
from cortex.transforms.schemas import EVENTS, REPLIES, TURNS, values


def extract_staged(run: Run) -> None:
    """Take in every waiting transcript; events of sessions that do not grow stay as they are."""
    with run.report.stage("extract") as row:
        for path in run.store.journal.quarantine_damaged():
            run.report.quarantined.append(QuarantinedLine(stored_name(path), None, "not a journal entry"))
        run.store.journal.take_in()
        # A private session's own transcript first: its subagents' are left alone then.
        claims = sorted(run.store.staging.claim(), key=lambda claim: "subagents" in claim.transcript.parts)
        shown = BytesShown(run, claims)
        for number, (batch, extractor) in enumerate(_batches(run, claims, shown), start=1):
            _take_in(run, batch, row, extractor)
            shown.take_in()
            row.note = f"{number} batch{'es' if number > 1 else ''}"
        _extract_pieces(run, row)
        run.store.journal.take_in()  # projects met on the way
        old = outdated(run.store.lake.manifest, run.policy)
        if old:
            row.note += f"; {len(old)} projects are of another extractor or policy: cortex rederive"


def _batches(run: Run, claims: list[Claim], shown: BytesShown) -> Iterator[tuple[Batch, ShardAnswers | None]]:
    """Yield what waits in batches, and what workers answered to each, if any are at work."""
    if run.carrier is not None and claims:
        yield from sharded_batches(run, run.carrier, claims, shown, bytes_of_a_task(run))
        return
    # A language model's replies are read where they are put in the place of what the rules say.
    with local_workers(0 if run.settings.models.uses_replies else _waiting_bytes(claims)) as workers:
        if workers is not None:
            yield from sharded_batches(run, workers, claims, shown, LOCAL_SHARD_BYTES)
            return
        for batch in batches_of(run, claims, shown):
            yield batch, None


def _waiting_bytes(claims: Iterable[Claim]) -> int:
    """Return how large the transcripts are that wait; most of a grown one may have been read before."""
    size = 0
    for path in filter(None, (claim.readable() for claim in claims)):
        with suppress(OSError):
            size += path.stat().st_size
    return size


def _take_in(run: Run, batch: Batch, row: StageReport, extractor: ShardAnswers | None) -> None:
    """Commit a batch and drop its tickets; if that fails, one transcript after another."""
    faults: list[str] = []
    with contained(faults.append):
        _commit(run, batch, row, extractor)
    claims = batch.done if batch.piece_of is None else [batch.piece_of]
    if not faults:
        run.report.quarantined += batch.quarantined
        run.report.transcripts += batch.transcripts
        run.report.transcript_bytes += batch.size
        run.store.staging.release(batch.done)
    elif len(claims) == 1:
        quarantine(run, claims[0], faults[0])
    else:
        for claim in claims:
            single = Batch()
            read_or_quarantine(run, claim, single)
            _take_in(run, single, row, None)


def _commit(run: Run, batch: Batch, row: StageReport, extractor: ShardAnswers | None) -> None:
    """Commit a batch: its new turns, the events of the whole sessions that they touch, the cursors."""
    if not batch.cursors:
        return
    read = pa.concat_tables([TURNS.empty(), *batch.turns])
    turns = each_key_once(TURNS, run.readings.tombstones(run.retention).admitted(read))
    row.rows_in += turns.num_rows
    # A language model's replies are read where they are put in the place of what the rules say.
    extractor = None if run.settings.models.uses_replies else extractor
    additions = list(_additions(run, batch, turns, is_by_session=extractor is not None))
    with run.store.lake.change() as change:
        extractions = _events_from(run, additions, extractor) if extractor else {}
        for addition in additions:
            project_id = addition.project_id
            with run.outcome.without_damage(project_id):
                events = extractions[project_id] if extractor else events_of(run, project_id, addition.whole)
                row.rows_out += _add(run, change, addition, events)
        batch.keep_back(run.outcome.failed)
        for name, cursor in batch.cursors.items():
            change.move_cursor(name, cursor)


def _extract_pieces(run: Run, row: StageReport) -> None:
    """
    Commit the events of each session that was read in pieces; if that fails, the next run tries again.

    So it does where the extractor itself fails: each run names the session until an extractor takes it.
    """
    for project_id, sessions in run.store.lake.notes.unextracted.items():
        for session_id in sessions if project_id not in run.outcome.failed else ():
            faults: list[str] = []
            with run.outcome.without_damage(project_id), contained(faults.append):
                addition = _addition_of(run, project_id, TURNS.empty(), ended={session_id})
                pa.default_memory_pool().release_unused()  # about 90 MB of copies that are gone, at 200 MB
                named = len(run.report.quarantined)
                events = events_of(run, project_id, addition.whole)
                if len(run.report.quarantined) > named:
                    continue
                with run.store.lake.change() as change:
                    row.rows_out += _add(run, change, addition, events)
            for fault in faults:
                reason = f"nothing extracted from session yet: {fault}"
                run.report.quarantined.append(QuarantinedLine(session_id, None, reason))


@dataclass(frozen=True)
class _Addition:
    """
    What is added to a project: new turns, and the events of `sessions`, made of the `whole` of their turns.

    Sessions `in_pieces` have new turns too, and their events once all pieces are read.
    """

    project_id: str
    fresh: pa.Table
    whole: pa.Table
    sessions: set[str]
    in_pieces: set[str]
    known_sessions: set[str]
    extractions: Sequence[Extraction] = ()  # by session, where they are extracted in several processes


def _additions(run: Run, batch: Batch, turns: pa.Table, *, is_by_session: bool) -> Iterator[_Addition]:
    """Yield what new TURNS of a batch add to each project, nothing if all are known."""
    for project_id in sorted(set(values(turns, "project_id")) - run.outcome.failed):
        with run.outcome.without_damage(project_id):
            addition = _addition_of(run, project_id, turns, is_piece=batch.piece_of is not None)
            if addition.fresh.num_rows:
                whole = extraction_of(run, project_id, addition.whole)
                yield replace(addition, extractions=by_session(whole) if is_by_session else ())


def _addition_of(
    run: Run, project_id: str, turns: pa.Table, *, is_piece: bool = False, ended: Iterable[str] = ()
) -> _Addition:
    """Return what TURNS add to a project; the pieces of sessions `ended` are all in the lake."""
    lake = run.store.lake
    known = lake.read(TURNS, project_id, columns=["turn_id", "session_id", *PLACE])
    mine = turns.filter(pc.equal(turns["project_id"], pa.scalar(project_id)))
    # Cut after redaction, a turn may hold what looks like a secret: one row must not stop a project.
    fresh = masked(unknown_turns(mine, known), TURNS)
    touched = touched_sessions(fresh, known)
    in_pieces = touched if is_piece else touched & {*lake.notes.unextracted.get(project_id, ())}
    sessions = (touched - in_pieces) | {*ended}
    rows = in_first_place(pa.concat_tables([lake.read(TURNS, project_id, sessions=sessions), fresh]), known)
    is_whole = pc.is_in(rows["session_id"], pa.array(sessions, pa.string()))
    whole = rows.filter(is_whole) if in_pieces else rows  # a copy of a session may be 100 MB
    return _Addition(project_id, fresh, whole, sessions, in_pieces, set(values(known, "session_id")))


def _add(run: Run, change: Change, addition: _Addition, events: pa.Table) -> int:
    """Add a project's new turns and the events of their sessions to the change; return rows added."""
    project_id, fresh, sessions = addition.project_id, addition.fresh, addition.sessions
    rows = fresh.num_rows + events.num_rows
    if not run.outcome.passes(
        project_id, rows, lambda: turns_violations(fresh) + events_violations(events, addition.whole)
    ):
        return 0
    note_grown(change, project_id, sessions & addition.known_sessions)
    notes, new_rows = change.notes, run.report.new_rows
    if not addition.known_sessions:  # else they stay as an older extractor made them, and so does the note
        made_by = {**notes.extractors, project_id: extractor_fingerprint(run.policy)}
        notes = replace(notes, extractors=made_by)
    waiting = {*notes.unextracted.get(project_id, ()), *addition.in_pieces} - sessions
    by_project = {**notes.unextracted, project_id: tuple(sorted(waiting))}
    unextracted = {name: held for name, held in by_project.items() if held}
    change.notes = replace(notes, unextracted=unextracted)
    change.append(TURNS, project_id, fresh)
    change.append(EVENTS, project_id, events, tuple(sorted(sessions)))
    for table, added in (("turns", fresh), ("events", events)):
        new_rows[table] = new_rows.get(table, 0) + added.num_rows
    return int(rows)


def note_grown(change: Change, project_id: str, sessions: Iterable[str]) -> None:
    """Note which sessions have gone on that were there before: they may take back words."""
    grown = {*change.notes.grown.get(project_id, ()), *sessions}
    if grown:
        change.notes = replace(change.notes, grown={**change.notes.grown, project_id: tuple(sorted(grown))})


def events_of(
    run: Run,
    project_id: str,
    turns: pa.Table,
    replies: pa.Table | None = None,
    prompt: str | None = None,
) -> pa.Table:
    """
    Return the EVENTS of a project's whole sessions; what Cortex itself wrote is not evidence.

    Sessions that lost words keep what was chosen from them before. With a language model chosen, its replies
    count; `replies` are REPLIES not in the lake yet, `prompt` the version that counts (default: in force).
    """
    whole = extraction_of(run, project_id, turns)
    written = _written_of(run, project_id, turns, whole.settled, replies, prompt)
    faults: list[str] = []
    with contained(faults.append):
        return extract_from(whole, run.policy, written)
    sessions = by_session(whole)
    return _joined(run, sessions, [extract_or_fault(each, run.policy, written) for each in sessions])


def _events_from(run: Run, additions: Sequence[_Addition], extractor: ShardAnswers) -> dict[str, pa.Table]:
    """Return by project what `events_of` does of each addition, extracted in several processes."""
    results = iter(
        extractor.extract([each for addition in additions for each in addition.extractions], run.policy)
    )
    return {
        each.project_id: _joined(run, each.extractions, [next(results) for _ in each.extractions])
        for each in additions
    }


def _joined(run: Run, sessions: Sequence[Extraction], results: Sequence[Extracted]) -> pa.Table:
    """Return the events of a project's sessions, by event_id; name those that failed."""
    for session, result in zip(sessions, results, strict=True):
        if result.events is None:  # its turns are kept: a later extractor reads them again
            file, reason = values(session.turns, "file")[0], f"nothing extracted from session: {result.fault}"
            run.report.quarantined.append(QuarantinedLine(file, None, reason))
    events = [result.events for result in results if result.events is not None]
    return each_key_once(EVENTS, pa.concat_tables([EVENTS.empty(), *events]))


def _written_of(
    run: Run,
    project_id: str,
    turns: pa.Table,
    settled: Settled,
    replies: pa.Table | None,
    prompt: str | None,
) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Return what puts the facts of a language model in the place of the rules' in EVENTS of TURNS."""
    known = REPLIES.empty() if replies is None else replies
    if run.settings.models.uses_replies:
        sessions = set(values(turns, "session_id"))
        known = pa.concat_tables([run.store.lake.read(REPLIES, project_id, sessions=sessions), known])
    if not known.num_rows:
        return lambda events, _: events
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.run.model_replies import prompt_in_force
    from cortex.transforms.writer.written import with_written

    counts = prompt_in_force(run, project_id) if prompt is None else prompt

    def written(events: pa.Table, of_turns: pa.Table) -> pa.Table:
        faults: list[str] = []
        with contained(faults.append):  # an answer of whatever shape costs no fact of the rules
            return with_written(events, of_turns, known, run.policy, counts, settled.turns)
        return events

    return written


# -- The stage extract: waiting transcripts and journal entries come into the lake.


@stage(reads="turns events settled replies journal", writes="turns events journal")
def extract(run: Run) -> None:
    """Take in every waiting transcript; events of sessions that do not grow stay as they are."""
    extract_staged(run)
