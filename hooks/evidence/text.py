"""Splits text into words as the search index counts them, sentences, and the names of a subject."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections import namedtuple
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    # Word, number of the text, how often it stands there.
    WordCount = tuple[str, int, int]

from .lazy import lazy

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005"
KANA = "\u3041-\u309f\u30a0-\u30ff\uff66-\uff9f"
HANGUL = "\uac00-\ud7a3"
# A sign of Japanese or Korean says as much as two letters, one of Chinese as nearly three: so long are the
# same sentences in tests/languages.py.
SIGN_LETTERS = 2
HAN_EXTRA_LETTERS = 0.75

# SQLite's own tokenizer: lower case, without accents, without English endings; in memory, and it keeps no
# text.
_TEXTS = (
    "create virtual table cut using fts5(words, content='', tokenize='porter unicode61 remove_diacritics 2')"
)
_WORDS = "create virtual table instances using fts5vocab(cut, instance)"
_COUNTS = "select term, doc, count(*) from instances group by term, doc order by term, doc"
# A longer one is a hash or a picture: nobody asks for it.
MAX_WORD_LENGTH = 64

_CAMEL = lazy(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME = re.compile(r"[A-Za-z0-9]+(?:[_.-]+[A-Za-z0-9]+)*")
_SIGNS = re.compile(r"[_.-]+")
# Scripts written without spaces, or (Hangul) with endings glued on: Han, kana, Hangul syllables.
UNSPACED = lazy(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3]+")
_QUERY_WORD = re.compile(r"[^\W_]+(?:['’._-][^\W_]+)*")
_INDEX_WORD = re.compile(r"[^\W_]+")
_FACT_WORD = lazy(r"[\w][\w./:#@+-]*")
_PLAIN_WORD = re.compile(r"\w+")
CODE_BLOCK = lazy(r"^(?:```|~~~).*?^(?:```|~~~)[^\n]*$\n?|^(?:```|~~~).*\Z", re.MULTILINE | re.DOTALL)

# Prose: what people and the assistant said to each other.
# A command that ran, among the passages.
COMMAND_KIND = "tool_call"
PEOPLE_KINDS = ("prompt", "command", "rejection", "choice")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


class Tokenizer:
    """Tokenizes texts as the index does. Reuse one: creating it takes a millisecond."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:", isolation_level=None)
        self._database.execute(_TEXTS)
        self._database.execute(_WORDS)

    def count(self, texts: Iterable[str]) -> list[WordCount]:
        """Return how often each word stands in each text, by word, then by the text's number from 0."""
        self._database.execute("begin")
        self._database.executemany("insert into cut(rowid, words) values (?, ?)", enumerate(texts))
        counts = [row for row in self._database.execute(_COUNTS) if len(row[0]) <= MAX_WORD_LENGTH]
        self._database.execute("rollback")
        return counts

    def stems(self, words: Sequence[str]) -> list[str]:
        """
        Return each word as the index counts it; one that it counts as none or as several as it is.

        >>> Tokenizer().stems(["tables", "kept", "端口"])
        ['tabl', 'kept', '端口']
        """
        stems: dict[int, list[str]] = {}
        for stem, at, _ in self.count(words) if words else ():
            stems.setdefault(at, []).append(stem)
        return [stems[at][0] if len(stems.get(at, ())) == 1 else word for at, word in enumerate(words)]

    def __del__(self) -> None:
        self._database.close()


def count_words(texts: Sequence[str]) -> list[WordCount]:
    """Return how often each word stands in each text, by word, then by the text's number from 0."""
    return Tokenizer().count(texts) if texts else []


