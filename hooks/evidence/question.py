"""What is asked: the words of a question with their weights, and what it asks for beyond its words."""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    # Numbers of ranking.csv by name; of words their place in the language by frequency, where they have one.
    Numbers = Mapping[str, float]
    RankOf = Callable[[Sequence[str]], Mapping[str, int]]

from .text import UNSPACED, Tokenizer, index_words, query_words, search_text, word_set, words_in

_ENGLISH, _UNSPACED_LANGUAGES = "en", ("ja", "ko", "zh")
# "no" alone is said in four languages.
_MIN_SMALL_WORDS = 3
# Of an English question hardly more than half of the words are rare ones, of any other nearly all.
_UNKNOWN_SHARE = 0.75
_PARTICLE_CHARS = 4
_MIN_TOPIC_LENGTH = 3
# Of a longer text both ends are looked at: what is asked stands before or after what was pasted.
MAX_QUESTION_LENGTH = 4_000
# The words that most rows lack tell the most; of a longer question the others change nothing.
MAX_WORDS = 64
# What is shared by chance grows by the logarithm of the words searched over this; of fewer than the smallest
# of the stores that it was chosen on had, by no less than there.
_WORDS_OF_CHANCE, _MIN_SEARCHED = 150, 900
# Before a stem: its place by how many projects' sessions have it, not that of a word.
SESSION_STEM = "~"
# A longer one is about something.
_MAX_FOR_RECORDS_LENGTH = 120
# What a question lists that names no subject: what is open, what was done, what was decided; of one that is
# limited to days or sessions also everything.
OPEN, WORK, DECIDED, EVERYTHING = LISTINGS = ("open", "work", "decided", "everything")
_NOTHING = "(?!)"


