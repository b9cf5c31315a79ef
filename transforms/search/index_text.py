"""What search reads: index text, query words, passages of turns, the text that is embedded."""

import re
from collections.abc import Iterable
from datetime import datetime

import pyarrow as pa

from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import PASSAGES

# Prose: what people and the assistant said to each other. Thinking is missing from most transcripts and
# repeats the text; tool calls and results are mostly code; summaries, recaps and programs repeat others.
PASSAGE_KINDS = ("prompt", "command", "rejection", "choice", "plan", "text")
PEOPLE_KINDS = ("prompt", "command", "rejection", "choice")

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[A-Za-z0-9]+(?:[_.-]+[A-Za-z0-9]+)*")
# Scripts written without spaces, or (Hangul) with endings glued on: Han, kana, Hangul syllables.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3]+")
_QUERY_WORD = re.compile(r"[^\W_]+(?:['’._-][^\W_]+)*")
_INDEX_WORD = re.compile(r"[^\W_]+")
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[^\n]*$\n?|^(?:```|~~~).*\Z", re.MULTILINE | re.DOTALL)
# The hash that ends a project's id means nothing to a model and would be cut into several word pieces.
_ID_END = re.compile(r"-[0-9a-f]{8}$")
# Where a part may end, best first: paragraph, line, sentence, word.
_BREAKS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])"),
    re.compile(r"\s+"),
)


def search_text(text: str) -> str:
    """
    Return what the lexical index holds of `text`: its words, identifiers and unspaced scripts taken apart.

    The index itself splits at signs, lower-cases and stems. Added here are what it cannot see: the parts of
    camelCase, the whole of snake_case, dotted and hyphenated names as one word, and pairs of characters for
    scripts without spaces.

    >>> search_text("call loadConfig in app_state.py")
    'call loadConfig in app_state.py load Config appstatepy'
    """
    # A space around unspaced scripts: in "py.typed는" the index would see no "typed".
    return " ".join([_UNSPACED.sub(r" \g<0> ", text), *_additions(text)])


def _additions(text: str) -> list[str]:
    added: dict[str, None] = {}
    for word in _WORD.findall(text):
        parts = _CAMEL.sub(" ", word)
        if parts != word:
            added.update(dict.fromkeys(re.split(r"[ _.-]+", parts)))
        whole = re.sub(r"[_.-]+", "", word)
        if whole != word:
            added[whole] = None
    for run in _UNSPACED.findall(text):
        added.update(dict.fromkeys(run[at : at + 2] for at in range(len(run) - 1)))
    return list(added)


def query_terms(question: str, policy: Policy) -> str:
    """
    Return the words of `question` that the lexical index is asked for, each once, expanded as the index is.

    Question words and other words that carry no topic are dropped (query_words.csv): keeping them costs 7
    points of recall@5 by turn. If nothing is left, all words stay.
    """
    return search_text(" ".join(query_words(question, policy)))


def query_words(question: str, policy: Policy) -> list[str]:
    """Return the words of `question` that carry a topic, each once; all of them where none does."""
    dropped = set(policy.tables["query_words"]["word"].to_pylist())
    words = list(dict.fromkeys(_QUERY_WORD.findall(question)))
    return [word for word in words if word.lower().replace("’", "'") not in dropped] or words


def index_words(text: str) -> list[str]:
    """
    Return the words of `text` as the index cuts it, in lower case; scripts without spaces in pairs.

    >>> index_words("py.typed는 端口")
    ['py', 'typed', '는', '端口']
    """
    words: list[str] = []
    for word in _INDEX_WORD.findall(_UNSPACED.sub(r" \g<0> ", text)):
        is_run = len(word) > 2 and _UNSPACED.fullmatch(word) is not None
        words += [word[at : at + 2] for at in range(len(word) - 1)] if is_run else [word.lower()]
    return words


def unspaced_runs(text: str) -> list[str]:
    """
    Return the runs of scripts that are written without spaces between words.

    >>> unspaced_runs("端口 8080 被占用")
    ['端口', '被占用']
    """
    return _UNSPACED.findall(text)


def prose(text: str) -> str:
    """Return `text` without fenced code blocks: raw code is never embedded (spec 6.1)."""
    return _FENCE.sub("", text).strip()


def embedded_text(row: dict[str, object]) -> str:
    """
    Return what is embedded of a PASSAGES or MEMORIES row; empty if it is nothing but code (spec 6.1).

    A passage carries its date and speaker, which questions ask for ("what did I say in May"); a memory
    carries `[type] [project]` (spec 6.2).
    """
    text = "" if row.get("memory_type") == "code" else prose(str(row["text"]))
    if not text:
        return ""
    if "memory_type" in row:
        project = _ID_END.sub("", str(row["project_id"]))
        return f"[{row['memory_type']}] [{project}] {text}"
    return f"{_heading(str(row['kind']), row.get('said_at'))}: {text}"


# The columns of PASSAGES and MEMORIES that the lexical index is made from.
INDEXED_COLUMNS = ("memory_type", "text", "files", "tags", "kind", "said_at")


def index_text(row: dict[str, object]) -> str:
    """Return what the lexical index holds of a PASSAGES or MEMORIES row, code included."""
    if "memory_type" in row:
        files = row.get("files") or []
        tags = row.get("tags") or []
        assert isinstance(files, list) and isinstance(tags, list)
        return search_text(" ".join([str(row["text"]), *files, *tags]))
    return search_text(f"{_heading(str(row['kind']), row.get('said_at'))}: {row['text']}")


def _heading(kind: str, said_at: object) -> str:
    speaker = "user" if kind in PEOPLE_KINDS else "assistant"
    if not isinstance(said_at, datetime):
        return speaker
    return f"{said_at.day} {said_at:%B %Y} {speaker}"


def passages_of(turns: pa.Table, policy: Policy) -> pa.Table:
    """
    Cut the prose of TURNS into passages.

    Takes TURNS of whole files in any order; returns PASSAGES ordered by file and `seq`, none longer than
    `passage_chars` of ranking.csv. A file's first passage has seq 0.
    """
    import pyarrow.compute as pc  # here: a question needs none of these functions

    limit = int(setting(policy, "passage_chars"))
    prose = turns.filter(pc.is_in(turns["kind"], pa.array(PASSAGE_KINDS)))
    prose = prose.sort_by([("file", "ascending"), ("line", "ascending"), ("block", "ascending")])
    columns = ["project_id", "session_id", "turn_id", "kind", "text", "said_at", "file", "line", "trust"]
    rows: list[dict[str, object]] = []
    seq = 0
    for turn in prose.select(columns).to_pylist():
        if not rows or rows[-1]["file"] != turn["file"]:
            seq = 0
        for part, text in enumerate(identifier_parts(turn["text"], limit)):
            row = {**turn, "text": text, "seq": seq, "passage_id": content_id(turn["turn_id"], str(part))}
            rows.append({**row, "content_hash": content_id(embedded_text(row))})
            seq += 1
    return PASSAGES.of(rows)


def identifier_parts(text: str, limit_chars: int) -> list[str]:
    """
    Return `text` cut at paragraphs, else lines, sentences, words, into parts of at most `limit_chars`.

    Code fences are kept whole where they fit and are closed and opened again where they are cut, so that
    every part says by itself what of it is code. Neighbouring pieces share a part as long as they fit.
    """
    pieces: list[str] = []
    at = 0
    for fence in _FENCE.finditer(text):
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


def setting(policy: Policy, name: str) -> float:
    """Return a number of ranking.csv; its unit and reason stand there. Raises KeyError."""
    return float(policy.rows["ranking"][(name,)]["value"] or 0.0)
