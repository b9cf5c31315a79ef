"""Where sentences end, and texts cut there: one function, and a rule for each kind of text."""

import re
from dataclasses import dataclass
from functools import lru_cache

from cortex.hooks.plain import closed
from cortex.transforms.words.scripts import HAN, HANGUL, KANA


@dataclass(frozen=True, eq=False)  # each of them is itself alone: hashing patterns took longer than cutting
class SentenceRule:
    """What parts two sentences: a match of `end`, unless `goes_on` matches what stands before it."""

    end: re.Pattern[str]
    goes_on: re.Pattern[str] | None = None
    keeps_closing: bool = True  # quotation marks and brackets between the full stop and the space


# A full-width stop ends a sentence without a space, but not inside a quotation that goes on.
_WIDE_END = r"|(?<=[。！？])\s*(?=[^\s。！？」』）”’)と])|(?<=[。！？][」』）”])\s*(?=[^\s。！？」』）と])"

# One line of a brief: a full stop, then what a sentence begins with; not after "e.g.".
LINE = SentenceRule(
    re.compile(
        r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<=[.!?])[\"'”’)`]*\s+(?=[\"'“‘(`]*[^\Wa-z_]|→)" + _WIDE_END
    ),
)
# What is said in a session: only before a space and a capital, digit, quote or backtick.
PROSE = SentenceRule(
    re.compile(
        rf"(?<=[.!?])[\"'”’)`]*\s+(?=[\"'“‘(`*¿¡«„]*[A-ZÀ-ÖØ-ÞĆČĐĞİŁŚŞŠŹŻŽА-Я0-9{HANGUL}{HAN}{KANA}`/_.-])"
        r"|(?<=다\.)\s+|(?<=[.!?]\*\*)\s+" + _WIDE_END
    ),
    re.compile(
        r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|al|z\. ?b|d\. ?h|bzw|ca|usw|evtl|ggf|inkl|nr|p\. ?ej|p\. ?ex"
        r"|núm|nº|pág|sra?|örn|vb|bkz)\.|\b[A-Z]\.|^\d+\.)$",
        re.IGNORECASE,
    ),
    keeps_closing=False,
)
# A memory's text, whose parts are compared or taken out one by one.
MEMORY = SentenceRule(re.compile(r"(?<=[.!?。])\s+|\n+" + _WIDE_END))
# The same where what stands between semicolons is a statement too.
STATEMENT = SentenceRule(re.compile(r"(?<=[.!?;])\s+"))

_TO_LAST_SIGN = re.compile(rf".*[{HAN}{KANA}、。，；：！？）」』]", re.DOTALL)
# In Japanese and Chinese a particle asks, with or without the mark.
_QUESTION_END = re.compile(
    r"(?:[?？؟]|(?:です|ます|でしょう|ません)か。?|[吗嗎呢]。?)[\s\"'”’)`*」』）]{0,4}$"
)

_QUESTION_END_CHARS = 24

# Longer texts are rare, and are cut each time.
_REMEMBERED_CHARS = 2_000

# What a sentence goes on after is short; looking at all before each stop takes minutes for 6,000 of them.
_LOOK_BACK_CHARS = 16


def sentences(text: str, rule: SentenceRule) -> list[str]:
    """
    Return the sentences of one paragraph, none if it is empty.

    >>> sentences("Keep UTC, e.g. for Saltmarsh. (Clocks differ.) So be it", LINE)
    ['Keep UTC, e.g. for Saltmarsh.', '(Clocks differ.)', 'So be it']
    >>> sentences("It works, e.g. here. Done in main.py.", PROSE)
    ['It works, e.g. here.', 'Done in main.py.']
    """
    # In one session most paragraphs are asked for three times and more, by what looks at them in turn.
    return list(_remembered(text, rule) if len(text) <= _REMEMBERED_CHARS else _cut(text, rule))


@lru_cache(maxsize=4_096)
def _remembered(text: str, rule: SentenceRule) -> tuple[str, ...]:
    return tuple(_cut(text, rule))


def _cut(text: str, rule: SentenceRule) -> list[str]:
    parts: list[str] = []
    start = 0
    for end in rule.end.finditer(text):
        before = text[start : end.start()]
        if rule.goes_on and rule.goes_on.search(before[-_LOOK_BACK_CHARS:]):
            continue
        whole = text[start : end.end()].strip()
        parts.append(whole if rule.keeps_closing else before.strip() or whole)
        start = end.end()
    return [part for part in [*parts, text[start:].strip()] if part]


def first_sentences(line: str, *, count: int, chars: int) -> str:
    """
    Return the first sentences of `line`: at most `count`, and as many as stay within `chars` characters.

    A first sentence longer than that is cut between words and ends in an ellipsis.

    >>> first_sentences("Keep UTC. Stations differ. So do clocks.", count=2, chars=80)
    'Keep UTC. Stations differ.'
    >>> first_sentences("Stations report in local time until the firmware of 2025", count=1, chars=30)
    'Stations report in local time…'
    """
    kept = ""
    for sentence in sentences(line, LINE)[:count]:
        if len(joined := f"{kept} {sentence}".lstrip()) > chars:
            break
        kept = joined
    return closed(kept or _to_last_word(line[:chars]).rstrip(" ;,:、，；：") + "…")


def shortened(text: str, limit: int) -> str:
    """
    Return `text` cut at a word to at most `limit` characters.

    >>> shortened("one two three", 9)
    'one two…'
    """
    if len(text) <= limit:
        return text
    return _to_last_word(text[: limit - 1]).rstrip(" ,;:、，；：") + "…"


def _to_last_word(head: str) -> str:
    """Return a text cut off somewhere without its last word; signs that no space parts are words each."""
    before, _, last = head.rpartition(" ")
    signs = _TO_LAST_SIGN.match(last)
    if signs:
        return f"{before} {signs[0]}" if before else signs[0]
    return before or head


def is_question(sentence: str) -> bool:
    """
    Return whether a sentence ends in a question mark of any script, or in the particle that asks.

    >>> is_question("Soll es so sein? "), is_question("これでいいですか。"), is_question("Keep it.")
    (True, True, False)
    """
    return _QUESTION_END.search(sentence[-_QUESTION_END_CHARS:]) is not None


def excerpt(text: str, limit: int = 110) -> str:
    """
    Return `text` on one line, cut at a word to at most `limit` characters.

    >>> excerpt("one\\n  two three", 9)
    'one two…'
    """
    return shortened(" ".join(text.split()), limit)
