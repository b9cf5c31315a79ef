"""Words and sentences in every script: where they end, texts cut there, what two texts have in common."""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache

from cortex.hooks.evidence.text import (
    HAN,
    HANGUL,
    KANA,
    LINE,
    MEMORY,
    PROSE,
    SentenceRule,
    latin_length,
    sentences,
    share_of_all,
    share_of_fewer,
    shortened,
    to_last_word,
    words_in,
)
from cortex.hooks.prose.plain import closed

__all__ = [
    "LINE",
    "MEMORY",
    "PROSE",
    "latin_length",
    "sentences",
    "share_of_all",
    "share_of_fewer",
    "shortened",
    "words_in",
]


# -- Words and lengths in every script: what is a word if no space parts them, how much a text says.

_ASCII_WORD = re.compile(r"[A-Za-z][\w-]{3,}")  # three times faster than the general one
LETTERS_OF_A_WORD = 4
REMEMBERED_CHARS = 600
SIGNS_OF_A_WORD = 2


# Compiled at their first use, together 16 ms: a question in one script needs few of them.
@cache
def _run() -> re.Pattern[str]:
    # Letters of one script with what may stand inside a name; a run of signs; a word of Hangul.
    return re.compile(
        rf"(?P<signs>[{HAN}{KANA}]+)|(?P<hangul>[{HANGUL}]+)|[^\W\d_{HAN}{KANA}{HANGUL}][^\W{HAN}{KANA}{HANGUL}]*"
        rf"(?:-+[^\W{HAN}{KANA}{HANGUL}]+)*"
    )


@cache
def _inflection() -> re.Pattern[str]:
    return re.compile("^[\u3041-\u309f]+$")


@cache
def _particle() -> re.Pattern[str]:
    # Particles at the end of a Korean word, and the endings of its most common verbs.
    return re.compile(
        "(?<=[가-힣]{2})(?:에서|으로|에게|부터|까지|처럼|보다|이나|하고|하는|하지|해서|합니다|했습니다|됩니다|은|는|이|가|을|를|의"
        "|에|로|도|와|과|만)$"
    )


def long_words(text: str) -> set[str]:
    """
    Return the words of `text` that tell it from others, in lower case, whatever its script.

    Of scripts with spaces words of four letters and more; Korean words of two syllables without their
    particle; of Chinese and Japanese each pair of neighbouring signs, but
    not of Hiragana alone, which inflects.

    >>> sorted(long_words("Put the cache in 設定画面。"))
    ['cache', '定画', '画面', '設定']
    """
    return set(_remembered(text) if len(text) <= REMEMBERED_CHARS else _words_of(text))


def _words_of(text: str) -> frozenset[str]:
    if text.isascii():
        return frozenset(word.lower() for word in _ASCII_WORD.findall(text))
    return frozenset(_long_words(text))


# A statement is compared by its words three or four times while its session is read.
_remembered = lru_cache(maxsize=4096)(_words_of)


def _long_words(text: str) -> Iterator[str]:
    for run in _run().finditer(text):
        word = run[0]
        if run.lastgroup == "signs":
            pairs = (word[at : at + SIGNS_OF_A_WORD] for at in range(len(word) - 1))
            yield from (pair for pair in pairs if not _inflection().match(pair))
        elif run.lastgroup == "hangul":
            if len(word) >= SIGNS_OF_A_WORD:
                yield _particle().sub("", word)
        elif len(word) >= LETTERS_OF_A_WORD:
            yield word.lower()


# -- Where sentences end, and texts cut there: one function, and a rule for each kind of text.

# A memory's text where what stands between semicolons is a statement too.
STATEMENT = SentenceRule(r"(?<=[.!?;])\s+")

# In Japanese and Chinese a particle asks, with or without the mark.
_QUESTION_END = re.compile(
    r"(?:[?？؟]|(?:です|ます|でしょう|ません)か。?|[吗嗎呢]。?)[\s\"'”’)`*」』）]{0,4}$"
)

_QUESTION_END_CHARS = 24


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
    return closed(kept or to_last_word(line[:chars]).rstrip(" ;,:、，；：") + "…")


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


# -- The words of two texts, and the share of them that both have.


def nested(words: AbstractSet[str], others: AbstractSet[str]) -> bool:
    """Return whether one of the sets holds the other."""
    return words <= others or others <= words