def search_text(text: str) -> str:
    """
    Return what the index counts of `text`: its words, identifiers and unspaced scripts taken apart.

    The index itself splits at signs, lower-cases and stems. Added here are what it cannot see: the parts of
    camelCase, the whole of snake_case, dotted and hyphenated names as one word, and pairs of characters for
    scripts without spaces.

    >>> search_text("call loadConfig in app_state.py")
    'call loadConfig in app_state.py load Config appstatepy'
    """
    added: dict[str, None] = {}
    for word in _NAME.findall(text):
        if word.islower() and word.isalnum():  # most words: nothing to add, and three searches saved
            continue
        parts = _CAMEL.sub(" ", word)
        if parts != word:
            added.update(dict.fromkeys(re.split(r"[ _.-]+", parts)))
        whole = _SIGNS.sub("", word)
        if whole != word:
            added[whole] = None
    if text.isascii():
        return " ".join([text, *added])
    for run in UNSPACED.findall(text):
        added.update(dict.fromkeys(run[at : at + 2] for at in range(len(run) - 1)))
    # A space around unspaced scripts: in "py.typed는" the index would see no "typed".
    return " ".join([UNSPACED.sub(r" \g<0> ", text), *added])


def row_text(row: dict[str, object], spoken: str) -> str:
    """Return what the index counts of a row of memories or passages; `spoken` is its date and speaker."""
    if "memory_type" in row:
        files, tags = row.get("files") or (), row.get("tags") or ()
        assert isinstance(files, (list, tuple)) and isinstance(tags, (list, tuple))
        short = [str(row[name]) for name in ("subject", "summary") if row.get(name)]
        return search_text(" ".join([str(row["text"]), *short, *files, *tags]))
    return search_text(f"{spoken}: {row['text']}")


def heading(kind: str, day: tuple[int, int, int] | None) -> str:
    """Return the date (year, month, day) and the speaker of a passage, which questions ask for."""
    speaker = "user" if kind in PEOPLE_KINDS else "program" if kind == "program" else "assistant"
    return speaker if day is None else f"{day[2]} {_MONTHS[day[1] - 1]} {day[0]} {speaker}"


def query_words(question: str, dropped: AbstractSet[str]) -> list[str]:
    """
    Return the words of `question` that carry a topic, each once; all of them if none does.

    Question words and others that carry no topic are `dropped`: keeping them costs 7 points of recall@5.
    """
    words = list(dict.fromkeys(_QUERY_WORD.findall(question)))
    return [word for word in words if word.lower().replace("’", "'") not in dropped] or words


def index_words(text: str) -> list[str]:
    """
    Return the words of `text` as the index tokenizes it, in lower case; scripts without spaces in pairs.

    >>> index_words("py.typed는 端口")
    ['py', 'typed', '는', '端口']
    """
    return list(_index_words(text))


@lru_cache(maxsize=1_024)
def _index_words(text: str) -> tuple[str, ...]:
    if text.isascii():
        return tuple(_INDEX_WORD.findall(text.lower()))
    words: list[str] = []
    for word in _INDEX_WORD.findall(UNSPACED.sub(r" \g<0> ", text)):
        is_run = len(word) > 2 and UNSPACED.fullmatch(word) is not None
        words += [word[at : at + 2] for at in range(len(word) - 1)] if is_run else [word.lower()]
    return tuple(words)


def prose(text: str) -> str:
    """Return `text` without fenced code blocks."""
    return CODE_BLOCK.sub("", text).strip() if "```" in text or "~~~" in text else text.strip()


def normalised(fact: str) -> str:
    """
    Return the words of a fact, lower case, one space between, without punctuation around them.

    >>> normalised("Use  **pnpm**, not npm!")
    'use pnpm not npm'
    """
    words = _FACT_WORD.findall(unicodedata.normalize("NFKC", fact).casefold())
    return " ".join(word.rstrip("./:-") for word in words)


def latin_length(text: str) -> int:
    """
    Return how long a text is in Latin letters: a sign of Chinese, Japanese or Korean says as much as several.

    >>> latin_length("Use pnpm."), latin_length("用 pnpm")
    (9, 7)
    """
    if text.isascii():
        return len(text)
    signs = len(re.findall(f"[{HAN}{KANA}{HANGUL}]", text))
    if not signs:
        return len(text)
    han = len(re.findall(f"[{HAN}]", text))
    return len(text) + (SIGN_LETTERS - 1) * signs + int(HAN_EXTRA_LETTERS * han)


