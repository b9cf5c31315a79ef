"""Pairs of memories that a language model is asked about: the request, which verdicts are believed."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.prose.memory_types import FACT_TYPES
from cortex.transforms.extract.language.candidate import TAG_LAYER
from cortex.transforms.identity import content_id
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.link import Pairs
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import (
    BY_A_PERSON,
    EDGES,
    EPOCH,
    JUDGED_BY_MODEL,
    LINKS_PURPOSE,
    PROPOSED_BY_MODEL,
    TRUSTS,
    UNSURE_BY_MODEL,
    Row,
)
from cortex.transforms.words.sentences import shortened
from cortex.transforms.writer.answer import FACT_KINDS, WrittenFact, parsed_answer, within_frame
from cortex.transforms.writer.request import ModelRequest, Prompt, Reply
from cortex.transforms.writer.session import ID_CHARS
from cortex.transforms.writer.written import (
    FREE,
    LAYER_PREFIX,
    OVER,
    REFUSED_CONFIDENCE,
    SESSION_PURPOSE,
    answer_row,
    is_spare,
    statement_of,
)

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


def within_line(text: str, reason: str, rejected: str) -> str:
    """Return what a memory says, why and instead of what, on one line within a request's frame."""
    parts = [
        ("", text, TEXT_CHARS),
        ("Why: ", reason, REASON_CHARS),
        ("Instead of: ", rejected, REJECTED_CHARS),
    ]
    return " ".join(
        f"{label}{shortened(within_frame(words), chars)}" for label, words, chars in parts if words
    )


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
        words = within_line(self.text, self.reason, self.rejected)
        day = f"{self.updated_at:%Y-%m-%d}" if self.updated_at > EPOCH else "day unknown"
        return f"({self.memory_type}, {day}, said by {self.trust}) {words}"


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


# -- Edges from what a language model wrote to what it says is no longer true: proposals, never decisions.

CLOSING_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "text", "trust", "status", "updated_at", "evidence"),
]
CLOSER_COLUMNS = ["session_id", "layer", "text", "reason", "trust", "confidence"]
REPLY_COLUMNS = ["session_id", "turn_ids", "known", "purpose", "model", "prompt", "text", "asked_at"]


def with_closings(edges: pa.Table, memories: pa.Table, replies: pa.Table, events: pa.Table) -> pa.Table:
    """
    Return EDGES of a scope with one `contradicts` from each fact of a model to each memory that it closes.

    Takes MEMORIES, REPLIES and EVENTS of the scope. Such an edge takes the place of the one that the pair
    had; its source is the newer, its rule `proposed_by_model`. A fact without a memory of its own, since it
    was over when its session ended, is unsure or said by another one, closes by the record of what came of
    the session. Both ends are active, the closed one was named in the request and has not been said again
    since, and neither what the checks refused nor a stranger's words close anything.
    """
    last = _last_replies(replies)
    closings = list(_closings(memories, last, _checked(events))) if last else []
    return in_place_of_pairs(edges, closings)


def in_place_of_pairs(edges: pa.Table, new_edges: Sequence[Row]) -> pa.Table:
    """Return EDGES with new ones in the place of those that their pairs had."""
    if not new_edges:
        return edges
    pairs = {frozenset((edge["source_id"], edge["target_id"])) for edge in new_edges}
    others = [
        edge for edge in edges.to_pylist() if frozenset((edge["source_id"], edge["target_id"])) not in pairs
    ]
    unique = {edge["edge_id"]: edge for edge in [*others, *new_edges]}
    return EDGES.of([edge for _, edge in sorted(unique.items())])


def _checked(events: pa.Table) -> set[tuple[str, str, str]]:
    """Return session, layer and text of the facts of models that are believed, a stranger's left out."""
    is_checked = pc.starts_with(events["layer"], LAYER_PREFIX)
    rows = events.filter(is_checked).select(CLOSER_COLUMNS).to_pylist()
    return {
        (row["session_id"], row["layer"], row["text"])
        for row in rows
        if (row["confidence"] > REFUSED_CONFIDENCE or is_spare(row)) and row["trust"] != TRUSTS[0]
    }


def _closings(
    memories: pa.Table, replies: Iterable[Row], checked: Collection[tuple[str, str, str]]
) -> Iterator[Row]:
    rows = {row["memory_id"]: row for row in memories.select(CLOSING_COLUMNS).to_pylist()}
    active = {name: row for name, row in rows.items() if row["status"] == "active"}
    for reply in replies:
        answer = parsed_answer(reply["text"])
        for fact in answer.facts if answer else ():
            if not fact.closes:
                continue
            newer = _memory_of(fact, reply, rows)
            if newer is None and (reply["session_id"], _layer(reply), statement_of(fact)) in checked:
                newer = _record_of(reply, active)
            # One that a person has put aside closes nothing more, nor does the record in its place.
            newer = newer and active.get(newer["memory_id"])
            for name in _closed(fact, reply["known"]):
                older = active.get(name)
                if newer and older and newer is not older and older["updated_at"] <= newer["updated_at"]:
                    yield closing_edge(newer, older)


