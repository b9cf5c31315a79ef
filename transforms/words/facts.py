"""What two facts have in common by their words: numbers, names, negations, and what one leaves behind."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, lru_cache

import snowballstemmer

from cortex.transforms.policy import Policy
from cortex.transforms.words.sentences import share_of_all

WORD = re.compile(r"[^\W_][\w./:#@+'’-]*")
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_QUOTED = re.compile(r"`([^`\n]{1,80})`")
# Names of code: snake_case, camelCase, dotted or slashed, capitals, a letter next to a digit.
CODE_NAME = re.compile(r"\w[_./:#@]\w|[a-z][A-Z]|^[A-Z]{2,}|[A-Za-z]\d|\d[A-Za-z]")


@dataclass(frozen=True)
class Fact:
    """
    The comparable parts of a text: content word stems in order, numbers, code names, negations.

    `sequence` are its words, numbers and negations as they stand, each where it is said first; `negated` the
    stems that a negation is about.
    """

    words: tuple[str, ...]
    sequence: tuple[str, ...]
    word_set: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    contrasts: frozenset[str]
    negation_count: int
    negated: frozenset[str]

    def without(self, stems: frozenset[str]) -> "Fact":
        """Return the fact without some of its words, which are meant to differ."""
        words = tuple(word for word in self.words if word not in stems)
        return replace(self, words=words, word_set=frozenset(words)) if stems else self


NO_FACT = Fact((), (), frozenset(), frozenset(), frozenset(), frozenset(), 0, frozenset())


# "No longer converted", "do not want to sign": what is negated comes behind these.
_NEGATION_FILLERS = frozenset(("longer", "want", "need", "wish", "ever"))
# How much and how long something holds is no part of what it is about.
_NEUTRAL_WORDS = (
    *_NEGATION_FILLERS,
    *("all", "always", "anymore", "any", "automatically", "each", "every", "more", "never", "only", "please"),
)


@dataclass(frozen=True)
class Vocabulary:
    """The policy's word lists that comparing facts needs."""

    dropped: frozenset[str]
    negations: frozenset[str]
    opposites: frozenset[tuple[str, str]]
    exclusive: frozenset[tuple[str, str]]

    @staticmethod
    def of(policy: Policy) -> "Vocabulary":
        """
        Return the words without a topic, those that negate, and pairs of opposites (both orders).

        Of `exclusive` ones only one holds of a thing: it is on or off, and may well be read and written.
        """
        contrasts = policy.tables["contrast_words"].to_pylist()
        pairs = {(stem(row["word"]), stem(row["opposite"])): row for row in contrasts if row["opposite"]}
        exclusive = {pair for pair, row in pairs.items() if row["is_exclusive"]}
        return Vocabulary(
            frozenset(str(word) for word in policy.tables["query_words"]["word"].to_pylist()),
            frozenset(row["word"] for row in contrasts if not row["opposite"]),
            _either_way(pairs),
            _either_way(exclusive),
        )

    def fact(self, text: str) -> Fact:
        """Return the comparable parts of `text`."""
        if not text:
            return NO_FACT
        words = [_word(word) for word in WORD.findall(text)]
        lowered = [word.lowered for word in words]
        content = tuple(
            word.stem
            for word in words
            if word.stem and not (word.lowered in self.dropped or word.lowered in self.negations)
        )
        quoted = (part.casefold() for part in _QUOTED.findall(text))
        return Fact(
            words=content,
            sequence=tuple(dict.fromkeys(word for word in lowered if word and word not in self.dropped)),
            word_set=frozenset(content),
            numbers=frozenset(NUMBER.findall(text)),
            names=frozenset({*quoted, *(word.lowered for word in words if word.is_name)}),
            contrasts=frozenset(lowered),
            negation_count=(negations := sum(word in self.negations for word in lowered)),
            negated=self.negated_in(text) if negations else frozenset(),
        )

    def negated_in(self, text: str) -> frozenset[str]:
        """Return the stems of the words that a negation in `text` is about: the next one with a topic."""
        negated: set[str] = set()
        is_open = False
        for word in (word.rstrip("./:'’-").replace("’", "'").casefold() for word in WORD.findall(text)):
            if word in self.negations:
                is_open = True
            elif is_open and word and word not in self.dropped and word not in _NEGATION_FILLERS:
                negated.add(stem(word))
                is_open = False
        return frozenset(negated)

    def has_opposites(self, a: Fact, b: Fact) -> bool:
        """Return whether one says a word and the other, in its place, its opposite."""
        return bool(self.opposites_in(a, b))

    def opposites_in(self, a: Fact, b: Fact, *, is_exclusive: bool = False) -> frozenset[str]:
        """Return the stems of the words that one says and whose opposite the other says."""
        first, second = ({stem(word) for word in fact.contrasts} for fact in (a, b))
        opposites = self.exclusive if is_exclusive else self.opposites
        pairs = [(x, y) for x in first - second for y in second - first if (x, y) in opposites]
        return frozenset(word for pair in pairs for word in pair)


