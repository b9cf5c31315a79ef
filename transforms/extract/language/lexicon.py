"""The word lists of layer 2, compiled: what marks an event in prose, and what kind of thing is typed."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache

from cortex.transforms.extract.language.phrases import (
    ENGLISH,
    PatternSet,
    Phrase,
    Phrasebook,
    language_in,
    small_words,
)
from cortex.transforms.policy import Policy
from cortex.transforms.words.facts import Reversals, Vocabulary
from cortex.transforms.words.sentences import PROSE, is_question, sentences

Rows = tuple[tuple[tuple[str, object], ...], ...]
WORD_TABLES = ("markers", "kinds", "phrases", "language_words")
# Event type and memory type.
EventKind = tuple[str, str]
# What no rule speaks for: a question settles nothing.
QUESTION: EventKind = ("KNOWLEDGE_ACQUIRED", "context")
_NUMBERING = re.compile(r"^[\W\d]+")


@dataclass(frozen=True)
class WordTables:
    """The rows of WORD_TABLES, and what compares two statements."""

    rows: tuple[Rows, ...]
    vocabulary: Vocabulary
    reversals: Reversals


@dataclass(frozen=True)
class Marked:
    """What the markers say of a passage: the event type they mark most, how strongly, in which language."""

    event_type: str
    strength: float
    language: str


@dataclass(frozen=True)
class _Marker:
    language: str
    event_type: str
    pattern: re.Pattern[str]
    weight: float


@dataclass(frozen=True)
class _KindRule:
    """One row of kinds.csv; the first that matches says what kind of thing a person types."""

    looks_at: str
    kind: EventKind
    pattern: re.Pattern[str]
    passing: Phrase  # holds for the hour, or in this place only

    def matches(self, parts: list[str]) -> bool:
        """Return whether the rule speaks for a passage, given as its sentences."""
        match self.looks_at:
            case "standing":
                return bool(self.standing_in(parts))
            case "start":
                return bool(self.pattern.search(_NUMBERING.sub("", parts[0])))
            case "question":
                return all(self.pattern.search(sentence) for sentence in parts)
            case "asked":
                return any(self.pattern.search(sentence) for sentence in parts)
            case _:
                return any(self.pattern.search(sentence) for sentence in parts if not is_question(sentence))

    def standing_in(self, parts: list[str]) -> list[str]:
        """Return the sentences that state what always holds: no question and nothing for the hour."""
        return [
            sentence
            for sentence in parts
            if self.pattern.search(sentence)
            and not is_question(sentence)
            and not self.passing.search(sentence)
        ]


class Lexicon:
    """The rows of WORD_TABLES in some languages, compiled."""

    def __init__(self, tables: WordTables, languages: Collection[str] | None = None) -> None:
        self._tables, self._languages = tables, languages
        self._speaking: dict[frozenset[str], Lexicon] = {}
        self.small_words = small_words(dict(row) for row in tables.rows[-1])
        self.vocabulary, self.reversals = tables.vocabulary, tables.reversals

    # Compiled when first looked at: all languages take half a second, and a session speaks one or two.

    @cached_property
    def phrases(self) -> Phrasebook:
        """The turns of phrase."""
        return Phrasebook.of_rows(self._spoken(2))

    @cached_property
    def _kinds(self) -> list[_KindRule]:
        return [
            _KindRule(
                str(row["looks_at"]),
                (str(row["event_type"]), str(row["memory_type"])),
                _compiled(row),
                self.phrases.passing,
            )
            for row in self._spoken(1)
        ]

    @cached_property
    def _markers(self) -> list[_Marker]:
        return [
            _Marker(str(row["language"]), str(row["event_type"]), _compiled(row), float(str(row["weight"])))
            for row in self._spoken(0)
        ]

    @cached_property
    def _marker_set(self) -> PatternSet:
        return PatternSet([marker.pattern for marker in self._markers])

    def _spoken(self, table: int) -> list[dict[str, object]]:
        given = [dict(row) for row in self._tables.rows[table]]
        if self._languages is None:
            return given
        return [row for row in given if row["language"] in self._languages]

    @classmethod
    def of(cls, policy: Policy) -> "Lexicon":
        """Return the lexicon of a policy, in all its languages; compiled once for each."""
        return policy.derived(_lexicon_of)

    def speaking(self, languages: Collection[str]) -> "Lexicon":
        """Return the lexicon of some languages and English, which is spoken of code everywhere."""
        spoken = frozenset({ENGLISH, *languages})
        # Not asked of the function below each time: comparing whole tables takes 2 ms a session.
        if spoken not in self._speaking:
            self._speaking[spoken] = _lexicon(self._tables, spoken)
        return self._speaking[spoken]

    def runs_by_language(self, typed: str) -> list[tuple[str, "Lexicon"]]:
        """
        Return typed words in runs of one language, each with the lexicon that reads it.

        A sentence that tells none goes with those before it. In a session of English alone all is one run.
        """
        parts = sentences(typed, PROSE) if self._languages != frozenset({ENGLISH}) else []
        runs: list[tuple[str | None, list[str]]] = []
        for part in parts:
            language = language_in(part, self.small_words)
            if not runs or (language and runs[-1][0] and language != runs[-1][0]):
                runs.append((language, [part]))
            else:
                runs[-1] = (runs[-1][0] or language, [*runs[-1][1], part])
        if len(runs) < 2:
            return [(typed, self)]
        return [(" ".join(run), self.speaking({language} if language else ())) for language, run in runs]

    def marked_in(self, text: str) -> Marked | None:
        """Return what an assistant's passage is marked as; markers of one type add up as evidence."""
        doubts: dict[str, float] = {}
        best = (0.0, ENGLISH)
        for place in self._marker_set.places_in(text):
            marker = self._markers[place]
            doubts[marker.event_type] = doubts.get(marker.event_type, 1.0) * (1.0 - marker.weight)
            best = max(best, (marker.weight, marker.language))
        if not doubts:
            return None
        event_type = min(doubts, key=lambda name: doubts[name])
        return Marked(event_type, 1.0 - doubts[event_type], best[1])

    def kind_of(self, typed: str) -> EventKind:
        """Return the event and memory type of what a person typed."""
        parts = sentences(typed, PROSE) or [typed]
        return next((rule.kind for rule in self._kinds if rule.matches(parts)), QUESTION)

    def standing_in(self, typed: str) -> list[str]:
        """Return the sentences of a person's words that say what holds from then on, in their order."""
        parts = sentences(typed, PROSE) or [typed]
        rules = [rule for rule in self._kinds if rule.looks_at == "standing"]
        standing_parts = {part for rule in rules for part in rule.standing_in(parts)}
        return [sentence for sentence in parts if sentence in standing_parts]


def _compiled(row: dict[str, object]) -> re.Pattern[str]:
    return re.compile(str(row["pattern"]), re.IGNORECASE)


def _lexicon_of(policy: Policy) -> Lexicon:
    rows = (tuple(tuple(row.items()) for row in policy.tables[name].to_pylist()) for name in WORD_TABLES)
    return _lexicon(WordTables(tuple(rows), Vocabulary.of(policy), Reversals.of(policy)), None)


@lru_cache(maxsize=64)
def _lexicon(tables: WordTables, languages: frozenset[str] | None) -> Lexicon:
    return Lexicon(tables, languages)
