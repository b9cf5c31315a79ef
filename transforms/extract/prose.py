"""Layer 2 candidates: every passage of a session that might be worth keeping, with its context and signals."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cortex.transforms.extract.markers import Markers, Reading
from cortex.transforms.extract.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.sentences import (
    LONGEST_CHARS,
    SHORTEST_CHARS,
    Passage,
    passages,
    plain,
    sentences,
    shortened,
)
from cortex.transforms.extract.signals import COMPILED, Corpus, content_words, signals
from cortex.transforms.extract.tags import without_tags
from cortex.transforms.extract.thread import Place, places

# A pasted log, file or document is not what the person says; two short paragraphs are.
TYPED_CHARS = 1500
PASTED_PASSAGES = 3
# A short prompt ("yes, option 2") says nothing without the question it answers.
TERSE_CHARS = 60
QUESTION_CHARS = 140
HEADING_CHARS = 90
# Of a prompt's words this many in a later one: it is asked again, with a change.
SAID_AGAIN_SHARE = 0.6
REPLY_CHARS = 260

# Prompts of a shell, stamped log lines, stack frames, markup and JSON: shown by the person, not said.
PASTED_LINE = re.compile(
    r"^\s*(?:[➜❯$%]\s|\w+@[\w.-]+[:~]|\[?\d{1,4}[-:/.]\d{2}[-:/.]\d{2}|at .+:\d+|File \"|Traceback|Loading |[{}\[\]<\"'(]\S*.*[,{}\[\]>)]$|[\w.]+(?:Error|Exception): |\d+\s*[|│]|[│└├╭╰┌]|\S+\s{3,}\S+\s{3,})"
)
FILLER = re.compile(
    r"^(?:(?:perfect|excellent|great|good|awesome|nice|wonderful|done|aha|ah|oh|interesting|hmm|ok(?:ay)?|right|exactly|absolutely|yes|got it|i see"
    r"|(?:good|great|nice|fair) (?:point|catch|question|call|idea|instinct|news|progress|choice)|you'?re (?:absolutely )?right|i see (?:the|it)(?: \w+)?(?: now)?|now i (?:see|understand)(?: it| the \w+)?(?: now)?)\s*(?:[!.,:]|[-–—]+)\s*)+",
    re.IGNORECASE,
)
LEAD = re.compile(r"^(?:now|so|actually|and|also|but|then)\s*,\s+", re.IGNORECASE)
GENERIC_HEADING = re.compile(
    r"^(?:summary|changes?(?: made)?|what (?:changed|was done|i did)|overview|details?|result|notes?|done|key (?:changes|points|aspects)|here(?:'s| is| are)\b.*|now i\b.*|the changes are|i(?:'ve| have)\b.*|let me\b.*|what i (?:did|changed)|this (?:provides|includes|gives|means|will)|it has)$",
    re.IGNORECASE,
)


REASON = re.compile(
    r"\b(?:because|since|so that|due to|in order to|to avoid|otherwise)\s+(.{8,200}?)(?:[.;]|$)",
    re.IGNORECASE,
)
REJECTED = re.compile(
    r"\b(?:instead of|rather than|as opposed to|no longer)\s+(.{3,120}?)(?:[.,;:)]|$)", re.IGNORECASE
)
FILE = re.compile(
    r"(?<![\w/])[\w./@~+-]*[\w-]\.(?:py|tsx?|jsx?|go|rs|json|ya?ml|toml|md|sh|html|css|rb|sql|java|kt|swift|cfg|ini|lock)\b"
)
RENAMED = re.compile(r"\brenam\w*\b[^.]{0,60}?\bfrom [`\"']?([\w./:@-]+)[`\"']? to ", re.IGNORECASE)
GLOBAL_WISH = re.compile(
    r"\b(?:always|never|i (?:really )?prefer|from now on|in general|i (?:hate|dislike|don't like))\b",
    re.IGNORECASE,
)


def prose_candidates(turns: Sequence[Turn], markers: Markers) -> list[Candidate]:
    """
    Return the passages of one thread as candidates, in order.

    `turns` are the turns of one transcript in its order, without rewound ones and without those of subagents.
    """
    where = places(turns)
    corpus = Corpus.of(
        (text_of(turn), place.speaker == "user") for turn, place in zip(turns, where, strict=True) if place
    )
    found: list[tuple[str, Candidate]] = []
    for index, place in enumerate(where):
        if place is None or turns[index]["kind"] == "choice":
            continue
        for passage, text, lines in _said(turns, index, place):
            reading = markers.read(text, place.speaker)
            shown = signals(passage, place, corpus, reading.strengths)
            found.append((passage.heading, _candidate(turns[index], lines, text, reading, shown)))
    return _with_overtaken(found)


def _with_overtaken(found: list[tuple[str, Candidate]]) -> list[Candidate]:
    """Mark what is said again later: a wish or a name by a later one, a draft's section by the next draft's."""
    old_names: list[str] = []
    later: dict[str, list[set[str]]] = {}
    marked: list[Candidate] = []
    for heading, candidate in reversed(found):
        key = "a person" if "is_user" in candidate.signals else heading
        words = content_words(candidate.text.split(" → ")[0])
        seen = later.setdefault(key, [])
        if key and any(len(words & other) >= SAID_AGAIN_SHARE * len(words) for other in seen):
            candidate = replace(candidate, signals={**candidate.signals, "is_overtaken": 1.0})
        elif any(old in candidate.text for old in old_names):
            candidate = replace(candidate, signals={**candidate.signals, "is_overtaken": 1.0})
        seen.append(words)
        if "is_user" in candidate.signals:
            old_names.extend(name for name in RENAMED.findall(candidate.text) if len(name) > 5)
        marked.append(candidate)
    return marked[::-1]


def _candidate(
    turn: Turn, lines: tuple[int, ...], text: str, reading: Reading, shown: dict[str, float]
) -> Candidate:
    event_type, memory_type = reading.verdict(is_person="is_user" in shown)
    reason, rejected = REASON.search(text), REJECTED.search(text)
    return Candidate(
        turn, lines, text, event_type, memory_type, f"layer2:{reading.language}", shown, str(turn["trust"]),
        reason=reason[1].strip() if reason else None,
        rejected=rejected[1].strip() if rejected else None,
        files=tuple(dict.fromkeys(FILE.findall(text)))[:8],
    )  # fmt: skip


def _said(turns: Sequence[Turn], index: int, place: Place) -> Iterator[tuple[Passage, str, tuple[int, ...]]]:
    turn = turns[index]
    line = line_of(turn)
    if turn["kind"] in ("prompt", "command", "rejection"):
        yield from _spoken(turns, index, place, line)
        return
    for passage in passages(without_tags(text_of(turn))):
        text = cleaned(passage)
        if len(text) >= SHORTEST_CHARS:
            yield passage, text, (line,)


def cleaned(passage: Passage) -> str:
    """Return a passage without leading filler, under its heading where that says something."""
    text = FILLER.sub("", passage.text)
    text = LEAD.sub("", text)
    text = text[:1].upper() + text[1:]
    heading = sentences(FILLER.sub("", passage.heading) or " ")[-1:]
    if (
        passage.block != "paragraph"
        and heading
        and len(heading[0]) <= HEADING_CHARS
        and not GENERIC_HEADING.match(heading[0])
    ):
        text = f"{heading[0]}: {text}"
    return shortened(text, LONGEST_CHARS)


def _spoken(
    turns: Sequence[Turn], index: int, place: Place, line: int
) -> Iterator[tuple[Passage, str, tuple[int, ...]]]:
    """Yield a person's passages; the first with the question it answers or with the answer it got."""
    typed = "\n".join(line for line in text_of(turns[index]).split("\n") if not PASTED_LINE.match(line))
    said = passages(typed)
    if len(typed) > TYPED_CHARS:
        said = said[:PASTED_PASSAGES]
    for number, passage in enumerate(said):
        text, lines = passage.text, (line,)
        if number == 0:
            question = asked(place.answers) if len(typed) <= TERSE_CHARS else ""
            if question and place.answers:
                text, lines = f"{text} (asked: {question})", (line, line_of(place.answers))
        if number == len(said) - 1 and len(text) < LONGEST_CHARS - 80:
            reply, reply_line = answered(turns, index)
            if reply:
                text, lines = f"{text} → {reply}", (*lines, reply_line)
        if len(text) >= SHORTEST_CHARS or len(said) == 1:
            yield passage, shortened(text, LONGEST_CHARS), lines


def asked(turn: Turn | None) -> str:
    """Return the last question of an assistant's text, or nothing."""
    if turn is None:
        return ""
    tail = sentences(plain(text_of(turn)[-600:]))
    for sentence in reversed(tail[-3:]):
        if sentence.endswith("?"):
            return shortened(sentence, QUESTION_CHARS)
    return ""


def answered(turns: Sequence[Turn], index: int) -> tuple[str, int]:
    """Return the first substantial sentences of the answer to a prompt, and their line."""
    for turn in turns[index + 1 : index + 40]:
        if turn["kind"] in ("prompt", "command", "rejection", "choice", "plan"):
            break
        if turn["kind"] != "text":
            continue
        for passage in passages(text_of(turn))[:3]:
            text = LEAD.sub("", FILLER.sub("", passage.text))
            if len(text) >= SHORTEST_CHARS and not COMPILED["narrates"].search(text):
                return shortened(text, REPLY_CHARS), line_of(turn)
    return "", 0