def _either_way(pairs: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    return frozenset(pair for a, b in pairs for pair in ((a, b), (b, a)))


def word_similarity(a: Fact, b: Fact) -> float:
    """Return the shared part of all words of both, 0 to 1, at the four decimals that similarities have."""
    return round(share_of_all(a.word_set, b.word_set), 4)


def has_swapped_word(a: Fact, b: Fact) -> bool:
    """
    Return whether the two differ by words standing in each other's place.

    "Use SQLite for the index" and "use SQLite for the queue" are two facts, however alike; words that only
    one of them adds ("use SQLite for the index of events") are detail.
    """
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, a.words, b.words, autojunk=False).get_opcodes():
        if kind == "replace" and _new(a.words[i1:i2], b.word_set) and _new(b.words[j1:j2], a.word_set):
            return True
    return False


def has_other_order(a: Fact, b: Fact) -> bool:
    """
    Return whether what both say comes in another order.

    "Use npm, not pnpm" and "use pnpm, not npm" have the same words, and so have most exchanges of two names.
    """
    stems = [[stem(word) for word in fact.sequence] for fact in (a, b)]
    single = [[word for word in of_fact if of_fact.count(word) == 1] for of_fact in stems]
    return any(first != second for first, second in (_common(a.sequence, b.sequence), _common(*single)))


def may_be_same(a: Fact, b: Fact, vocabulary: Vocabulary) -> bool:
    """Return whether nothing sets two facts apart: no negation, opposite, exchanged word or other order."""
    return (
        a.negation_count == b.negation_count
        and a.negated == b.negated  # "ruff, not flake8" and "not ruff; flake8" have the same words
        and not vocabulary.has_opposites(a, b)
        and not has_swapped_word(a, b)
        and not has_other_order(a, b)
    )


def is_exchange(a: Fact, b: Fact) -> bool:
    """Return whether what both say differs in two words that have changed places, whatever either adds."""
    first, second = _common(a.sequence, b.sequence)
    changed = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    return len(changed) == 2 and changed[0] == changed[1][::-1]


