"""What a later turn of a session takes back, refutes, mends or replaces: candidates it closes (spec 5)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cortex.transforms.extract.candidate import PERSONS_LAYERS, TAG_LAYER, Candidate, Turn, text_of
from cortex.transforms.extract.changes import VALUE, Changes, names_in, plain_value
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.phrases import Phrase
from cortex.transforms.extract.since import with_history
from cortex.transforms.extract.standing import standing_signals
from cortex.transforms.extract.thread import VERY_LONG_TURN_CHARS
from cortex.transforms.words.facts import Fact
from cortex.transforms.words.overlap import share_of_fewer
from cortex.transforms.words.sentences import PROSE, sentences

_WORD = re.compile(r"[^\W\d_]{4,}")
# "to 0.52.0", "= 8000", "is true": the text says what a thing is set to, and not only that the number occurs.
_SETS = re.compile(
    r"(?:=|:|@|→|->|\bto|\bis|\bat|\bwith|\bby|\bon|\buses?|\bnow)\s{0,2}[\"'`^~(]{0,3}v?(\d[\d_.,]*k?)(?!\w)",
    re.IGNORECASE,
)
# Of the words of a claim so many return where it is taken back, or in the objection before.
RETRACTED_SHARE = 0.3
BEGINNING_CHARS = 3  # a stem may end otherwise than its word, never begin so
KEPT_WITHIN_CHARS = 70
REJECTED_CHARS = 120


@dataclass(frozen=True)
class Comparable:
    """A candidate as closings compare it: the last line it rests on, and its own words."""

    candidate: Candidate
    line: int
    lexicon: Lexicon

    @property
    def text(self) -> str:
        """What is stated."""
        return self.candidate.text

    @cached_property
    def is_persons(self) -> bool:
        """Whether a person typed or chose it."""
        return self.candidate.layer.endswith(PERSONS_LAYERS)

    @cached_property
    def fact(self) -> Fact:
        """Its stems, numbers and names."""
        return self.lexicon.vocabulary.fact(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of code it holds."""
        return names_in(self.text)

    @cached_property
    def parts_of_names(self) -> frozenset[str]:
        """The names of code it holds, and what stands between their dots and slashes."""
        return frozenset(part for name in self.names for part in re.split(r"[./]", name)) | self.names

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The numbers and versions that it holds."""
        return frozenset(plain_value(value) for value in VALUE.findall(self.text))

    @cached_property
    def stated(self) -> frozenset[str]:
        """The ones of them to which it says that something is set."""
        if not self.mentioned:
            return frozenset()
        return frozenset(plain_value(value) for value in _SETS.findall(self.text)) & self.mentioned

    @cached_property
    def leaves(self) -> frozenset[str]:
        """The stems of what it says itself was removed, replaced or left."""
        removed = self.lexicon.phrases.removed.pattern
        things = self.lexicon.reversals.things_left_in(self.text, self.lexicon.vocabulary, removed)
        return frozenset[str]().union(*(thing.word_set for thing, _ in things))

    @cached_property
    def is_of_gone(self) -> bool:
        """Whether it says itself that something has gone."""
        return bool(self.lexicon.phrases.is_gone.search(self.text))


# A rule yields the lines of the turns that close a statement, given all changes of its thread.
ClosingRule = Callable[[Comparable, Changes], Iterator[int]]


def with_overturned(
    candidates: Sequence[Candidate], turns: Sequence[Turn], lexicon: Lexicon
) -> list[Candidate]:
    """
    Return the candidates of one thread in their order, those that a later turn closes with the line of it.

    `turns` are the thread's, in order. Where several turns close a candidate the first one counts. The other
    candidates get signals of how they stand at the end: unconfirmed, an open proposal (`standing`).
    """
    changes = Changes.of(turns, lexicon)
    signals = standing_signals(candidates, turns, lexicon)
    closed = [
        _closed(_as_it_stands(candidate, own), changes, lexicon)
        for candidate, own in zip(candidates, signals, strict=True)
    ]
    return [
        with_history(candidate, changes, lexicon) if candidate.overturned_at is None else candidate
        for candidate in closed
    ]


def _as_it_stands(candidate: Candidate, signals: Mapping[str, float]) -> Candidate:
    """Return a candidate with its standing; what was proposed and never answered is no decision."""
    candidate = replace(candidate, signals={**candidate.signals, **signals})
    if candidate.memory_type == "decision" and "is_open_proposal" in signals:
        return replace(candidate, event_type="KNOWLEDGE_ACQUIRED", memory_type="progress")
    return candidate


def _closed(candidate: Candidate, changes: Changes, lexicon: Lexicon) -> Candidate:
    if candidate.memory_type is None or candidate.layer == TAG_LAYER or not candidate.lines:
        return candidate
    statement = Comparable(candidate, max(candidate.lines), lexicon)
    lines = [line for rule in CLOSING_RULES for line in rule(statement, changes) if line > statement.line]
    if not lines:
        return candidate
    return replace(candidate, overturned_at=min(lines), signals={**candidate.signals, "is_overtaken": 1.0})


def given_up_later(statement: Comparable, changes: Changes) -> Iterator[int]:
    """Yield where the thing that a statement is about was removed or replaced; faults stay as history."""
    if statement.candidate.memory_type == "gotcha" or statement.is_of_gone:
        return
    text = statement.text.casefold()
    for given_up in changes.given_up:
        is_heard = given_up.is_persons or not statement.is_persons
        if not is_heard or given_up.line <= statement.line or not _may_hold(text, given_up.thing):
            continue
        own = statement.fact.word_set - statement.leaves
        if given_up.thing.word_set <= own and _is_mainly(statement, given_up.thing):
            yield given_up.line


def _may_hold(text: str, thing: Fact) -> bool:
    """Return whether a text has the beginnings of a thing's words: stemming takes a third of extraction."""
    return all(stem[:BEGINNING_CHARS] in text for stem in thing.word_set)


