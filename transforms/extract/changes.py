"""What calls and words of a thread changed: names and values in files, things given up, commits, pushes."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cortex.hooks.sources import SHELL_TOOLS
from cortex.transforms.extract.candidate import Turn, line_of, text_of
from cortex.transforms.extract.git import COMMIT, PUSH, commit_message
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.structural import Call, calls_that_ran, input_of, objects_of
from cortex.transforms.extract.thread import PERSON
from cortex.transforms.words.facts import CODE_NAME, Fact

# How `turn_text` ends a value that it has cut: what is missing behind it may still be there.
_CUT = "characters cut]"
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:[.\-/][A-Za-z_$][\w$]*)*")
NAME_CHARS_MIN = 5
# A colon sets a value only before a space: host:3000 and 12:30 are names.
_SET = re.compile(
    r"([A-Za-z_][\w./-]{2,60})[\"'`]?\s{0,2}(?:=>|==?|:=|@|:\s)\s?[\"'`^~v]{0,3}(\d[\w.,]{0,20})\b"
)
# A number that is worth comparing has two digits at least; one digit stands in every other line.
VALUE = re.compile(r"(?<![\w.])v?(\d[\d_.,]*\dk?|\dk)(?![\w])", re.IGNORECASE)
_CONTEXT = re.compile(r"[^\W\d_]{4,}")
_DEFINED = re.compile(
    r"\b(?:def|func|function|fn|class|type|interface|struct|enum|const|let|var)\s+(?:\([^()]{0,60}\)\s*)?"
    r"([A-Za-z_]\w{4,60})"
)
_THOUSANDS = re.compile(r"(\d+(?:\.\d+)?)k")
# A prompt longer than this holds pasted words, which give up nothing of this project.
TYPED_CHARS_MAX = 400
# What is taken back is said in the first sentences of an answer, of the answer before it.
RETRACTION_CHARS = 400
CLAIMS_BACK = 2
# Two words name no thing ("first two", "session navigation") unless they are a name of code.
THING_WORDS_MIN = 3
CODE_NAME_CHARS_MIN = 6
_IN_CODE = re.compile(r"\w[_./]\w|[a-z][A-Z]")


@dataclass(frozen=True)
class FileEdit:
    """One change of a file that was made: what stood there and what stands there now."""

    line: int
    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Revised:
    """A line in which an edit changed nothing but numbers: its words, the values before, those after."""

    line: int
    words: frozenset[str]
    old: frozenset[str]
    new: frozenset[str]


@dataclass(frozen=True)
class GivenUp:
    """A thing that a turn removes, replaces or leaves: where, its words, its names of code, by a person."""

    line: int
    thing: Fact
    words: str
    is_persons: bool


@dataclass(frozen=True)
class Retraction:
    """An assistant takes back a claim: where, from which line on it was made, and the words about it."""

    line: int
    since: int
    words: frozenset[str]


@dataclass(frozen=True)
class Changes:
    """All changes of one thread, each with the line at which it was made."""

    edits: tuple[FileEdit, ...]
    given_up: tuple[GivenUp, ...]
    commits: tuple[int, ...]
    pushes: tuple[int, ...]
    values: Mapping[str, tuple[tuple[int, str], ...]]  # by name, each value it was set to
    revised: tuple[Revised, ...]
    retractions: tuple[Retraction, ...]
    removed: Mapping[str, int]  # names of code that no edit brought back, and the line that took them out
    undefined: Mapping[str, int]  # the same of definitions of functions, classes and types
    touched: Mapping[str, int]  # names of code and files in small letters, the line of the last edit
    prompts: tuple[int, ...]

    @classmethod
    def of(cls, turns: Sequence[Turn], lexicon: Lexicon) -> "Changes":
        """Return the changes that the turns of one thread, in order, made."""
        calls = [call for call in calls_that_ran(turns) if not call.failed]
        shells = [call for call in calls if call.tool in SHELL_TOOLS]
        edits = tuple(_edits(calls))
        return cls(
            edits,
            tuple(_given_up(turns, shells, lexicon)),
            tuple(line_of(call.turn) for call in shells if COMMIT.search(call.argument)),
            tuple(line_of(call.turn) for call in shells if PUSH.search(call.argument)),
            _values(edits, shells),
            tuple(revised for edit in edits for revised in _revised(edit)),
            tuple(_retractions(turns, lexicon)),
            _removed(edits),
            _undefined(edits),
            _touched(edits),
            tuple(line_of(turn) for turn in turns if turn["kind"] in PERSON),
        )

    def is_edited_before_prompt(self, line: int) -> bool:
        """Return whether a file was changed after a line and before a person spoke again."""
        until = next((prompt for prompt in self.prompts if prompt > line), None)
        return any(edit.line > line and (until is None or edit.line < until) for edit in self.edits)


def names_in(text: str) -> frozenset[str]:
    """
    Return the names of code in a text.

    >>> sorted(names_in("Keep parse_row, `tide-table.py` and the loader"))
    ['parse_row', 'tide-table.py']
    """
    return frozenset(
        word
        for word in _NAME.findall(text)
        if len(word) >= NAME_CHARS_MIN and ("-" in word or CODE_NAME.search(word))
    )


def plain_value(value: str) -> str:
    """
    Return a number or version in the form in which two are compared.

    >>> plain_value("8_000"), plain_value("8k"), plain_value("v1.2.")
    ('8000', '8000', '1.2')
    """
    bare = value.strip(".,").replace("_", "").replace(",", "").lower().removeprefix("v")
    thousands = _THOUSANDS.fullmatch(bare)
    return str(int(float(thousands[1]) * 1000)) if thousands else bare


def _edits(calls: Sequence[Call]) -> Iterator[FileEdit]:
    for call in calls:
        given, line = input_of(call.turn), line_of(call.turn)
        path = str(given.get("file_path") or "")
        parts = objects_of(given, "edits") if call.tool == "MultiEdit" else []
        parts += [dict(given)] if call.tool in ("Edit", "Write") else []
        for part in parts:
            new = part.get("new_string") or part.get("content")
            yield FileEdit(line, path, str(part.get("old_string") or ""), str(new or ""))


def _revised(edit: FileEdit) -> Iterator[Revised]:
    before = {VALUE.sub("#", line).strip(): line for line in edit.old.split("\n") if VALUE.search(line)}
    for line in edit.new.split("\n"):
        old = before.get(VALUE.sub("#", line).strip())
        if old is not None and old.strip() != line.strip():
            values = [frozenset(plain_value(value) for value in VALUE.findall(text)) for text in (old, line)]
            words = frozenset(word.lower() for word in _CONTEXT.findall(line))
            yield Revised(edit.line, words, values[0] - values[1], values[1] - values[0])


def _removed(edits: Sequence[FileEdit]) -> dict[str, int]:
    """Return the names that an edit took out and none brought in afterwards, with the line of that edit."""
    brought: dict[str, int] = {}
    taken: dict[str, int] = {}
    for edit in edits:
        old, new = names_in(edit.old), names_in(edit.new)
        brought.update(dict.fromkeys(new, edit.line))
        if _CUT not in edit.new:
            taken.update(dict.fromkeys(old - new, edit.line))
    return {name: line for name, line in taken.items() if brought.get(name, -1) < line}


def _undefined(edits: Sequence[FileEdit]) -> dict[str, int]:
    """Return what was defined in a file until an edit took it out for good, with the line of that edit."""
    gone: dict[str, int] = {}
    for edit in edits:
        if _CUT in edit.new:
            continue
        old, new = set(_DEFINED.findall(edit.old)), set(_DEFINED.findall(edit.new))
        gone.update(dict.fromkeys(old - new, edit.line))
        for name in new:
            gone.pop(name, None)
    return gone


def _touched(edits: Sequence[FileEdit]) -> dict[str, int]:
    """Return the line of the last edit of each file, and of each name of code that stood or stands there."""
    lines: dict[str, int] = {}
    for edit in edits:
        path = edit.path.replace("\\", "/").rsplit("/", 1)[-1]
        for name in {path, *names_in(edit.old), *names_in(edit.new)}:
            lines[name.lower()] = edit.line
    return lines


def _values(edits: Sequence[FileEdit], shells: Sequence[Call]) -> dict[str, tuple[tuple[int, str], ...]]:
    """Return each value that a name was set to, by edits and by commands as `get name@1.2`, in order."""
    written = [(edit.line, match) for edit in edits for match in _SET.finditer(edit.new)]
    written += [
        (line_of(call.turn), match)
        for call in shells
        for match in _SET.finditer(call.argument[:1_000])
        if match[0][len(match[1])] in "@="
    ]
    values: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line, match in sorted(written, key=lambda pair: pair[0]):
        values[match[1].rsplit("/", 1)[-1].lower()].append((line, plain_value(match[2])))
    return {name: tuple(of_name) for name, of_name in values.items()}


def _retractions(turns: Sequence[Turn], lexicon: Lexicon) -> Iterator[Retraction]:
    """Yield where the first words of an answer take back a claim of the one before."""
    prompts: list[Turn] = []
    is_answer = False
    for turn in turns:
        if turn["kind"] in PERSON:
            prompts.append(turn)
            is_answer = True
        elif turn["kind"] == "text":
            head = text_of(turn)[:RETRACTION_CHARS]
            if is_answer and lexicon.phrases.retracts.search(head):
                objection = text_of(prompts[-1])[:TYPED_CHARS_MAX]
                words = lexicon.vocabulary.fact(f"{objection} {head}").word_set
                since = line_of(prompts[-CLAIMS_BACK]) if len(prompts) >= CLAIMS_BACK else 0
                yield Retraction(line_of(turn), since, words)
            is_answer = False


def _given_up(turns: Sequence[Turn], shells: Sequence[Call], lexicon: Lexicon) -> Iterator[GivenUp]:
    """Yield what a person, a commit or a report says was removed, replaced or left."""
    spoken = [(line_of(call.turn), commit_message(call.argument), False) for call in shells]
    following = [*turns[1:], None][: len(turns)]
    for turn, after in zip(turns, following, strict=True):
        if turn["kind"] in PERSON and turn["kind"] != "plan" and len(text_of(turn)) <= TYPED_CHARS_MAX:
            spoken.append((line_of(turn), text_of(turn), True))
        elif turn["kind"] == "text" and (after is None or after["kind"] in PERSON):
            spoken.append((line_of(turn), text_of(turn), False))
    removed = lexicon.phrases.removed.pattern
    for line, text, is_persons in spoken:
        for thing, words in lexicon.reversals.things_left_in(text, lexicon.vocabulary, removed):
            is_code = any(len(name) >= CODE_NAME_CHARS_MIN for name in thing.names) and _IN_CODE.search(words)
            if len(thing.word_set) >= THING_WORDS_MIN or is_code:
                yield GivenUp(line, thing, words, is_persons)
