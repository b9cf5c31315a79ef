"""What kind of thing a passage says: a lasting wish, a choice, a fault, a request, a change log, a fact."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cortex.transforms.extract.phrases import Phrase
from cortex.transforms.words.sentences import PROSE, is_question, sentences

NUMBERING = re.compile(r"^[\W\d]+")
# Event type and memory type.
EventKind = tuple[str, str]
# Where nothing says what a passage is: an explanation of the day.
FACT: EventKind = ("KNOWLEDGE_ACQUIRED", "context")


@dataclass(frozen=True)
class KindRule:
    """One row of kinds.csv; the first that matches says the kind."""

    speaker: str
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
                return bool(self.pattern.search(NUMBERING.sub("", parts[0])))
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


class Kinds:
    """The rules of kinds.csv in their order, and how strong the markers of a decision must be."""

    def __init__(self, rules: list[KindRule], decision_least_strength: float) -> None:
        self._rules = rules
        self._decision_least_strength = decision_least_strength

    @classmethod
    def of(cls, rows: list[dict[str, object]], decision_least_strength: float, passing: Phrase) -> "Kinds":
        """Return the rules of the rows of kinds.csv."""
        return cls([_rule(row, passing) for row in rows], decision_least_strength)

    def of_person(self, own_words: str) -> EventKind:
        """Return the kind of a person's own words, without the answer that they got."""
        return next(self._ruled(own_words, "user"), FACT)

    def standing(self, text: str) -> list[str]:
        """Return the sentences of a person's words that say what holds from then on, in their order."""
        parts = sentences(text, PROSE) or [text]
        rules = [rule for rule in self._rules if rule.looks_at == "standing"]
        standing_parts = {part for rule in rules for part in rule.standing_in(parts)}
        return [sentence for sentence in parts if sentence in standing_parts]

    def of_assistant(
        self, text: str, strengths: Mapping[str, float], memory_types: Mapping[str, str]
    ) -> EventKind:
        """
        Return the kind of an assistant's words: by its rules, else by the strongest of their markers.

        A choice has to be marked by more than "moved" or "renamed", which every change log holds.
        """
        ruled = next(self._ruled(text, "assistant"), None)
        if ruled is not None:
            return ruled
        sure = {
            name: strength
            for name, strength in strengths.items()
            if memory_types[name] != "decision" or strength >= self._decision_least_strength
        }
        if not sure:
            return FACT
        best = max(sure, key=lambda name: sure[name])
        return best, memory_types[best]

    def _ruled(self, text: str, speaker: str) -> Iterator[EventKind]:
        parts = sentences(text, PROSE) or [text]
        return (rule.kind for rule in self._rules if rule.speaker == speaker and rule.matches(parts))


def _rule(row: dict[str, object], passing: Phrase) -> KindRule:
    return KindRule(
        str(row["speaker"]),
        str(row["looks_at"]),
        (str(row["event_type"]), str(row["memory_type"])),
        re.compile(str(row["pattern"]), re.IGNORECASE),
        passing,
    )
