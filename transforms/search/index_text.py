"""What search reads: index text, query words, passages of turns, the text that is embedded."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from operator import itemgetter

import pyarrow as pa

from cortex.hooks.evidence.text import (
    CODE_BLOCK,
    COMMAND_KIND,
    PEOPLE_KINDS,
    UNSPACED,
    heading,
    prose,
    query_words,
    row_text,
    search_text,
)
from cortex.transforms.extract.quotes import passage_trusts
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import PASSAGES
from cortex.transforms.search.commands import commands_run
from cortex.transforms.search.settings import search_settings

# Prose: what people and the assistant said to each other. Thinking is missing from most transcripts and
# repeats the text; tool calls and results are mostly code; summaries, recaps and programs repeat others.
PASSAGE_KINDS = (*PEOPLE_KINDS, "plan", "text")

# The hash that ends a project's id means nothing to a model and would be cut into several word pieces.
_ID_END = re.compile(r"-[0-9a-f]{8}$")
# Where a part may end, best first: paragraph, line, sentence, word.
_BREAKS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])"),
    re.compile(r"\s+"),
)


def query_terms(question: str, policy: Policy) -> str:
    """
    Return the words of `question` that the lexical index is asked for, each once, expanded as the index is.

    Question words and other words that carry no topic are dropped (query_words.csv). If nothing is left, all
    words stay.
    """
    return search_text(" ".join(query_words(question, search_settings(policy).dropped)))


def unspaced_runs(text: str) -> list[str]:
    """
    Return the runs of scripts that are written without spaces between words.

    >>> unspaced_runs("端口 8080 被占用")
    ['端口', '被占用']
    """
    return UNSPACED.findall(text)


def embedded_text(row: dict[str, object]) -> str:
    """
    Return what is embedded of a PASSAGES or MEMORIES row; empty if it is nothing but code (spec 6.1).

    A passage carries its date and speaker, which questions ask for ("what did I say in May"); a memory
    carries `[type] [project]` (spec 6.2).
    """
    is_code = row.get("memory_type") == "code" or row.get("kind") == COMMAND_KIND
    text = "" if is_code else prose(str(row["text"]))
    if not text:
        return ""
    if "memory_type" in row:
        project = _ID_END.sub("", str(row["project_id"]))
        return f"[{row['memory_type']}] [{project}] {text}"
    return f"{_heading(str(row['kind']), row.get('said_at'))}: {text}"


# The columns of PASSAGES and MEMORIES that the lexical index is made from.
INDEXED_COLUMNS = ("memory_type", "text", "subject", "summary", "files", "tags", "kind", "said_at")


def index_text(row: dict[str, object]) -> str:
    """Return what the lexical index holds of a PASSAGES or MEMORIES row, code included."""
    return row_text(row, "" if "memory_type" in row else _heading(str(row["kind"]), row.get("said_at")))


def _heading(kind: str, said_at: object) -> str:
    day = (said_at.year, said_at.month, said_at.day) if isinstance(said_at, datetime) else None
    return heading(kind, day)


_TURN_COLUMNS = ["project_id", "session_id", "turn_id", "kind", "text", "said_at", "file", "line", "trust"]


def passages_of(turns: pa.Table, policy: Policy) -> pa.Table:
    """
    Cut the prose of TURNS into passages, and add the commands that went well.

    Takes TURNS of whole files in any order; returns PASSAGES ordered by file and `seq`, none longer than
    `passage_chars` of ranking.csv. What the assistant repeats of a page is of the page's trust.
    A file's first passage has seq 0.
    """
    import pyarrow.compute as pc  # here: a question needs none of these functions

    limit = int(search_settings(policy).numbers["passage_chars"])
    prose = turns.filter(pc.is_in(turns["kind"], pa.array(PASSAGE_KINDS)))
    prose = prose.sort_by([("file", "ascending"), ("line", "ascending"), ("block", "ascending")])
    rows: list[dict[str, object]] = []
    seq = 0
    for turn in prose.select(_TURN_COLUMNS).to_pylist():
        if not rows or rows[-1]["file"] != turn["file"]:
            seq = 0
        for part, text in enumerate(identifier_parts(turn["text"], limit)):
            row = {**turn, "text": text, "seq": seq, "passage_id": content_id(turn["turn_id"], str(part))}
            rows.append({**row, "content_hash": content_id(embedded_text(row))})
            seq += 1
    for row, trust in zip(rows, passage_trusts(rows, turns), strict=True):
        row["trust"] = trust
    rows += _command_passages(turns, {str(row["file"]): row["seq"] for row in rows})
    rows.sort(key=lambda row: (str(row["file"]), row["seq"]))
    return PASSAGES.of(rows)


def _command_passages(turns: pa.Table, last_seq: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield the commands that ran as PASSAGES rows; `seq` follows no other: each is nobody's neighbour."""
    import pyarrow.compute as pc  # here: a question needs none of these functions

    calls = turns.filter(pc.is_in(turns["kind"], pa.array(["tool_call", "tool_result"])))
    calls = calls.sort_by([("file", "ascending"), ("line", "ascending"), ("block", "ascending")])
    columns = [*_TURN_COLUMNS, "block", "tool_name", "tool_use_id", "tool_status", "tool_input"]
    for file, group in groupby(calls.select(columns).to_pylist(), key=itemgetter("file")):
        seq = int(str(last_seq.get(file, -1)))
        for run in commands_run(list(group)):
            seq += 2
            row = {name: run[name] for name in _TURN_COLUMNS} | {"seq": seq}
            row |= {"text": run["text"], "passage_id": content_id(run["turn_id"], "0")}
            yield {**row, "content_hash": content_id(embedded_text(row))}


def identifier_parts(text: str, limit_chars: int) -> list[str]:
    """
    Return `text` cut at paragraphs, else lines, sentences, words, into parts of at most `limit_chars`.

    Code fences are kept whole where they fit and are closed and opened again where they are cut, so that
    every part says by itself what of it is code. Neighbouring pieces share a part as long as they fit.
    """
    pieces: list[str] = []
    at = 0
    for fence in CODE_BLOCK.finditer(text):
        pieces += _cut(text[at : fence.start()], limit_chars)
        pieces += _cut_fence(fence.group().strip(), limit_chars)
        at = fence.end()
    return _packed([*pieces, *_cut(text[at:], limit_chars)], limit_chars, "\n\n")


def _cut(text: str, limit_chars: int, level: int = 0) -> list[str]:
    text = text.strip()
    if len(text) <= limit_chars:
        return [text] if text else []
    if level == len(_BREAKS):
        return [text[at : at + limit_chars] for at in range(0, len(text), limit_chars)]
    smaller = [piece for part in _BREAKS[level].split(text) for piece in _cut(part, limit_chars, level + 1)]
    return _packed(smaller, limit_chars, ("\n\n", "\n", " ", " ")[level])


def _cut_fence(fence: str, limit_chars: int) -> list[str]:
    if len(fence) <= limit_chars:
        return [fence]
    body = fence.split("\n", 1)[-1].removesuffix("```").removesuffix("~~~")
    return [f"```\n{piece}\n```" for piece in _cut(body, limit_chars - len("```\n\n```"), 1)]


def _packed(pieces: Iterable[str], limit_chars: int, between: str) -> list[str]:
    packed: list[str] = []
    for piece in pieces:
        if packed and len(packed[-1]) + len(between) + len(piece) <= limit_chars:
            packed[-1] += between + piece
        else:
            packed.append(piece)
    return packed
