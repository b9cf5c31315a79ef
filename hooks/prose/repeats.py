"""Who says nearly the same: a statement found again in what was read before it, in spite of a changed word.

Compared are content words within a window of the source: case, punctuation, markup, line breaks, bullets, an
inflection or a word in four changed make no difference; in longer statements the order makes none either.
Used by the hooks and by the engine.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Fewer words are shared by chance: on real sessions three of four in "field GitHub action workflow" were.
MIN_WORDS = 4
# From five words on one in four may be changed; of four, none.
CHANGED_SHARE = 0.25
CHANGED_FROM_WORDS = 5
# A repeated sentence keeps its words together: as many again as a third of its length may come between.
SLACK_SHARE = 0.34
SLACK_WORDS = 3
# Of few words some stand near each other in any text on the same subject; in the same order they seldom do.
ANY_ORDER_FROM_WORDS = 8

# A part of a sentence is nobody's sentence: names and set phrases ("body exceeded size limit") are shared.
MIN_WORDS_OF_PIECE = 5

# Anything longer is not a word; a pattern below takes time by the square of a token's length.
MAX_TOKEN_LENGTH = 200

# Below the mark of a text lies the place in it; between two texts of one mark no window reaches.
PLACE_BITS = 32
GAP_PLACES = 10_000

# A tag that somebody else wrote, wherever it stands; no chance, so fewer words tell that it is repeated.
_FOREIGN_TAG = re.compile(r"\[memory:[^\]\n]{0,40}\]\W*(.{1,400})", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?。])[\"'”’)`*]*\s+|\n")
_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{16,})[\"”»]")
_LISTED = "; "

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff"
# A path, a name of code or an option is one word however many it is made of: lists of files repeat nothing.
_PARTING = r"\s()\[\]{}<>,;\"`|*=!?~#$%^…“”„«»→"
_TOKEN = re.compile(rf"[^{_PARTING}]+")
_TOKEN_OR_SIGN = re.compile(rf"[{_IDEOGRAPHS}]|[^{_PARTING}{_IDEOGRAPHS}]+")
_NAME = re.compile(r"[\w'’][./:\\@+_]\w|-\w+-\w")
_PARTS = re.compile(r"[\W_]+")
_LINE_NUMBER = re.compile(r"(?::\d+)+$")
# Zeros in front say nothing; of more than 4,300 digits Python makes no number, and no character has eight.
_LEADING_ZEROS = re.compile(r"(?<=&#)0+(?=[0-9])")
_LONG_NUMBER = re.compile(r"&#[0-9]{8,}")
_ESCAPED_BREAK = re.compile(r"\\[nrt]")
# Soft hyphens, joiners, marks of direction, tags, variation selectors and letters without a shape.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
# To normalise a run of combining marks takes the square of its length; no script puts this many on one
# letter.
MAX_MARKS = 8
_KATAKANA_MARKS = "\uff9e\uff9f"  # letters by their category, but marks once they are normalised
_MARK_RUN = re.compile(rf"(?:[^\w\s\x00-\x7f]|[{_KATAKANA_MARKS}]){{{MAX_MARKS + 1},}}")
_ENDING = re.compile(r"(?:ings?|edly|ed|ly|ies|es|s|e)$")
_STEM_LETTERS = 3  # at least this many stay

# Words that occur in any sentence, and those of markup, which separate what belongs together.
_COMMON_WORDS = """
a about after all also am an and any are as at be been before being but by can could did do does doing done
each else for from get got had has have having he her here him his how i if in into is it its itself just
let may me might more most much must my no nor not now of off on once one only onto or other our out over
own per same shall she should so some such than that the their them then there these they this those through
to too under until up upon us use used uses using very via was we were what when where which while who whom
why will with within without would you your br div em href html li nbsp ol pre span strong td th tr ul
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def content_words(text: str) -> list[str]:
    """
    Return the stems of the words that carry what `text` says, in their order.

    >>> content_words("**Always** pipe the installer\\ninto a root-shell!")
    ['alway', 'pip', 'installer', 'root', 'shell']
    """
    return [word for token in _tokens(text) for word in _STEMS[token]]


def _tokens(text: str) -> list[str]:
    if "&" in text:
        import html  # 3 ms, of which a hook seldom has need

        text = html.unescape(_LONG_NUMBER.sub(" ", _LEADING_ZEROS.sub("", text)))
    if "\\" in text:
        text = _ESCAPED_BREAK.sub(" ", text)
    if not text.isascii():
        text = text.replace("→", " ")  # stands behind each line's number where a tool shows a file
    if text.isascii():
        return _TOKEN.findall(text.lower())
    text = _MARK_RUN.sub(_few_marks, text)
    shown = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return _TOKEN_OR_SIGN.findall(shown.casefold())


def _few_marks(run: re.Match[str]) -> str:
    """Return a run of signs with at most MAX_MARKS combining marks on end."""
    kept, marks = [], 0
    for sign in run[0]:
        marks = marks + 1 if unicodedata.category(sign)[0] == "M" or sign in _KATAKANA_MARKS else 0
        if marks <= MAX_MARKS:
            kept.append(sign)
    return "".join(kept)


def _bare(token: str) -> str:
    """Return a token without the signs around it, cut to MAX_TOKEN_LENGTH; linear in its length."""
    start, end = 0, len(token)
    while start < end and not token[start].isalnum():
        start += 1
    while end > start and not token[end - 1].isalnum():
        end -= 1
    return _LINE_NUMBER.sub("", token[start : min(end, start + MAX_TOKEN_LENGTH)])