def words_in(text: str) -> list[str]:
    """Return the words of `text`, in lower case, in their order."""
    return _PLAIN_WORD.findall(text.casefold())


@lru_cache(maxsize=2_048)
def word_set(text: str) -> frozenset[str]:
    """Return the words of `text`; kept, since what is shown is compared with all that stands above it."""
    return frozenset(words_in(text))


def share_of_all(words: AbstractSet[str], others: AbstractSet[str]) -> float:
    """
    Return the share that two texts have in common of all words in either, 0 to 1 (Jaccard).

    >>> share_of_all({"keep", "raw", "payloads"}, {"keep", "the", "raw", "payloads"})
    0.75
    """
    common = len(words & others)
    return common / (len(words) + len(others) - common) if common else 0.0


def share_of_fewer(words: AbstractSet[str], others: AbstractSet[str]) -> float:
    """
    Return the share of the shorter text's words that the other has, 0 to 1; 0 without words.

    >>> share_of_fewer({"keep", "raw", "payloads"}, {"keep", "the", "raw", "payloads"})
    1.0
    """
    return len(words & others) / min(len(words), len(others)) if words and others else 0.0


class SentenceRule:
    """What parts two sentences: a match of `end`, unless `goes_on` matches what stands before it."""

    def __init__(self, end: str, goes_on: str = "", *, keeps_closing: bool = True) -> None:
        """
        Take patterns, compiled at their first use: together they take 6 ms.

        `keeps_closing` keeps quotation marks and brackets between the full stop and the space.
        """
        self.end, self.goes_on, self.keeps_closing = end, goes_on, keeps_closing
        self._compiled: tuple[re.Pattern[str], re.Pattern[str] | None] | None = None

    @property
    def patterns(self) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
        """What ends a sentence, and what goes on after a full stop."""
        if self._compiled is None:
            goes_on = re.compile(self.goes_on, re.IGNORECASE) if self.goes_on else None
            self._compiled = re.compile(self.end), goes_on
        return self._compiled


# A full-width stop ends a sentence without a space, but not inside a quotation that goes on.
_WIDE_END = r"|(?<=[。！？])\s*(?=[^\s。！？」』）”’)と])|(?<=[。！？][」』）”])\s*(?=[^\s。！？」』）と])"
# One line of a brief: a full stop, then what a sentence begins with; not after "e.g.".
LINE = SentenceRule(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<=[.!?])[\"'”’)`]*\s+(?=[\"'“‘(`]*[^\Wa-z_]|→)" + _WIDE_END,
)
# What is said in a session: only before a space and a capital, digit, quote or backtick.
PROSE = SentenceRule(
    rf"(?<=[.!?])[\"'”’)`]*\s+(?=[\"'“‘(`*¿¡«„]*[A-ZÀ-ÖØ-ÞĆČĐĞİŁŚŞŠŹŻŽА-Я0-9{HANGUL}{HAN}{KANA}`/_.-])"
    r"|(?<=다\.)\s+|(?<=[.!?]\*\*)\s+" + _WIDE_END,
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|al|z\. ?b|d\. ?h|bzw|ca|usw|evtl|ggf|inkl|nr|p\. ?ej|p\. ?ex"
    r"|núm|nº|pág|sra?|örn|vb|bkz)\.|\b[A-Z]\.|^\d+\.)$",
    keeps_closing=False,
)
# A memory's text, whose parts are compared or taken out one by one.
MEMORY = SentenceRule(r"(?<=[.!?。])\s+|\n+" + _WIDE_END)

_TO_LAST_SIGN = lazy(rf".*[{HAN}{KANA}、。，；：！？）」』]", re.DOTALL)
# Longer texts are rare, and are cut each time.
_REMEMBERED_CHARS = 2_000
# What a sentence goes on after is short; looking at all before each stop takes minutes for 6,000 of them.
_LOOK_BACK_CHARS = 16