def _last_replies(replies: pa.Table) -> list[Row]:
    """Return of each session and layer the reply that counts, where its request named anything."""
    last: dict[tuple[str, str], tuple[tuple[int, datetime], Row]] = {}
    sessions = replies.filter(pc.field("purpose") == SESSION_PURPOSE)
    for row in sessions.select(REPLY_COLUMNS).to_pylist():
        name, order = (row["session_id"], _layer(row)), (len(row["turn_ids"]), row["asked_at"])
        if name not in last or order > last[name][0]:
            last[name] = (order, row)
    return [row for _, (_, row) in sorted(last.items(), key=lambda item: item[0]) if row["known"]]


def _layer(reply: Row) -> str:
    return f"{LAYER_PREFIX}{reply['model']}@{reply['prompt']}"


def _memory_of(fact: WrittenFact, reply: Row, rows: Mapping[str, Row]) -> Row | None:
    """Return the memory that a fact of a reply makes; none if it was over, refused or is not shown."""
    if fact.state in OVER:
        return None
    _, memory_type = FACT_KINDS.get(fact.fact_type, FACT_KINDS["context"])
    statement = statement_of(fact)
    for scope in sorted({row["project_id"] for row in rows.values()}):
        row = rows.get(memory_id(scope, memory_type, statement))
        if row and row["trust"] != TRUSTS[0] and _is_seen(row, reply):
            return row
    return None


def _record_of(reply: Row, active: Mapping[str, Row]) -> Row | None:
    """Return the memory that records what came of the session of a reply; none if nothing did."""
    for _, row in sorted(active.items()):
        if row["memory_type"] == "outcome" and _is_seen(row, reply):
            return row
    return None


def _is_seen(row: Row, reply: Row) -> bool:
    """Return whether a memory rests on what a reply says."""
    return any(
        place["session_id"] == reply["session_id"] and place["layer"] == _layer(reply)
        for place in row["evidence"]
    )


def _closed(fact: WrittenFact, known: Iterable[str]) -> set[str]:
    """Return the ids that a fact closes, of those that its request named."""
    ids = {name[:ID_CHARS] for name in fact.closes if len(name) >= ID_CHARS}
    return {name for name in known if name[:ID_CHARS] in ids}


def closing_edge(newer: Row, older: Row) -> Row:
    """Return the EDGES row by which a language model says that `older` is no longer true, by `newer`."""
    source, target = newer["memory_id"], older["memory_id"]
    return {
        "edge_id": content_id(source, target, "contradicts"),
        "project_id": newer["project_id"],
        "source_id": source,
        "target_id": target,
        "edge_type": "contradicts",
        "strength": 1.0,
        "rule": PROPOSED_BY_MODEL,
    }


# -- What a language model says of pairs of memories: which of it is believed, kept and done.

SAME, NEWER, BOTH, UNSURE = "same", "newer holds", "both hold", "unsure"
VERDICTS = frozenset((SAME, NEWER, BOTH, UNSURE))
# Kept of a pair that was asked about and got no answer, or two: it is not asked about again.
UNANSWERED = ""
VERDICT_COLUMNS = ["purpose", "text", "asked_at", "request_id"]


def believed_verdicts(answer: str, pairs: Sequence[MemoryPair]) -> dict[str, str]:
    """
    Return the verdict on each pair that was asked about, by its name, of the JSON text of an answer.

    Believed is one of VERDICTS on a pair that was given, named once. All else is UNANSWERED: a pair with two
    answers, one that is missing, an id or a word that was not among those given.
    """
    given: dict[str, list[object]] = {}
    for item in _items(answer):
        if isinstance(item, dict) and isinstance(item.get("pair"), str):
            given.setdefault(item["pair"].strip(" []"), []).append(item.get("answer"))
    verdicts: dict[str, str] = {}
    for number, pair in enumerate(pairs, start=1):
        answers = given.get(f"p{number}", [])
        word = answers[0] if len(answers) == 1 else UNANSWERED
        verdicts[pair.name] = word if isinstance(word, str) and word in VERDICTS else UNANSWERED
    return verdicts


def _items(answer: str) -> list[object]:
    try:
        given = json.loads(answer)
    except (ValueError, RecursionError):
        return []
    items = given.get("pairs") if isinstance(given, dict) else None
    return items if isinstance(items, list) else []


def verdicts_row(asked: PairsRequest, reply: Reply, asked_at: datetime) -> Row:
    """
    Return the row of REPLIES for the answer about pairs.

    Its text holds what was believed, by the pairs' names and in words of ours: none of the model's.
    """
    verdicts = believed_verdicts(reply.text, asked.pairs)
    row = answer_row(asked.scope, asked.request, reply, _ids_in(asked), asked_at)
    return {**row, "text": _text_of([(pair.name, verdicts[pair.name]) for pair in asked.pairs])}


