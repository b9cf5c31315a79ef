"""What a language model says of pairs of memories: which of it is believed, kept and done."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.identity import content_id
from cortex.transforms.memory.neighbours import Pairs
from cortex.transforms.schemas import (
    EDGES,
    JUDGED_BY_MODEL,
    LINKS_PURPOSE,
    PROPOSED_BY_MODEL,
    UNSURE_BY_MODEL,
    Row,
)
from cortex.transforms.writer.closing_edges import closing_edge
from cortex.transforms.writer.pairs import (
    PAIR_COLUMNS,
    MemoryPair,
    PairsRequest,
    pair_of,
)
from cortex.transforms.writer.request import Reply

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
    request, verdicts = asked.request, believed_verdicts(reply.text, asked.pairs)
    return {
        "request_id": request.request_id,
        "project_id": asked.scope,
        "session_id": "",
        "turns_hash": "",
        "turn_ids": [],
        "turn_count": 0,
        "known": [name for pair in asked.pairs for name in (pair.older.memory_id, pair.newer.memory_id)],
        "purpose": request.purpose,
        "model": request.model,
        "provider": reply.provider,
        "prompt": request.prompt,
        "text": _text_of([(pair.name, verdicts[pair.name]) for pair in asked.pairs]),
        "stop_reason": reply.stop_reason,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "usd": reply.usd,
        "asked_at": asked_at,
    }


def repeated_row(row: Row, asked: PairsRequest) -> Row:
    """Return the row of REPLIES for a request that was answered for another scope, which paid for it."""
    names = [name for pair in asked.pairs for name in (pair.older.memory_id, pair.newer.memory_id)]
    free = {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}
    return {**row, **free, "project_id": asked.scope, "known": names}


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

    `newer holds` is a `contradicts` from the newer to the older, proposed to a person. Where both hold, or
    say the same, the rules' edge stays, but is `relates_to` if they saw a contradiction; `unsure` leaves
    that to a person. No verdict makes an edge where there is none, nor touches a person's.
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
