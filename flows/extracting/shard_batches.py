"""Batches of waiting transcripts that workers have read, shard by shard, and extracted from."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import PurePath

from cortex.flows.extracting.project_extraction import settled_of
from cortex.flows.extracting.read_progress import BytesShown
from cortex.flows.extracting.transcript_batches import (
    BATCH_BYTES,
    Batch,
    planned,
    read_or_quarantine,
)
from cortex.flows.reading.sharding import Carrier, ShardAnswers
from cortex.flows.reading.shards import (
    TranscriptAnswer,
    TranscriptShard,
    packed,
    unpacked,
)
from cortex.flows.run.run import Run
from cortex.storage.ground.files import stored_name
from cortex.storage.staging.staging import Claim

MEGABYTE = 1_000_000

Sessions = list[list[Claim]]


def sharded_batches(
    run: Run, carrier: Carrier, claims: Sequence[Claim], shown: BytesShown, shard_bytes: float
) -> Iterator[tuple[Batch, ShardAnswers]]:
    """
    Yield what waits in batches of about BATCH_BYTES, read by workers, with what they extracted.

    Between two batches the shards behind them are being worked on. A session's transcripts are in one batch:
    what a worker extracted of it is what the run would extract.
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
