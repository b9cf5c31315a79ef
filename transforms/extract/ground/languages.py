"""Which languages a session is held in: by its scripts, and by the small words that every sentence needs."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from cortex.hooks.evidence.text import HAN, HANGUL, KANA
from cortex.transforms.extract.ground.candidate import Turn, text_of
from cortex.transforms.extract.ground.phrases import ENGLISH

# Of all small words that a person or the assistant says; a name ("Los Angeles") or a quotation stays below.
LEAST_SHARE = 0.15
# Close languages share words: of Spanish and Portuguese only what is spoken runs.
LEAST_OF_BEST = 0.6
# The start of a turn tells; logs and lists are pasted below.
READ_CHARS = 400
READ_TURNS = 200
FEWEST_SMALL_WORDS = 2  # "no" alone is said in four languages
FEWEST_SIGNS = 4
SIGNS_OF_A_SMALL_WORD = 4  # of as many signs of Chinese or Japanese there is a small word in English
# Chinese quoted in Japanese has no kana; Japanese has one kana in three signs.
LEAST_KANA_SHARE = 0.1
_PERSONS = frozenset(("prompt", "command", "rejection", "choice"))

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SIGNS = re.compile(f"[{HAN}{KANA}{HANGUL}]")
_KANA = re.compile(f"[{KANA}]")
_HAN = re.compile(f"[{HAN}]")
_HANGUL = re.compile(f"[{HANGUL}]")


def small_words(rows: Iterable[Mapping[str, object]]) -> dict[str, tuple[str, ...]]:
    """Return the languages of each small word and letter in rows of language_words.csv."""
    languages: dict[str, tuple[str, ...]] = {}
    for row in rows:
        for token in (*str(row["words"]).split(), *str(row["letters"] or "")):
            languages[token] = (*languages.get(token, ()), str(row["language"]))
    return languages


def languages_of(threads: Iterable[Sequence[Turn]], words: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the languages that a person or the assistant speaks in a session."""
    persons: list[str] = []
    assistants: list[str] = []
    for thread in threads:
        for turn in thread:
            if turn["kind"] in _PERSONS:
                persons.append(text_of(turn)[:READ_CHARS])
            elif turn["kind"] == "text" and len(assistants) < READ_TURNS:
                assistants.append(text_of(turn)[:READ_CHARS])
    return spoken_in(persons[:READ_TURNS], words) | spoken_in(assistants, words)


def spoken_in(texts: Collection[str], words: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """
    Return the languages of some texts by one speaker.

    >>> sorted(spoken_in(["Bitte nicht so", "好的，改用缓存"], {"bitte": ("de",), "nicht": ("de",)}))
    ['de', 'zh']
    """
    text = "\n".join(texts)
    tokens = _WORD.findall(text.lower())
    if not text.isascii():
        tokens += (sign for sign in text if not sign.isascii())
    counts = Counter(language for token in tokens for language in words.get(token, ()))
    distinct = Counter(language for token in set(tokens) for language in words.get(token, ()))
    signs = 0 if text.isascii() else len(_SIGNS.findall(text))
    total = sum(counts.values()) + signs / SIGNS_OF_A_SMALL_WORD
    best = max((count for language, count in counts.items() if language != ENGLISH), default=0)
    least = max(LEAST_SHARE * total, LEAST_OF_BEST * best)
    frequent = (
        language
        for language, count in counts.items()
        if language != ENGLISH and count >= least and distinct[language] >= FEWEST_SMALL_WORDS
    )
    return frozenset(frequent) | (_by_script(text) if signs else frozenset())


def _by_script(text: str) -> frozenset[str]:
    kana, han, hangul = (len(signs.findall(text)) for signs in (_KANA, _HAN, _HANGUL))
    is_japanese = kana >= FEWEST_SIGNS and kana >= LEAST_KANA_SHARE * han
    spoken = {"ja": is_japanese, "zh": han >= FEWEST_SIGNS and not is_japanese, "ko": hangul >= FEWEST_SIGNS}
    return frozenset(language for language, is_spoken in spoken.items() if is_spoken)
