"""Whether two memories speak of the same subject, so that only the newer one is told (spec 11.2)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from cortex.transforms.words.overlap import share_of_fewer

# A name of code, a path, a number or a quoted string: two facts whose names all differ are about two things.
_NAME = re.compile(r"`[^`]+`|[\w./-]*(?:[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|[\w]_[\w]|[\w]\.[\w]|\w/\w)[\w./-]*")
_WORD = re.compile(r"[^\W\d_]{3,}")
_WIDE = re.compile("[\u3041-\u30ff\u3400-\u9fff]{2,}")
_TRIM = "`.,;:()/- "


@dataclass(frozen=True)
class Subject:
    """The names and the telling words of a statement."""

    names: frozenset[str]
    words: frozenset[str]


def subject_in(text: str, stop_words: Iterable[str] = ()) -> Subject:
    """
    Return what a statement is about, without `stop_words`; of scripts without spaces, pairs of characters.

    >>> sorted(subject_in("Keep `raw.json` for ninety days", ["for"]).words)
    ['days', 'keep', 'ninety', 'raw.json']
    """
    names = frozenset(name.strip(_TRIM).casefold() for name in _NAME.findall(text)) - {""}
    words = {word.casefold() for word in _WORD.findall(_NAME.sub(" ", text))}
    pairs = {a + b for run in _WIDE.findall(text) for a, b in pairwise(run)}
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