def _is_mainly(statement: Comparable, thing: Fact) -> bool:
    """Return whether more than half of the names of code in a statement are those of the thing."""
    gone = [name for name in statement.names if name.casefold() in thing.names]
    return not thing.names or 2 * len(gone) > len(statement.names)


def kept_and_removed(statement: Comparable, changes: Changes) -> Iterator[int]:
    """Yield where an edit took out a name that the statement says is kept."""
    if statement.candidate.memory_type == "gotcha" or not statement.names & changes.removed.keys():
        return
    for kept in statement.lexicon.phrases.keeps.pattern.finditer(statement.text):
        around = statement.text[max(0, kept.start() - KEPT_WITHIN_CHARS) : kept.end() + KEPT_WITHIN_CHARS]
        yield from (changes.removed[name] for name in names_in(around) & changes.removed.keys())


def definition_removed(statement: Comparable, changes: Changes) -> Iterator[int]:
    """Yield where the definitions went that make up half of the names in a statement of the assistant."""
    if not changes.undefined or statement.is_persons or statement.is_of_gone:
        return
    gone = {
        name: line
        for name, line in changes.undefined.items()
        if line > statement.line and name in statement.text and name in statement.parts_of_names
    }
    if gone and 2 * len(gone) >= len(statement.names):
        yield max(gone.values())


def set_otherwise(statement: Comparable, changes: Changes) -> Iterator[int]:
    """Yield where the name that a statement sets to a value was set to another for good; not of a cause."""
    if not changes.values or statement.candidate.memory_type == "gotcha":
        return
    mentioned, stated = statement.mentioned, statement.stated
    if not stated:
        return
    text = statement.text.lower()
    outdated: list[int] = []
    still_right = 0
    for name, values in changes.values.items():
        if name not in text or not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
            continue
        _, final = values[-1]
        if final in mentioned:
            still_right += 1
        elif stated & {value for _, value in values}:
            outdated += [line for line, value in values if value == final and line > statement.line][:1]
    if len(outdated) > still_right:
        yield min(outdated)


def revised_later(statement: Comparable, changes: Changes) -> Iterator[int]:
    """Yield where an edit changed the value that a statement sets, in a line that shares a word with it."""
    if not changes.revised or statement.candidate.memory_type == "gotcha":
        return
    mentioned, stated = statement.mentioned, statement.stated
    if not stated:
        return
    words = {word.lower() for word in _WORD.findall(statement.text)}
    for at, revised in enumerate(changes.revised):
        is_mainly = 2 * len(stated & revised.old) >= len(stated)
        is_revised = is_mainly and not mentioned & revised.new and words & revised.words
        is_final = not any(stated & later.new & revised.old for later in changes.revised[at + 1 :])
        if is_revised and is_final and revised.line > statement.line:
            yield revised.line


def retracted(statement: Comparable, changes: Changes) -> Iterator[int]:
    """Yield where the assistant takes back what it claimed, of which the statement is a part."""
    is_document = len(text_of(statement.candidate.turn)) > VERY_LONG_TURN_CHARS
    if statement.is_persons or statement.candidate.step_status is not None or is_document:
        return  # of a document a part is taken back
    for retraction in changes.retractions:
        is_answered = retraction.since <= statement.line < retraction.line
        words = statement.fact.word_set
        if is_answered and share_of_fewer(words, retraction.words) >= RETRACTED_SHARE:
            yield retraction.line


def done_since(statement: Comparable, changes: Changes) -> Iterator[int]:
    """Yield where what a statement says is still to be committed, pushed or changed was done."""
    phrases = statement.lexicon.phrases
    if statement.is_persons:
        return
    if _is_all_about(phrases.awaits_commit, statement.text):
        yield from changes.commits
    if _is_all_about(phrases.awaits_push, statement.text):
        yield from changes.pushes
    if statement.candidate.files and _is_all_about(phrases.awaits_edit, statement.text):
        files = {path.rsplit("/", 1)[-1] for path in statement.candidate.files}
        later = [edit for edit in changes.edits if edit.line > statement.line]
        edited = {edit.path.rsplit("/", 1)[-1] for edit in later}
        if files <= edited:
            yield from (edit.line for edit in later if edit.path.rsplit("/", 1)[-1] in files)


def _is_all_about(phrase: Phrase, text: str) -> bool:
    """Return whether the sentences with a phrase make up half of a text: the rest would be lost with them."""
    if not phrase.search(text):
        return False
    parts = sentences(text, PROSE)
    return 2 * sum(len(part) for part in parts if phrase.search(part)) >= len(text)


CLOSING_RULES: tuple[ClosingRule, ...] = (
    given_up_later,
    kept_and_removed,
    definition_removed,
    set_otherwise,
    revised_later,
    retracted,
    done_since,
)
