"""What the client itself sums up: recaps of a session that was left, summaries at a compaction (spec 5)."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cortex.transforms.extract.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.kinds import FACT
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.phrases import FILE, Phrasebook, part_of
from cortex.transforms.extract.sentences import LONGEST_CHARS, SHORTEST_CHARS, Passage, plain
from cortex.transforms.extract.signals import Corpus, signals
from cortex.transforms.extract.statements import passages
from cortex.transforms.extract.thread import PERSON, Place
from cortex.transforms.words.overlap import share_of_fewer
from cortex.transforms.words.scripts import long_words
from cortex.transforms.words.sentences import PROSE, sentences, shortened

RECAP_FILES = 8
# A later recap begins with what the one before said; that much of the shorter one's words is the same fact.
REPETITION_SHARE = 0.6
STATEMENTS_COMPARED = 200  # of about ten recaps and a summary that follow
TURNS_COMPARED = 300
# A statement sums up the turn that has this much of its words.
SUMS_UP_SHARE = 0.5
_SUMMARY_BEGINS = re.compile(r"^Summary:\s*$", re.MULTILINE)
_SECTION = re.compile(r"^(?:#{1,4} )?\d{1,2}\. +\**([A-Z][^\n:*]{2,60}?)\**:?\**[ \t]*$", re.MULTILINE)
_WIDE_STOP = re.compile(r"(?<=[。！？])(?=\S)")


@dataclass(frozen=True)
class Recap:
    """A recap taken apart: what the session is for, what was done, what comes next."""

    goal: str = ""
    done: tuple[str, ...] = ()
    next_step: str = ""


def recap_candidates(turns: Sequence[Turn], lexicon: Lexicon) -> Iterator[Candidate]:
    """
    Yield what the recaps and summaries of one thread state; a later one's word replaces an earlier one's.

    `turns` are all of a main thread's. A summary with no work before it is of the session before.
    """
    stated = [
        (turn, passage, mark)
        for turn in summed_up(turns)
        for passage, mark in (
            _of_recap(turn, lexicon.phrases)
            if turn["kind"] == "recap"
            else _of_summary(turn, lexicon.phrases)
        )
    ]
    words = [long_words(passage.text) for _, passage, _ in stated]
    sources = [(turn, long_words(text_of(turn))) for turn in turns if turn["kind"] in PERSON | {"text"}]
    for at, (turn, passage, mark) in enumerate(stated):
        after = range(at + 1, min(len(stated), at + 1 + STATEMENTS_COMPARED))
        later = [words[number] for number in after if stated[number][0] is not turn]
        if not any(share_of_fewer(words[at], other) >= REPETITION_SHARE for other in later):
            yield _candidate(turn, passage, mark, _lines(turn, words[at], sources), lexicon)


def summed_up(turns: Sequence[Turn]) -> list[Turn]:
    """Return the recaps and summaries that tell of this thread: those with an answer before them."""
    first = next((at for at, turn in enumerate(turns) if turn["kind"] in ("text", "tool_call")), len(turns))
    return [turn for turn in turns[first:] if turn["kind"] in ("recap", "summary")]


def recap_parts(text: str, phrases: Phrasebook) -> Recap:
    """Return a recap taken apart."""
    goal, next_step = "", ""
    done: list[str] = []
    for sentence in prose_sentences(text):
        if step := phrases.next_named.match(sentence):
            next_step = "" if phrases.no_next.search(part_of(step)) else part_of(step)
        elif phrases.no_next.search(sentence) or sentence.endswith(("?", "？")):
            continue
        elif aim := phrases.goal_named.match(sentence):
            goal = goal or part_of(aim)
        else:
            done.append(as_deed(sentence, phrases))
    return Recap(_bare(goal), tuple(done), _bare(next_step))


def as_deed(sentence: str, phrases: Phrasebook) -> str:
    """Return what the assistant says it did with the deed first, without filler."""
    text = phrases.own_deed.cut_from(phrases.without_filler(sentence).strip())
    first = text.split(" ", 1)[0].rstrip(",.:")
    return text[:1].upper() + text[1:] if first.isalpha() else text  # no file name and no version


def prose_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph; a full stop of Chinese or Japanese needs no space."""
    return [part for sentence in sentences(plain(text), PROSE) for part in _WIDE_STOP.split(sentence)]


def _bare(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(" .。;:")


def _of_recap(turn: Turn, phrases: Phrasebook) -> Iterator[tuple[Passage, str]]:
    for position, statement in enumerate(recap_parts(text_of(turn), phrases).done):
        if len(statement) >= SHORTEST_CHARS:
            yield Passage(statement, "", "paragraph", position), "recap"


def _of_summary(turn: Turn, phrases: Phrasebook) -> Iterator[tuple[Passage, str]]:
    text = text_of(turn)
    begin = _SUMMARY_BEGINS.search(text)
    _, *cells = _SECTION.split(text[begin.end() :] if begin else text)
    for heading, body in zip(cells[::2], cells[1::2], strict=True):
        errors = phrases.summary_errors.search(heading)
        if errors or phrases.summary_knowledge.search(heading):
            for passage in passages(body, phrases):
                if len(passage.text) >= SHORTEST_CHARS:
                    yield passage, "summary_errors" if errors else "summary"


def _candidate(
    turn: Turn, passage: Passage, mark: str, lines: tuple[int, ...], lexicon: Lexicon
) -> Candidate:
    text = shortened(passage.text, LONGEST_CHARS)
    reading = lexicon.read(text, "assistant")
    kind = lexicon.kind_of(text, reading)
    if mark == "summary_errors":
        kind = ("ERROR_RESOLVED", "gotcha")
    elif mark == "recap" and kind == FACT:
        kind = ("TASK_COMPLETED", "progress")
    place = Place("assistant", None, frozenset((mark,)))
    return Candidate(
        turn, lines, text, *kind, f"layer1:{turn['kind']}",
        signals(passage, place, Corpus.of([]), reading.strengths, lexicon), "assistant",
        files=tuple(dict.fromkeys(FILE.findall(text)))[:RECAP_FILES],
    )  # fmt: skip


def _lines(turn: Turn, words: set[str], sources: Sequence[tuple[Turn, set[str]]]) -> tuple[int, ...]:
    """Return the line of a recap, and of the latest turn before it that it sums up best."""
    end = bisect_left(sources, line_of(turn), key=lambda source: line_of(source[0]))
    near = sources[max(0, end - TURNS_COMPARED) : end]
    shared, line = max(((len(words & own), line_of(source)) for source, own in near), default=(0, 0))
    is_summed_up = words and shared >= SUMS_UP_SHARE * len(words)
    return (line_of(turn), line) if is_summed_up else (line_of(turn),)
