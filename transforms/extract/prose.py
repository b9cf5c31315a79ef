"""Layers 2 and 3: what the assistant says in prose, by weighted markers, and what it tags as a memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cortex.hooks.prose import own_prose as self_report
from cortex.hooks.prose.memory_types import MEMORY_TAGS
from cortex.hooks.prose.own_prose import SIGN, own_prose
from cortex.transforms.extract.language.candidate import TAG_LAYER, Candidate, Turn, line_of, text_of
from cortex.transforms.extract.language.lexicon import Lexicon
from cortex.transforms.extract.language.phrases import FILE
from cortex.transforms.extract.language.statements import (
    HEADING_CHARS,
    MAX_CHARS,
    MIN_CHARS,
    Passage,
    passages,
    plain,
)
from cortex.transforms.extract.plans import subject_of
from cortex.transforms.words.sentences import latin_length, shortened

# -- Layer 3: `[MEMORY: type] text` lines, by which the assistant reports a memory itself (spec 5.3).

# "1. schema 2. copy", "schema; copy", "schema, then copy", "schema → copy".
STEP_BREAK = re.compile(r";\s+|\s*(?:→|->)\s*|,?\s+(?:and )?then\s+|(?:^|\s)\(?\d{1,2}[.)]\s+", re.IGNORECASE)


def tag_candidates(turns: Sequence[Turn]) -> Iterator[Candidate]:
    """
    Yield the tags of the assistant's own words, each with confidence 1, the unknown ones below .5.

    `turns` are those of one thread; a subagent's tags are a report to the assistant and none to Cortex.
    """
    for turn in turns:
        if turn["kind"] == "text" and turn["agent_id"] is None:
            for name, words in self_report.tags_in(text_of(turn)):
                yield from (
                    _plan(turn, plain(words)) if name == "plan" else [_tagged(turn, name, plain(words))]
                )


def without_tags(text: str) -> str:
    """Return `text` without its tag lines, which are not prose any more."""
    if self_report.SIGN not in text.lower():
        return text
    return "\n".join("" if self_report.TAG.match(line.strip()) else line for line in text.split("\n"))


def _plan(turn: Turn, words: str) -> Iterator[Candidate]:
    """Yield a plan and its steps, all ahead; words that list none are the one step there is."""
    head, colon, listed = words.partition(": ")
    steps = [step.strip(" ,.") for step in STEP_BREAK.split(listed if colon else words)]
    steps = [step for step in steps if step]
    if len(steps) < self_report.MIN_STEPS:
        head, steps = words, [words]
    title = head if colon or len(steps) < self_report.MIN_STEPS else steps[0]
    subject = subject_of(str(turn["project_id"]), title)
    plan = _tagged(turn, "plan", f"Plan: {title}")
    yield replace(plan, subject=subject)
    for position, step in enumerate(steps, start=1):
        text = shortened(step, MAX_CHARS)
        event = "PLAN_STEP_COMPLETED"
        yield replace(
            plan, text=text, event_type=event, subject=subject, step_status="pending", position=position
        )


def _tagged(turn: Turn, name: str, words: str) -> Candidate:
    known = name in MEMORY_TAGS
    event_type, memory_type = MEMORY_TAGS.get(name, MEMORY_TAGS["context"])
    text = words if known else f"[unknown memory type '{name}'] {words}"
    return Candidate(
        turn, (line_of(turn),), shortened(text, MAX_CHARS), event_type, memory_type, TAG_LAYER,
        "tag" if known else "unknown_tag", "assistant",
    )  # fmt: skip


# -- Layer 2: what the assistant says in prose, by weighted markers: events to search, never memories.

# Markers of one type add up as independent evidence, and still nothing read from prose is certain.
SUREST = 0.95
_FILES_KEPT = 8


def prose_candidates(turns: Sequence[Turn], lexicon: Lexicon) -> Iterator[Candidate]:
    """
    Yield the passages of the assistant in one thread whose wording marks an event, in order.

    `turns` are the turns of one transcript in its order, without rewound ones and without those of subagents.
    What it quotes, shows as code or is about to do says nothing. An event is as sure as its markers are
    strong; none of them makes a memory (spec 5.4a).
    """
    phrases = lexicon.phrases
    for turn in turns:
        if turn["kind"] != "text":
            continue
        prose = without_tags(own_prose(text_of(turn)))
        for passage in passages(prose, phrases):
            if latin_length(passage.text) < MIN_CHARS or SIGN in passage.text.lower():
                continue
            marked = None if phrases.narrates.search(passage.text) else lexicon.marked_in(passage.text)
            if marked is None:
                continue
            text = _headed(passage, lexicon)
            reason, rejected = phrases.reason.part_in(text), phrases.rejected.part_in(text)
            yield Candidate(
                turn, (line_of(turn),), text, marked.event_type, None, f"layer2:{marked.language}",
                "prose", str(turn["trust"]),
                reason=reason.strip() if reason else None,
                rejected=rejected.strip() if rejected else None,
                files=tuple(dict.fromkeys(FILE.findall(text)))[:_FILES_KEPT],
                confidence=round(min(SUREST, marked.strength), 3),
            )  # fmt: skip


def _headed(passage: Passage, lexicon: Lexicon) -> str:
    """Return a passage without leading filler, an item of a list under its heading."""
    text = lexicon.phrases.without_filler(passage.text)
    heading = lexicon.phrases.filler.cut_from(passage.heading)
    is_named = passage.block != "paragraph" and 0 < len(heading) <= HEADING_CHARS
    if is_named and not lexicon.phrases.generic_heading.match(heading):
        text = f"{heading}: {text}"
    return shortened(text, MAX_CHARS)