def repeated_row(row: Row, asked: PairsRequest) -> Row:
    """Return the row of REPLIES for a request that was answered for another scope, which paid for it."""
    return {**row, **FREE, "project_id": asked.scope, "known": _ids_in(asked)}


def _ids_in(asked: PairsRequest) -> list[str]:
    return [name for pair in asked.pairs for name in (pair.older.memory_id, pair.newer.memory_id)]


def _text_of(verdicts: Iterable[tuple[str, str]]) -> str:
    pairs = [{"pair": name, "answer": answer} for name, answer in verdicts]
    return json.dumps({"pairs": pairs}, separators=(",", ":"))


def kept_verdicts(replies: pa.Table) -> dict[str, str]:
    """Return the verdict on each pair that REPLIES hold one of, the newest, UNANSWERED included, by name."""
    verdicts: dict[str, str] = {}
    rows = replies.filter(pc.field("purpose") == LINKS_PURPOSE).select(VERDICT_COLUMNS).to_pylist()
    for row in sorted(rows, key=lambda row: (row["asked_at"], row["request_id"])):
        for name, answer in _kept(row):
            if answer in VERDICTS or name not in verdicts:
                verdicts[name] = answer
    return verdicts


def _kept(row: Row) -> Iterator[tuple[str, str]]:
    for item in _items(row["text"]):
        if isinstance(item, dict) and isinstance(item.get("pair"), str):
            answer = item.get("answer")
            yield item["pair"], answer if isinstance(answer, str) and answer in VERDICTS else UNANSWERED


def without_pairs(row: Row, gone: Collection[str]) -> Row | None:
    """Return a row of links without the pairs that name one of the memories `gone`; None: nothing is left."""
    known, items = row["known"], list(_kept(row))
    ends = [(known[2 * at], known[2 * at + 1]) for at in range(min(len(items), len(known) // 2))]
    left = [(pair, item) for pair, item in zip(ends, items, strict=False) if not set(pair) & set(gone)]
    if not left:
        return None
    return {
        **row,
        "known": [name for pair, _ in left for name in pair],
        "text": _text_of(item for _, item in left),
    }


def with_verdicts(edges: pa.Table, memories: pa.Table, verdicts: Mapping[str, str]) -> pa.Table:
    """
    Return EDGES of a scope as the verdicts on its pairs say, by name; takes its MEMORIES.

    `newer holds` is a `contradicts` from the newer to the older, proposed to a person. If both hold, or
    say the same, the rules' edge stays, but is `relates_to` if they saw a contradiction; `unsure` leaves
    that to a person. No verdict makes an edge if there is none, nor touches a person's.
    """
    if not verdicts or not edges.num_rows:
        return edges
    rows = {row["memory_id"]: row for row in memories.select(PAIR_COLUMNS).to_pylist()}
    changed = [_as_judged(edge, rows, verdicts) for edge in edges.to_pylist()]
    unique = {edge["edge_id"]: edge for edge in changed}
    return EDGES.of([edge for _, edge in sorted(unique.items())])


def _as_judged(edge: Row, rows: Mapping[str, Row], verdicts: Mapping[str, str]) -> Row:
    a, b = rows.get(edge["source_id"]), rows.get(edge["target_id"])
    if a is None or b is None or edge["edge_type"] in ("supersedes", "source_of"):
        return edge
    if edge["rule"] == PROPOSED_BY_MODEL:
        return edge
    pair = pair_of(a, b)
    verdict = verdicts.get(pair.name, UNANSWERED)
    is_at_odds = edge["edge_type"] == "contradicts"
    if verdict == NEWER:
        newer, older = rows[pair.newer.memory_id], rows[pair.older.memory_id]
        return {**closing_edge(newer, older), "project_id": edge["project_id"]}
    if verdict in (BOTH, SAME) and is_at_odds:
        return _related(edge, JUDGED_BY_MODEL)
    if verdict == UNSURE and not is_at_odds:
        return _related(edge, UNSURE_BY_MODEL)
    return edge


def _related(edge: Row, rule: str) -> Row:
    ends = sorted((edge["source_id"], edge["target_id"]))
    related = {"source_id": ends[0], "target_id": ends[1], "edge_type": "relates_to", "rule": rule}
    return {**edge, **related, "edge_id": content_id(*ends, "relates_to")}


def same_pairs(memories: pa.Table, edges: pa.Table, verdicts: Mapping[str, str]) -> Pairs:
    """Return the pairs of a scope that say the same, by a language model, by their ids; 1 for each."""
    if SAME not in verdicts.values():
        return {}
    rows = {row["memory_id"]: row for row in memories.select(PAIR_COLUMNS).to_pylist()}
    pairs = [
        pair_of(rows[edge["source_id"]], rows[edge["target_id"]])
        for edge in edges.select(["source_id", "target_id"]).to_pylist()
        if edge["source_id"] in rows and edge["target_id"] in rows
    ]
    return {pair.ids: 1.0 for pair in pairs if verdicts.get(pair.name) == SAME}
