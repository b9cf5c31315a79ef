"""
Shards: bundles of transcripts or texts that any process reads, extracts from or embeds; who answers them.

A shard is a request that needs nothing but the files it names; its answer has the turns and events, or the
vectors, and what exactly they were made from. A run takes an answer only to what it would have asked itself.
"""

import hashlib
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.embedders.local import LocalEmbedder
from cortex.flows.reading.transcript_reader import TurnsRead, in_first_place, read_turns, unknown_turns
from cortex.storage.lake.lake import each_key_once
from cortex.storage.staging.transcripts import FileStamp, Position, Transcript, open_transcript
from cortex.transforms import __version__
from cortex.transforms.errors import contained
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.language.candidate import EXTRACTOR_VERSION
from cortex.transforms.extract.language.settled import NOTHING_SETTLED, Settled
from cortex.transforms.extract.quotes import ShownLines, with_quotes_lowered, without_echoes
from cortex.transforms.masking import masked
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, TURNS, values
from cortex.transforms.transcripts.records import Limits
from cortex.transforms.transcripts.transcript import Source

if TYPE_CHECKING:
    from cortex.flows.embedders import Embedder, Vectors


# -- What is extracted from whole sessions of a project: the same in the run's own process and in others.

# Puts the facts of a language model in the place of the rules', in EVENTS of TURNS.
Writing = Callable[[pa.Table, pa.Table], pa.Table]


@dataclass(frozen=True)
class Extraction:
    """Whole sessions of one project to extract from: TURNS, what Cortex showed it, what lost words."""

    turns: pa.Table
    shown_lines: ShownLines
    settled: Settled


@dataclass(frozen=True)
class Extracted:
    """The EVENTS of an extraction; without any the reason why it failed."""

    events: pa.Table | None
    fault: str = ""


def rules_alone(events: pa.Table, turns: pa.Table) -> pa.Table:
    """Return the events as the rules made them."""
    return events


def extract_from(task: Extraction, policy: Policy, written: Writing = rules_alone) -> pa.Table:
    """Return the EVENTS of whole sessions; what Cortex itself wrote is not evidence."""
    turns = task.turns
    events = written(extract_events(without_echoes(turns, task.shown_lines), policy, task.settled), turns)
    return masked(with_quotes_lowered(events, turns), EVENTS)


def by_session(whole: Extraction) -> list[Extraction]:
    """Return an extraction session by session, each on its own: they give what the whole gives."""
    turns = whole.turns
    return [
        replace(whole, turns=turns.filter(pc.equal(turns["session_id"], pa.scalar(name))))
        for name in sorted(set(values(turns, "session_id")))
    ]


def extract_or_fault(task: Extraction, policy: Policy, written: Writing = rules_alone) -> Extracted:
    """Return the events of an extraction, or why there are none; input that nobody foresaw stops nothing."""
    faults: list[str] = []
    with contained(faults.append):
        return Extracted(extract_from(task, policy, written))
    return Extracted(None, faults[0])


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
    """Texts for the local model, in lists."""

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


# -- Who answers shards, and which of the answers a run takes: those that it would have given itself.

# Lists of texts in a shard: about 4 s of work, so that a project's passages are spread over several workers.
LISTS_PER_SHARD = 4


class Carrier(Protocol):
    """Workers that answer shards, wherever they run."""

    def map(self, requests: Iterable[bytes]) -> Iterator[bytes | None]:
        """
        Yield the answer to each request, in their order; None if no worker gave one.

        A request is drawn when a worker is about to be free for it: not all are in memory at once.
        """


class ShardAnswers:
    """What workers answered to shards of transcripts; what they did not is done here."""

    def __init__(self, *answers: tuple[TranscriptShard, TranscriptAnswer]) -> None:
        self._answers = list(answers)

    def add(self, shard: TranscriptShard, answer: TranscriptAnswer) -> None:
        """Take in the answer to one more shard."""
        self._answers.append((shard, answer))

    def reading(self, unread: Unread, transcript: Transcript) -> TurnsRead | None:
        """Return what was read of the very file that is open now, from the same position on; else None."""
        readings = (answer.readings.get(unread.kept_at) for _, answer in self._answers)
        reading = next(filter(None, readings), None)
        if reading is None or reading.unread != unread or reading.stamp != transcript.stamp:
            return None
        return reading.result

    def extract(self, tasks: Sequence[Extraction], policy: Policy) -> list[Extracted]:
        """Return what each task gives, in their order."""
        return [self._extracted(task) or extract_or_fault(task, policy) for task in tasks]

    def _extracted(self, task: Extraction) -> Extracted | None:
        projects = set(values(task.turns, "project_id"))
        digest = rows_digest(task.turns)
        for shard, answer in self._answers:
            is_same = all(
                shard.shown_lines.get(name) == task.shown_lines and shard.settled.get(name) == task.settled
                for name in projects
            )
            if is_same and digest in answer.extracted:
                return answer.extracted[digest]
        return None


def vectors_of(
    carrier: Carrier | None, embedder: "Embedder", lists: Sequence[Sequence[str]]
) -> "Iterator[Vectors]":
    """
    Yield the vectors of each list of texts, by workers where there are any.

    Only the local model runs there: a hosted one has one key, and one limit. Raises ModelUnavailable.
    """
    if carrier is None or len(lists) < LISTS_PER_SHARD or not isinstance(embedder, LocalEmbedder):
        yield from (embedder.embed(texts) for texts in lists)
        return
    asked: deque[TextShard] = deque()

    def requests() -> Iterator[bytes]:
        for at in range(0, len(lists), LISTS_PER_SHARD):
            asked.append(TextShard(embedder.model, tuple(map(tuple, lists[at : at + LISTS_PER_SHARD]))))
            yield packed(asked[-1])

    for reply in carrier.map(requests()):
        shard = asked.popleft()
        if reply is None:
            yield from (embedder.embed(texts) for texts in shard.lists)
        else:
            vectors = unpacked(reply)
            assert isinstance(vectors, list)
            yield from vectors