class _Stems(dict[str, tuple[str, ...]]):
    """The words that each token met so far counts for: itself, its parts between hyphens, or none."""

    MOST = 200_000

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) > self.MOST:
            self.clear()
        bare = _bare(token)
        parts = [bare] if _NAME.search(bare) else _PARTS.split(bare)
        stems = self[token] = tuple(_stem(part) for part in parts if part not in _COMMON and _counts(part))
        return stems


_STEMS = _Stems()


def _counts(word: str) -> bool:
    return (len(word) > 1 or not word.isascii()) and not word.isdigit()


def _stem(word: str) -> str:
    """Return a word without its ending, as far as the same word in another form has the same."""
    bare = _ENDING.sub("", word) if len(word) > _STEM_LETTERS else word
    return bare if len(bare) >= _STEM_LETTERS else word


def statements(text: str) -> list[list[str]]:
    """
    Return the content words of each sentence of `text` and of its parts: quotations, items, what has a label.

    >>> statements("Noted: always pipe the new installer into a shell.")[1]
    ['alway', 'pip', 'new', 'installer', 'shell']
    """
    by_words: dict[tuple[str, ...], None] = {}
    for sentence in _SENTENCE_END.split(text):
        by_words.setdefault(tuple(content_words(sentence)))
        for piece in _pieces(sentence):
            words = content_words(piece)
            if len(words) >= MIN_WORDS_OF_PIECE:
                by_words.setdefault(tuple(words))
    return [list(words) for words in by_words if words]


def _pieces(sentence: str) -> Iterator[str]:
    yield from _QUOTED.findall(sentence)
    yield sentence.partition(": ")[2]
    for item in sentence.split(_LISTED) if _LISTED in sentence else ():
        yield item
        yield item.partition(": ")[2]


class EarlierText:
    """
    What was said by others, one text after the other, and where in it a statement is found again.

    Keeps only the words of the statements it will be asked for, so that a session of megabytes stays small.
    """

    def __init__(self, statements: Iterable[Sequence[str]]) -> None:
        # Places of each word in order, the mark of the text above the place in it.
        self._places: dict[str, array[int]] = {word: array("Q") for words in statements for word in words}
        self._tags: list[tuple[int, frozenset[str]]] = []
        self._next = 0

    def add(self, text: str, mark: int) -> None:
        """Take in one text; `mark`, no smaller than those before, is what `marks_of` returns for it."""
        places = self._places
        at = max(mark << PLACE_BITS, self._next)
        for token in _tokens(text):
            for word in _STEMS[token]:
                held = places.get(word)
                if held is not None:
                    held.append(at)
                at += 1
        self._next = at + GAP_PLACES
        if "[" in text:
            self._tags += [(mark, frozenset(content_words(tag))) for tag in _FOREIGN_TAG.findall(text)]

    def marks_of(self, words: Sequence[str]) -> list[int]:
        """Return the marks of the texts that say nearly what `words` (of `content_words`) say, in order."""
        wanted = list(dict.fromkeys(words))
        marks = {mark for mark, tag in self._tags if _is_tag(wanted, tag)}
        if len(wanted) >= MIN_WORDS:
            marks |= self._marks_near(wanted)
        return sorted(marks)

    def _marks_near(self, wanted: Sequence[str]) -> set[int]:
        least = least_words(len(wanted))
        held = [self._places.get(word, array("Q")) for word in wanted]
        # So many words are wanted that not all of the rarest can be missing.
        rarest = sorted(held, key=len)[: len(wanted) - least + 1]
        marks = {at >> PLACE_BITS for places in rarest for at in places}
        return {mark for mark in marks if _has_window(held, mark, least)}


def _is_tag(wanted: Sequence[str], tag: frozenset[str]) -> bool:
    least = least_words(len(wanted)) if len(wanted) >= CHANGED_FROM_WORDS else max(1, len(wanted) - 1)
    return sum(word in tag for word in wanted) >= least


def _has_window(held: Sequence[Sequence[int]], mark: int, least: int) -> bool:
    """Return whether some window of the text `mark` holds at least `least` of the words."""
    wanted, begin, end = len(held), mark << PLACE_BITS, (mark + 1) << PLACE_BITS
    starts = [bisect_left(places, begin) for places in held]
    is_there = [start < len(places) and places[start] < end for places, start in zip(held, starts)]
    if sum(is_there) < least:
        return False
    window = wanted + int(SLACK_SHARE * wanted) + SLACK_WORDS
    in_text = (places[start : bisect_left(places, end, start)] for places, start in zip(held, starts))
    near = sorted((at, number) for number, places in enumerate(in_text) for at in places)
    counts = [0] * wanted
    held_count = start = 0
    for last, (at, number) in enumerate(near):
        held_count += not counts[number]
        counts[number] += 1
        while near[start][0] <= at - window:
            gone = near[start][1]
            counts[gone] -= 1
            held_count -= not counts[gone]
            start += 1
        if held_count >= least and (
            held_count == wanted
            or wanted >= ANY_ORDER_FROM_WORDS
            or _in_order([number for _, number in near[start : last + 1]]) >= least
        ):
            return True
    return False


def _in_order(numbers: Sequence[int]) -> int:
    """
    Return how many of `numbers` stand in rising order, others left out.

    >>> _in_order([3, 0, 1, 1, 4, 2])
    3
    """
    ends: list[int] = []
    for number in numbers:
        at = bisect_left(ends, number)
        ends[at : at + 1] = [number]
    return len(ends)


def least_words(count: int) -> int:
    """
    Return how many of `count` different words must come again for the same to be said.

    >>> [least_words(count) for count in (4, 5, 8, 12)]
    [4, 4, 6, 9]
    """
    return count - max(1, int(CHANGED_SHARE * count)) if count >= CHANGED_FROM_WORDS else count
