"""Words and lengths in every script: what is a word if no space parts them, how much a text says."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from cortex.hooks.evidence.text import HAN, HANGUL, KANA, latin_length

__all__ = ["latin_length", "long_words"]


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
