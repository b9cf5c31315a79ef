"""The word lists of layer 2, compiled: which event types a passage speaks of, and what its wording shows."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from cortex.transforms.extract.kinds import Kinds
from cortex.transforms.extract.languages import small_words
from cortex.transforms.extract.phrases import ENGLISH, Phrasebook
from cortex.transforms.policy import Policy
from cortex.transforms.words.facts import Vocabulary
from cortex.transforms.words.pattern_set import PatternSet
from cortex.transforms.words.reversal import Reversals

Rows = tuple[tuple[tuple[str, object], ...], ...]
WORD_TABLES = ("markers", "signal_patterns", "kinds", "phrases", "language_words")


@dataclass(frozen=True)
class WordTables:
    """The rows of WORD_TABLES, how strong a decision's markers must be, and what compares two statements."""

    rows: tuple[Rows, ...]
    decision_least_strength: float
    vocabulary: Vocabulary
    reversals: Reversals


@dataclass(frozen=True)
class Marker:
    """One row of markers.csv."""

    language: str
    speaker: str
    event_type: str
    memory_type: str
    pattern: re.Pattern[str]
    weight: float


@dataclass(frozen=True)
class MarkerReading:
    """What the markers say of a passage: strength by event type, and the language of the strongest."""

    strengths: dict[str, float]
    memory_types: dict[str, str]
    language: str


class Lexicon:
    """The rows of WORD_TABLES in some languages, compiled and sorted by whose words they look at."""

    def __init__(self, tables: WordTables, languages: Collection[str] | None = None) -> None:
        self._tables, self._languages = tables, languages
        self._speaking: dict[frozenset[str], Lexicon] = {}
        self.small_words = small_words(dict(row) for row in tables.rows[-1])
        self.vocabulary, self.reversals = tables.vocabulary, tables.reversals

    # Compiled when first looked at: all languages take half a second, and a session speaks one or two.

    @cached_property
    def phrases(self) -> Phrasebook:
        """The turns of phrase."""
        return Phrasebook.of_rows(self._spoken(3))

    @cached_property
    def kinds(self) -> Kinds:
        """The rules that say what kind of thing a passage says."""
        return Kinds.of(self._spoken(2), self._tables.decision_least_strength, self.phrases.passing)

    @cached_property
    def _markers(self) -> dict[str, list[Marker]]:
        compiled = [_marker(row) for row in self._spoken(0)]
        return {
            speaker: [marker for marker in compiled if marker.speaker in (speaker, "any")]
            for speaker in ("user", "assistant")
        }

    @cached_property
    def _marker_sets(self) -> dict[str, PatternSet]:
        return {
            speaker: PatternSet([marker.pattern for marker in markers])
            for speaker, markers in self._markers.items()
        }

    @cached_property
    def _signal_sets(self) -> dict[str, tuple[list[str], PatternSet]]:
        """The signals of what they look at, and their patterns in the same order."""
        places = {looks_at for _, looks_at, _ in self._patterns}
        rows = {place: [row for row in self._patterns if row[1] == place] for place in sorted(places)}
        return {
            place: ([signal for signal, _, _ in of_place], PatternSet([row[2] for row in of_place]))
            for place, of_place in rows.items()
        }

    def _signals_in(self, text: str, looks_at: str) -> list[str]:
        if not text or looks_at not in self._signal_sets:
            return []
        signals, patterns = self._signal_sets[looks_at]
        return [signals[at] for at in patterns.places_in(text)]

    @cached_property
    def _patterns(self) -> list[tuple[str, str, re.Pattern[str]]]:
        return [
            (str(row["signal"]), str(row["looks_at"]), re.compile(str(row["pattern"]), re.IGNORECASE))
            for row in self._spoken(1)
        ]

    def _spoken(self, table: int) -> list[dict[str, object]]:
        return _spoken(self._tables.rows[table], self._languages)

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

    def read(self, text: str, speaker: str) -> MarkerReading:
        """Return the strengths of a passage: markers of one type add up as independent evidence."""
        doubts: dict[str, float] = {}
        kinds: dict[str, tuple[float, str]] = {}
        best = (0.0, "en")
        for place in self._marker_sets[speaker].places_in(text):
            marker = self._markers[speaker][place]
            name = marker.event_type
            doubts[name] = doubts.get(name, 1.0) * (1.0 - marker.weight)
            kinds[name] = max(kinds.get(name, (0.0, "")), (marker.weight, marker.memory_type))
            best = max(best, (marker.weight, marker.language))
        return MarkerReading(
            {name: 1.0 - doubt for name, doubt in doubts.items()},
            {name: kind for name, (_weight, kind) in kinds.items()},
            best[1],
        )

    def shown_by(self, text: str, heading: str, speaker: str) -> Iterator[str]:
        """Yield the signals that the wording of a passage or of its heading shows."""
        if speaker == "user":
            yield from self._signals_in(text, "user")
            return
        yield from self._signals_in(text, "assistant")
        yield from self._signals_in(heading, "heading")
        yield from self._signals_in(text, "both")
        yield from self._signals_in(heading, "both")

    def kind_of(self, text: str, reading: MarkerReading | None = None) -> tuple[str, str]:
        """Return the event and memory type of an assistant's text; `reading` as `read` gave it."""
        read = reading or self.read(text, "assistant")
        return self.kinds.of_assistant(text, read.strengths, read.memory_types)

    def narrates(self, text: str) -> bool:
        """Return whether the assistant only says what it is about to do."""
        return any(signal == "narrates" and pattern.search(text) for signal, _, pattern in self._patterns)


def _marker(row: dict[str, object]) -> Marker:
    return Marker(
        str(row["language"]),
        str(row["speaker"]),
        str(row["event_type"]),
        str(row["memory_type"]),
        re.compile(str(row["pattern"]), re.IGNORECASE),
        float(str(row["weight"])),
    )


def _spoken(rows: Rows, languages: Collection[str] | None) -> list[dict[str, object]]:
    given = [dict(row) for row in rows]
    return given if languages is None else [row for row in given if row["language"] in languages]


def _lexicon_of(policy: Policy) -> Lexicon:
    rows = (tuple(tuple(row.items()) for row in policy.tables[name].to_pylist()) for name in WORD_TABLES)
    least = policy.threshold("decision_least_strength")
    return _lexicon(WordTables(tuple(rows), least, Vocabulary.of(policy), Reversals.of(policy)), None)


@lru_cache(maxsize=64)
def _lexicon(tables: WordTables, languages: frozenset[str] | None) -> Lexicon:
    return Lexicon(tables, languages)
