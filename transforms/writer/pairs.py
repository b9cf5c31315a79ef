"""Pairs of memories whose relation a language model is asked for: which, and the request that holds many."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.prose.memory_types import FACT_TYPES
from cortex.transforms.extract.ground.candidate import TAG_LAYER
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import BY_A_PERSON, EPOCH, PROPOSED_BY_MODEL, TRUSTS, Row
from cortex.transforms.words.sentences import shortened
from cortex.transforms.writer.cited import within_frame
from cortex.transforms.writer.prompt import Prompt
from cortex.transforms.writer.request import ModelRequest
from cortex.transforms.writer.written import LAYER_PREFIX

LINKS_PROMPT = "links@1"
TEXT_CHARS, REASON_CHARS, REJECTED_CHARS = 450, 200, 150
PAIR_COLUMNS = [
    "memory_id",
    "project_id",
    "memory_type",
    "text",
    "reason",
    "rejected",
    "source_type",
    "trust",
    "created_at",
    "updated_at",
    "evidence",
]


@dataclass(frozen=True)
class PairedMemory:
    """One side of a pair, as a request shows it."""

    memory_id: str
    memory_type: str
    text: str
    reason: str
    rejected: str
    trust: str
    created_at: datetime
    updated_at: datetime

    @property
    def order(self) -> tuple[datetime, datetime, str]:
        """What decides which of two is the older: when it was last said, then when first."""
        return self.updated_at, self.created_at, self.memory_id

    def as_line(self) -> str:
        """Return it on one line, which cannot begin another or end the frame that it stands in."""
        parts = [shortened(within_frame(self.text), TEXT_CHARS)]
        parts += [f"Why: {shortened(within_frame(self.reason), REASON_CHARS)}"] * bool(self.reason)
        parts += [f"Instead of: {shortened(within_frame(self.rejected), REJECTED_CHARS)}"] * bool(
            self.rejected
        )
        day = f"{self.updated_at:%Y-%m-%d}" if self.updated_at > EPOCH else "day unknown"
        return f"({self.memory_type}, {day}, said by {self.trust}) {' '.join(parts)}"


@dataclass(frozen=True)
class MemoryPair:
    """Two memories of a scope, the older first."""

    older: PairedMemory
    newer: PairedMemory

    @property
    def name(self) -> str:
        """
        The pair by what it says.

        A verdict is known by it: said again, edited or reversed in their order, two memories are another
        pair; under other ids, in a project that was merged or copied, the same words are the same one.
        """
        ends = (self.older.memory_type, self.older.text, self.newer.memory_type, self.newer.text)
        return content_id("pair", *ends)

    @property
    def ids(self) -> tuple[str, str]:
        """The ids of the two, the smaller first, as similar pairs are named."""
        first, second = sorted((self.older.memory_id, self.newer.memory_id))
        return first, second


@dataclass(frozen=True)
class PairsRequest:
    """A request about pairs of one scope, numbered from p1 on in this order."""

    scope: str
    request: ModelRequest
    pairs: tuple[MemoryPair, ...]


def pair_of(a: Row, b: Row) -> MemoryPair:
    """Return two rows of MEMORIES as a pair."""
    older, newer = sorted((_side(a), _side(b)), key=lambda side: side.order)
    return MemoryPair(older, newer)


def pairs_to_ask(
    memories: pa.Table, edges: pa.Table, asked: Collection[str], policy: Policy
) -> list[MemoryPair]:
    """
    Return the pairs of a scope that a language model should see and has not seen, the newest first.

    Takes MEMORIES, EDGES and the names of pairs that were asked about. A pair has an edge by the rules that
    is strong or says they are at odds, none of a person or a reading. Both are active, and written by a
    person or a language model (the rules' words change by release), not by a stranger. Two facts of one
    session are none: it was read whole.
    """
    known = {row["memory_id"]: row for row in _askable(memories).to_pylist() if is_written(row)}
    floor = policy.threshold("links_above_similarity")
    pairs: dict[str, MemoryPair] = {}
    for edge in edges.to_pylist():
        a, b = known.get(edge["source_id"]), known.get(edge["target_id"])
        is_settled = edge["rule"] in (PROPOSED_BY_MODEL, BY_A_PERSON)
        is_near = edge["strength"] >= floor or edge["edge_type"] == "contradicts"
        if a is None or b is None or is_settled or not is_near or _is_of_one_session(a, b):
            continue
        pair = pair_of(a, b)
        if pair.name not in asked:
            pairs[pair.name] = pair
    return sorted(pairs.values(), key=lambda pair: (*pair.newer.order, *pair.older.order), reverse=True)


def pairs_requests(
    scope: str, pairs: Sequence[MemoryPair], policy: Policy, model: str, prompt: Prompt
) -> list[PairsRequest]:
    """Return the requests about pairs of a scope, in their order, each as many as the policy says."""
    most = int(policy.threshold("links_pairs_per_request"))
    output_tokens = int(policy.threshold("links_output_tokens_max"))
    requests = []
    for begin in range(0, len(pairs), most):
        some = tuple(pairs[begin : begin + most])
        lines = [line for number, pair in enumerate(some, start=1) for line in _lines(number, pair)]
        # What was redacted memory by memory may make a secret side by side.
        content = redact("<pairs>\n" + "\n".join(lines) + "\n</pairs>")[0]
        request = ModelRequest(
            prompt.purpose, model, prompt.name, prompt.system, content, prompt.schema, output_tokens
        )
        requests.append(PairsRequest(scope, request, some))
    return requests


def _lines(number: int, pair: MemoryPair) -> Iterable[str]:
    return f"[p{number}]", f"  older: {pair.older.as_line()}", f"  newer: {pair.newer.as_line()}"


def _askable(memories: pa.Table) -> pa.Table:
    # Records of sessions, code and what describes it follow from their source: no fact takes their place.
    is_fact = pc.field("memory_type").isin(pa.array(FACT_TYPES, pa.string()))
    is_ours = pc.field("trust") != TRUSTS[0]
    return memories.filter((pc.field("status") == "active") & is_fact & is_ours).select(PAIR_COLUMNS)


def is_written(row: Row) -> bool:
    """Return whether a person or a language model wrote a memory; the rules' words change by release."""
    if row["source_type"] == "explicit":
        return True
    layers = {place["layer"] for place in row["evidence"]}
    return TAG_LAYER in layers or any(layer.startswith(LAYER_PREFIX) for layer in layers)


def _is_of_one_session(a: Row, b: Row) -> bool:
    sessions = {place["session_id"] for row in (a, b) for place in row["evidence"]}
    return len(sessions) == 1 and bool(a["evidence"]) and bool(b["evidence"])


def _side(row: Mapping[str, object]) -> PairedMemory:
    text = str(row["text"])
    more = [str(row[name] or "") for name in ("reason", "rejected")]
    reason, rejected = ("" if words in text else words for words in more)
    times = [at if isinstance(at := row[name], datetime) else EPOCH for name in ("created_at", "updated_at")]
    return PairedMemory(
        str(row["memory_id"]), str(row["memory_type"]), text, reason, rejected, str(row["trust"]), *times
    )
