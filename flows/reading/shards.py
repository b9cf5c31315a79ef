"""
Shards: bundles of transcripts, or of texts, that any process reads and extracts from, or embeds.

A shard is a request that needs nothing but the files it names; its answer has the turns and events, or the
vectors, and what exactly they were made from. A run takes an answer only to what it would have asked itself.
"""

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.reading.duplicate_turns import in_first_place, unknown_turns
from cortex.flows.reading.extraction import (
    Extracted,
    Extraction,
    by_session,
    extract_or_fault,
)
from cortex.flows.reading.transcript_reader import TurnsRead, read_turns
from cortex.storage.lake.lake import each_key_once
from cortex.storage.staging.transcripts import FileStamp, Position, open_transcript
from cortex.transforms.extract.echoes import ShownLines
from cortex.transforms.extract.ground.extractor import EXTRACTOR_VERSION
from cortex.transforms.extract.ground.settled import NOTHING_SETTLED, Settled
from cortex.transforms.faults import contained
from cortex.transforms.masking import masked
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import TURNS, values
from cortex.transforms.transcripts.transcript import Source
from cortex.transforms.transcripts.turn_text import Limits
from cortex.transforms.version import __version__

if TYPE_CHECKING:
    from cortex.flows.embedders import Vectors
    from cortex.flows.embedders.local import LocalEmbedder

LENGTH_BYTES = 8
# A worker of another version would extract otherwise: it gives no answer.
VERSION = f"{__version__}, extractor {EXTRACTOR_VERSION}"


@dataclass(frozen=True)
class Unread:
    """What is to be read of a transcript: the file, where the assistant keeps it, and from where on."""

    path: Path
    kept_at: Path
    source: Source
    begin: Position
    limits: Limits


@dataclass(frozen=True)
class TranscriptShard:
    """Transcripts to read and to extract from; what was shown to each of their projects, and is settled."""

    transcripts: tuple[Unread, ...]
    shown_lines: Mapping[str, ShownLines]
    settled: Mapping[str, Settled]
    policy: Policy


@dataclass(frozen=True)
class TranscriptReading:
    """What a transcript gave, and which file it was when it was read."""

    unread: Unread
    stamp: FileStamp
    result: TurnsRead


@dataclass(frozen=True)
class TranscriptAnswer:
    """The readings of a shard by transcript, and what was extracted by the digest of the session's turns."""

    readings: Mapping[Path, TranscriptReading] = field(default_factory=dict)
    extracted: Mapping[str, Extracted] = field(default_factory=dict)


@dataclass(frozen=True)
class TextShard:
    """Texts for the local model, in lists that it is to be given whole: a vector depends on its batch."""

    model: str
    lists: tuple[tuple[str, ...], ...]


def answer_shard(request: bytes) -> bytes:
    """Return the packed answer to a packed shard: a pure function of it and of the files that it names."""
    shard = unpacked(request)
    if isinstance(shard, TextShard):
        return packed(_embedded(shard))
    assert isinstance(shard, TranscriptShard)
    return packed(_extracted(shard))


def packed(value: object) -> bytes:
    """Return a shard or an answer as bytes for another process of this version."""
    data = pickle.dumps((VERSION, value), pickle.HIGHEST_PROTOCOL)
    compressed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return len(data).to_bytes(LENGTH_BYTES, "big") + compressed


def unpacked(data: bytes) -> object:
    """Return what a trusted process has packed. Raises ValueError if that has another version."""
    length = int.from_bytes(data[:LENGTH_BYTES], "big")
    version, value = pickle.loads(pa.decompress(data[LENGTH_BYTES:], length, codec="zstd", asbytes=True))
    if version != VERSION:
        raise ValueError(f"packed by Cortex {version}, this is {VERSION}")
    return cast(object, value)


def rows_digest(turns: pa.Table) -> str:
    """Return a digest of rows that is the same for the same rows in the same order."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, turns.schema) as stream:
        stream.write_table(turns.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()


def _extracted(shard: TranscriptShard) -> TranscriptAnswer:
    readings = {each.unread.kept_at: each for each in map(_read, shard.transcripts) if each is not None}
    extracted: dict[str, Extracted] = {}
    for session in _sessions(shard, readings):
        extracted[rows_digest(session.turns)] = extract_or_fault(session, shard.policy)
    return TranscriptAnswer(readings, extracted)


def _read(unread: Unread) -> TranscriptReading | None:
    """Read a transcript; None if this process cannot: the run itself then says why."""
    faults: list[str] = []
    try:
        with contained(faults.append), open_transcript(unread.path, unread.kept_at) as transcript:
            result = read_turns(transcript, unread.source, unread.begin, unread.limits)
            return TranscriptReading(unread, transcript.stamp, result)
    except OSError:
        return None
    return None


def _sessions(shard: TranscriptShard, readings: Mapping[Path, TranscriptReading]) -> list[Extraction]:
    """Return the sessions of a shard as a run has them that knows nothing of them yet."""
    tables = [turns for each in readings.values() for turns in each.result.turns]
    turns, sessions = each_key_once(TURNS, pa.concat_tables([TURNS.empty(), *tables])), []
    known = TURNS.empty()
    for project_id in sorted(set(values(turns, "project_id"))):
        mine = turns.filter(pc.equal(turns["project_id"], pa.scalar(project_id)))
        faults: list[str] = []
        with contained(faults.append):
            whole = in_first_place(masked(unknown_turns(mine, known), TURNS), known)
            shown, settled = shard.shown_lines.get(project_id), shard.settled.get(project_id)
            sessions += by_session(Extraction(whole, shown or ShownLines(), settled or NOTHING_SETTLED))
    return sessions


def _embedded(shard: TextShard) -> "Sequence[Vectors]":
    embedder = _embedder()
    assert embedder.model == shard.model
    return [embedder.embed(texts) for texts in shard.lists]


@cache
def _embedder() -> "LocalEmbedder":
    """Return the model of this worker, once: on one core, since there is a worker for each."""
    from cortex.flows.embedders.local import load

    return load(threads=1)
