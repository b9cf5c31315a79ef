"""Who answers shards, and which of the answers a run takes: those that it would have given itself."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from cortex.flows.embedders.local import LocalEmbedder
from cortex.flows.reading.extraction import Extracted, Extraction, extract_or_fault
from cortex.flows.reading.shards import (
    TextShard,
    TranscriptAnswer,
    TranscriptShard,
    Unread,
    packed,
    rows_digest,
    unpacked,
)
from cortex.flows.reading.transcript_reader import TurnsRead
from cortex.storage.staging.transcripts import Transcript
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import values

if TYPE_CHECKING:
    from cortex.flows.embedders import Embedder, Vectors

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