def sentences(text: str, rule: SentenceRule) -> list[str]:
    """
    Return the sentences of one paragraph, none if it is empty.

    >>> sentences("It works, e.g. here. Done in main.py.", PROSE)
    ['It works, e.g. here.', 'Done in main.py.']
    """
    # In one session most paragraphs are asked for three times and more, by what looks at them in turn.
    return list(_remembered(text, rule) if len(text) <= _REMEMBERED_CHARS else _cut(text, rule))


@lru_cache(maxsize=4_096)
def _remembered(text: str, rule: SentenceRule) -> tuple[str, ...]:
    return tuple(_cut(text, rule))


def _cut(text: str, rule: SentenceRule) -> list[str]:
    ends, goes_on = rule.patterns
    parts: list[str] = []
    start = 0
    for end in ends.finditer(text):
        before = text[start : end.start()]
        if goes_on and goes_on.search(before[-_LOOK_BACK_CHARS:]):
            continue
        whole = text[start : end.end()].strip()
        parts.append(whole if rule.keeps_closing else before.strip() or whole)
        start = end.end()
    return [part for part in [*parts, text[start:].strip()] if part]


def shortened(text: str, limit: int) -> str:
    """
    Return `text` cut at a word to at most `limit` characters.

    >>> shortened("one two three", 9)
    'one two…'
    """
    if len(text) <= limit:
        return text
    return to_last_word(text[: limit - 1]).rstrip(" ,;:、，；：") + "…"


def to_last_word(head: str) -> str:
    """Return a text cut off somewhere without its last word; signs that no space parts are words each."""
    before, _, last = head.rpartition(" ")
    signs = _TO_LAST_SIGN.match(last)
    if signs:
        return f"{before} {signs[0]}" if before else signs[0]
    return before or head


# A name of code, a path, a number or a quoted string: two facts whose names all differ are about two things.
_CODE = r"`[^`]+`|[\w./-]*(?:[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|[\w]_[\w]|[\w]\.[\w]|\w/\w)[\w./-]*"
_CODE_NAME = lazy(_CODE)
_NAME_OR_NUMBER = lazy(_CODE + r"|\d[\d.,]*")
_LONG_WORD = lazy(r"[^\W\d_]{3,}")
_WIDE = lazy("[\u3041-\u30ff\u3400-\u9fff]{2,}")
_TRIM = "`.,;:()/- "


def names_in(text: str) -> frozenset[str]:
    """
    Return the names of code, paths, quoted strings and numbers in a text, in lower case.

    >>> sorted(names_in("Set `PORT` to 8080 in app/main.py."))
    ['8080', 'app/main.py', 'port']
    """
    return frozenset(name.strip(_TRIM).casefold() for name in _NAME_OR_NUMBER.findall(text)) - {""}


class Subject(namedtuple("Subject", ("names", "words"))):
    """The names and the telling words of a statement."""

    names: frozenset[str]
    words: frozenset[str]


def subject_in(text: str, stop_words: Iterable[str] = ()) -> Subject:
    """
    Return what a statement is about, without `stop_words`; of scripts without spaces, pairs of characters.

    >>> sorted(subject_in("Keep `raw.json` for ninety days", ["for"]).words)
    ['days', 'keep', 'ninety', 'raw.json']
    """
    names = frozenset(name.strip(_TRIM).casefold() for name in _CODE_NAME.findall(text)) - {""}
    words = {word.casefold() for word in _LONG_WORD.findall(_CODE_NAME.sub(" ", text))}
    pairs = {run[at : at + 2] for run in _WIDE.findall(text) for at in range(len(run) - 1)}
    plain = {word for word in words if not _WIDE.fullmatch(word)}
    return Subject(names, frozenset(plain - set(stop_words) | pairs | names))


def is_same_subject(subject: Subject, other: Subject, *, share: float, least_words: int) -> bool:
    """
    Return whether two statements are about one thing: they share most of the words of the shorter one.

    Where both name something, they must share half of the names of the one that has fewer.
    """
    if subject.names and other.names and share_of_fewer(subject.names, other.names) < 1 / 2:
        return False
    common = len(subject.words & other.words)
    return common >= least_words and share_of_fewer(subject.words, other.words) >= share