class SearchSettings:
    """
    What the policy says to a search.

    `numbers` are those of ranking.csv, `dropped` the words that carry no topic, `small_words` those that
    every sentence needs, by language. `patterns` are regular expressions by name and language: how questions
    ask (reason, means, work, open) and how sentences say why (gives_reason), put something forward
    (suggests), or what is done next (announces).
    """

    def __init__(
        self,
        numbers: Numbers,
        dropped: Iterable[str],
        small_words: Mapping[str, Sequence[str]],
        patterns: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.numbers, self.dropped = numbers, frozenset(dropped)
        self._small_words = {language: frozenset(words) for language, words in small_words.items()}
        self._patterns = patterns
        self._compiled: dict[tuple[str, frozenset[str]], re.Pattern[str]] = {}

    def pattern(self, name: str, languages: frozenset[str] = frozenset()) -> re.Pattern[str]:
        """
        Return a pattern by its name, of some languages (default: all), compiled at its first use.

        Of all languages one takes up to 12 ms.
        """
        key = name, languages
        if key not in self._compiled:
            texts = self._patterns.get(name, {})  # an index of an older version lacks some
            parts = [text for of, text in texts.items() if not languages or of in languages]
            self._compiled[key] = re.compile("|".join(parts) or _NOTHING, re.IGNORECASE)
        return self._compiled[key]

    def language_of(self, text: str) -> frozenset[str]:
        """Return English where a message has more small words of it than of another, else nothing: any."""
        words = word_set(text)
        counts = {language: len(words & small) for language, small in self._small_words.items()}
        is_english = text.isascii() and counts.pop(_ENGLISH, 0) > max(counts.values(), default=0)
        return frozenset({_ENGLISH}) if is_english else frozenset()

    def languages_of(self, texts: Iterable[str]) -> frozenset[str]:
        """Return English and the languages that some of `texts` may be in, rather one more than one less."""
        languages = {_ENGLISH}
        for text in texts:
            words = word_set(text)
            for language, small in self._small_words.items():
                if language not in languages and len(words & small) >= _MIN_SMALL_WORDS:
                    languages.add(language)
            if not text.isascii() and UNSPACED.search(text):
                languages.update(_UNSPACED_LANGUAGES)
        return frozenset(languages)


class Nearness:
    """
    How near a row is to its question.

    `words` are those of the question that it has, `share` is their part of the weight of all, `cosine` its
    similarity by meaning, None if that is not known.
    """

    __slots__ = ("cosine", "share", "words")

    def __init__(self, share: float, cosine: float | None, words: frozenset[str] = frozenset()) -> None:
        self.share, self.cosine, self.words = share, cosine, words


class Asked:
    """
    The words of a question by their stems, each with its weight: how rare the word is in its language.

    `telling` are the weights by which they tell one project from another: "commit" is rare in English, and in
    any project's sessions.
    """

    def __init__(
        self,
        weights: Mapping[str, float],
        rare: float = math.inf,
        tokenizer: Tokenizer | None = None,
        telling: Mapping[str, float] | None = None,
    ) -> None:
        """Take what each word weighs, and what one does that is not among the common ones: a name, mostly."""
        self.weights, self.rare = weights, rare
        self.telling = weights if telling is None else telling
        self._tokenizer = tokenizer or Tokenizer()
        self.total = sum(weights.values())
        # Cutting an ending leaves the first two letters; other words need no cutting.
        self._beginnings = {word[:2] for word in weights}
        # Word of a text → the stem of the question that it is, None if it is none of them.
        self._stem_of: dict[str, str | None] = {}
        self.names = frozenset(word for word, weight in weights.items() if weight >= rare)

    @classmethod
    def of(cls, words: Sequence[str], rank_of: RankOf, numbers: Numbers, tokenizer: Tokenizer) -> Asked:
        """
        Return `words`, as `query_words` gives them, cut as the index is.

        `rank_of` gives words, and stems behind SESSION_STEM, their place by frequency, from 1; any but the
        first `common_words` weigh the most.
        """
        rarest, common, last = (numbers[name] for name in ("rarest_rank", "common_rank", "common_words"))
        cut = index_words(" ".join(words))
        stems = tokenizer.stems(cut)
        known = rank_of([*{*cut, *(SESSION_STEM + stem for stem in stems)}])
        weights, telling = {}, {}
        for word, stem in zip(cut, stems):
            rank = known.get(word, rarest)
            weights[stem] = math.log((rank if rank <= last else rarest) / common + 1)
            in_sessions = known.get(SESSION_STEM + stem, rarest)
            telling[stem] = min(weights[stem], math.log(in_sessions / common + 1))
        return cls(weights, math.log(rarest / common + 1), tokenizer, telling)

    def learn(self, texts: Iterable[str]) -> None:
        """Cut all words of some texts at once that may be the question's: one by one takes much longer."""
        unknown = {word for text in texts for word in index_words(text)} - self._stem_of.keys()
        begins = self._beginnings
        likely = sorted(word for word in unknown if word[:2] in begins or not word[:2].isascii())
        self._stem_of.update(dict.fromkeys(unknown))
        for word, stem in zip(likely, self._tokenizer.stems(likely)):
            self._stem_of[word] = stem if stem in self.weights else None

    def words_of(self, text: str) -> frozenset[str]:
        """Return the words of the question that a text has."""
        words = index_words(text)
        if not self._stem_of.keys() >= set(words):
            self.learn([text])
        return frozenset([stem for stem in map(self._stem_of.get, words) if stem is not None])

    def share_in(self, indexed: str) -> float:
        """Return the part of the words' weight that a row has, by its text as the index holds it: 0 to 1."""
        return self.nearness(indexed, None).share

    def nearness(self, indexed: str, cosine: float | None) -> Nearness:
        """Return how near a row is, by its text as the index holds it and its cosine with the question."""
        words = self.words_of(indexed)
        weight = sum(weight for word, weight in self.weights.items() if word in words)
        return Nearness(weight / self.total if self.total else 0.0, cosine, words)

    def missing_names(self, words: frozenset[str]) -> float:
        """Return the part of the question's names and rare words that are not in `words`: 0 to 1."""
        return len(self.names - words) / len(self.names) if self.names else 0.0

    @property
    def is_unknown(self) -> bool:
        """Whether nearly all words are names or rare ones: it is in another language, or names things."""
        return len(self.names) >= _UNKNOWN_SHARE * len(self.weights)

    def names_in(self, row: Nearness) -> int:
        """Return how many names and rare words of the question a row has; a single sign is no name."""
        return sum(len(word) > 1 for word in self.names & row.words)


class SearchQuestion:
    """
    A question as a search looks at it.

    `terms` are the words that the index is asked for, `asked` those that results are compared by. A search
    leaves in `certainty` how sure it is that what it found answers: 1 is enough.
    """

    def __init__(self, text: str, settings: SearchSettings, rank_of: RankOf) -> None:
        self.text = text = _both_ends(text)
        self.settings = settings
        words = query_words(text, settings.dropped)
        tokenizer = Tokenizer()
        self.terms = [word for word, _, _ in tokenizer.count([search_text(" ".join(words))])]
        self.asked = Asked.of(words, rank_of, settings.numbers, tokenizer)
        self.certainty = 0.0
        self._languages: frozenset[str] = frozenset()

    def answered_in(self, texts: Iterable[str]) -> None:
        """Take note of the languages that what bears on it is in."""
        self._languages = self.settings.languages_of(texts)

    def pattern(self, name: str) -> re.Pattern[str]:
        """Return how sentences say something, in the languages of what bears on it."""
        return self.settings.pattern(name, self._languages)

    @property
    def asks_why(self) -> bool:
        """Whether it asks for a reason."""
        return self.settings.pattern("reason").search(self.text) is not None

    @property
    def asks_how(self) -> bool:
        """Whether it asks for the way to do something."""
        return self.settings.pattern("means").search(self.text) is not None


def _both_ends(text: str) -> str:
    half = MAX_QUESTION_LENGTH // 2
    return text if len(text) <= MAX_QUESTION_LENGTH else f"{text[:half]}\n{text[-half:]}"


def has_topic(text: str, settings: SearchSettings) -> bool:
    """
    Return whether a message names anything that could be looked up.

    "go on", "thanks" and "2" name nothing: of their words none is left, or no more than a number.
    """
    return bool(topics_among(words_in(_both_ends(text)), settings))


def topics_among(words: Iterable[str], settings: SearchSettings) -> frozenset[str]:
    """Return those of some words that could be looked up."""
    small = settings.dropped
    return frozenset(
        word
        for word in words
        if word not in small and (len(word) >= _MIN_TOPIC_LENGTH or not word.isascii()) and not word.isdigit()
    )


def listing_asked(text: str, settings: SearchSettings, *, is_limited: bool = False) -> str:
    """
    Return which of LISTINGS a question is after that names no subject; "" for one to search for.

    "where did we stop?" asks for the work, "where did we stop the pump?" for a pump. A question that
    `is_limited` to days or sessions, and says nothing else, asks for everything of them.
    """
    text = " ".join(text.split())
    if len(text) > _MAX_FOR_RECORDS_LENGTH:
        return ""
    languages = settings.language_of(text)
    for kind in LISTINGS if is_limited else LISTINGS[:-1]:
        rest, matches = settings.pattern(kind, languages).subn(" ", text)
        is_asked = matches or (kind == EVERYTHING and is_limited)
        if is_asked and all(_is_small(word, settings.dropped) for word in words_in(rest)):
            return kind
    return ""


def _is_small(word: str, small: frozenset[str]) -> bool:
    # What is left of a question without spaces between its words is a particle or an ending.
    return word in small or (not word.isascii() and len(word) <= _PARTICLE_CHARS)


def certainty_of(
    asked: Asked,
    rows: Iterable[Nearness],
    numbers: Numbers,
    whole: tuple[float, float] | None = None,
    *,
    searched_words: float,
) -> float:
    """
    Return how sure it is that any of `rows` answers the question `asked`, at most 1: that is enough.

    By words they answer as `_AnsweredByWords` tells; `searched_words` is how many words were searched: the
    fewer, the less is shared by chance. `whole` are the cosine and the share that would each do alone, by the
    model that gave the cosines (calibration.csv): of each row the parts of them add up; what no row has of
    the question's names is taken away, `missing_names` of ranking.csv where all are missing. What the model
    and what the words say adds up: they err in different places. A number of 0 hides nothing. Without a model
    (None), or where no row has a vector yet, the words alone decide. Of a question whose words are nearly all
    unknown, mostly since it is in another language than the facts, one row with `answer_names` of them is
    enough.
    """
    words = _AnsweredByWords(asked, numbers, searched_words)
    is_unknown, most, missing, best = asked.is_unknown, numbers["missing_names"], 1.0, 0.0
    has_vectors, by_model, by_words = False, 0.0, 0.0
    for row in rows:  # one by one: mostly the first is enough
        if is_unknown and asked.names_in(row) >= numbers["answer_names"]:
            return 1.0
        by_words = words.certainty_with(row)
        if whole is not None:
            missing = min(missing, asked.missing_names(row.words))
            by_meaning = _part(row.cosine, whole[0]) if row.cosine is not None else 0.0
            best = max(best, by_meaning + _part(row.share, whole[1]))
            has_vectors = has_vectors or row.cosine is not None
            by_model = max(0.0, best - most * missing) if has_vectors else 0.0
        if by_model + by_words >= 1:
            return 1.0
    return by_model + by_words


class _AnsweredByWords:
    """
    How surely the words of rows answer, by what they tell.

    The weight that the best row has of the question's, times the share that all rows have between them, over
    the root of the whole: a long message says what it wants made and where, which stands in no row. It is
    measured by `answer_weight` for each e-fold of what was searched, since more words share some by chance.
    What none of the rows has of the question's names takes its part away, as above. A row with a single word
    of the question counts if that has `answer_share_word` of the weight.
    """

    def __init__(self, asked: Asked, numbers: Numbers, searched_words: float) -> None:
        self._asked, self._weights, self._numbers = asked, asked.telling, numbers
        self._total = sum(asked.telling.values()) or 1.0
        chance = math.log(1 + max(searched_words, _MIN_SEARCHED) / _WORDS_OF_CHANCE)
        # An index of an older version has no such number.
        self._enough = numbers.get("answer_weight", math.inf) * chance / math.sqrt(self._total)
        self._best, self._words = 0.0, frozenset[str]()

    def certainty_with(self, row: Nearness) -> float:
        """Take in a row; return how surely those until now answer: 1 is enough."""
        if len(row.words) > 1 or _part(row.share, self._numbers["answer_share_word"]) >= 1:
            self._best = max(self._best, self._share_of(row.words))
        self._words |= row.words
        names = 1 - self._numbers["missing_names"] * self._asked.missing_names(self._words)
        share = self._best * self._share_of(self._words) * names
        return _part(share, self._enough) if self._words else 0.0

    def _share_of(self, words: Iterable[str]) -> float:
        return sum(self._weights[word] for word in words) / self._total


def _part(value: float, whole: float) -> float:
    return max(value, 0.0) / whole if whole else math.inf