def _common(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that both have, in the order of each."""
    shared = set(first) & set(second)
    return [word for word in first if word in shared], [word for word in second if word in shared]


def _new(words: Iterable[str], known: frozenset[str]) -> bool:
    return any(word not in known for word in words)


@cache
def _stemmer() -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer("english")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the English stem of a lower-case word; words of other scripts come back as they are."""
    return str(_stemmer().stemWord(word))


# Stems that end so may come of words that go on otherwise: "reli" of "rely", "hope" of "hoping", "die" of
# "dying", "portabl" of "portability".
_ENDS_OF_STEMS_ALONE = ("e", "i", "l", "y")


def beginning_of(word_stem: str) -> str:
    """
    Return what each lower-case word of a stem begins with.

    >>> beginning_of("tabl"), beginning_of("npm")
    ('ta', 'npm')
    """
    return word_stem[: max(1, len(word_stem) - 2)] if word_stem.endswith(_ENDS_OF_STEMS_ALONE) else word_stem


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as facts compare it; a number has no stem, for it is no content word."""

    lowered: str
    stem: str
    is_name: bool


# A fact's 24 words recur: ten thousand facts have some thousand words, each looked at once.
@lru_cache(maxsize=100_000)
def _word(spoken: str) -> _Word:
    spoken = spoken.rstrip("./:'’-").replace("’", "'")
    lowered = spoken.casefold()
    is_content = bool(lowered) and not NUMBER.fullmatch(lowered)
    return _Word(lowered, stem(lowered) if is_content else "", bool(CODE_NAME.search(spoken)))


NEUTRAL = frozenset(stem(word) for word in _NEUTRAL_WORDS)


# -- What a text measures: another number of it is another value.

# A number with the word before it ("the version is 3.9") and the unit behind it.
_NUMBER_OF = re.compile(
    r"([^\W\d_][\w'’-]*)?(\s+(?:is|are|of|to))?\W{0,3}?(?<![\w.])(\d+(?:[.,:]\d+)*)\s?([^\W\d_]+|%)?"
)


@dataclass(frozen=True)
class Measures:
    """What is measured (measures.csv): units and their dimension, what is set, what leads to a measure."""

    units: Mapping[str, tuple[str, float]]
    settings: frozenset[str]
    leads: frozenset[str]

    @staticmethod
    def of(policy: Policy) -> "Measures":
        rows = policy.tables["measures"].to_pylist()
        return Measures(
            {stem(row["word"]): (row["dimension"], row["factor"]) for row in rows if row["use"] == "unit"},
            frozenset(row["word"] for row in rows if row["use"] == "setting"),
            frozenset(row["word"] for row in rows if row["use"] == "lead"),
        )

    def leads_of(self, vocabulary: Vocabulary) -> frozenset[str]:
        """Return what may stand between a verb and what it measures: nothing, and words without a topic."""
        return self.leads | vocabulary.dropped | {""}

    def in_text(self, text: str, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
        """
        Yield (what is measured, number) for each number that measures something: "30 seconds", "80 %".

        One dimension is counted in one unit. What a number only tells apart, "layer 3", "step 4 of the plan",
        is another thing and no other value.
        """
        for before, link, number, unit in _NUMBER_OF.findall(text):
            before, unit = before.casefold(), stem(unit.casefold())
            if unit in self.units:
                dimension, factor = self.units[unit]
                yield dimension, f"{float(number.replace(',', '').replace(':', '')) * factor:g}"
            elif before in self.settings or link.strip() in ("is", "are"):
                yield before, number
            elif unit and unit not in vocabulary.dropped and (link or before in self.leads_of(vocabulary)):
                yield unit, number


# -- What a text leaves behind by its own words: "switch from X to Y" is at odds with "use X" (spec 5, 7).

# What was left is a noun with a word or two next to it; more is its own sentence.
LEFT_WORDS_MAX = 4
# "remove the key from the payload" leaves the payload; of a name with a dot the dot is a part.
_END_OF_THING = re.compile(
    r"[;,:()!?\n→]|\.(?!\w)|\s(?:[-–—]|because|since|as|so|and|or|but|while|which|that|for|in|on|when|where"
    r"|from|to|of|with|into|by|weil|da|porque|para|parce|pour)\s",
    re.I,
)
# "get rid of that folder" names no folder.
_POINTS = re.compile(r"\s*(?:that|this|these|those|it|them|him|her|all|any|which)\b", re.I)
# "Ten minutes instead of six" leaves a number, which occurs in every other sentence too.
_COUNT = re.compile(
    r"\s*(?:(?:\d[\d.,]*|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|sixty)\s*)+$",
    re.I,
)


@dataclass(frozen=True)
class Reversals:
    """The patterns of the policy, whose first group is what was left."""

    patterns: tuple[re.Pattern[str], ...]

    @staticmethod
    def of(policy: Policy) -> "Reversals":
        """Return the patterns of reversals.csv."""
        rows = policy.tables["reversals"]["pattern"].to_pylist()
        return Reversals(tuple(re.compile(str(row), re.IGNORECASE) for row in rows))

    def things_left_in(
        self, text: str, vocabulary: Vocabulary, *more: re.Pattern[str]
    ) -> Iterator[tuple[Fact, str]]:
        """
        Yield each thing that `text` says was left, by these patterns or `more`, with its words as said.

        Names that are too long to be a thing, and bare numbers, are passed over.
        """
        for span in _spans((*self.patterns, *more), text):
            fact = vocabulary.fact(span)
            if 0 < len(fact.word_set) <= LEFT_WORDS_MAX:
                yield fact, span.strip()


def _spans(patterns: Iterable[re.Pattern[str]], text: str) -> Iterator[str]:
    for pattern in patterns:
        for match in pattern.finditer(text):
            span = _END_OF_THING.split(f"{match[match.lastindex or 0]} ", maxsplit=1)[0]
            if not (_POINTS.match(span) or _COUNT.match(span)):
                yield span
