"""Layer 3: `[MEMORY: type] text` lines, by which the assistant reports a memory itself (spec 5.3)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cortex.hooks.prose import self_report
from cortex.hooks.prose.memory_types import MEMORY_TAGS
from cortex.transforms.extract.ground.candidate import (
    TAG_LAYER,
    Candidate,
    Turn,
    line_of,
    text_of,
)
from cortex.transforms.extract.ground.living_plans import subject_of
from cortex.transforms.extract.ground.statements import LONGEST_CHARS, plain
from cortex.transforms.words.sentences import shortened

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
    if len(steps) < self_report.FEWEST_STEPS:
        head, steps = words, [words]
    title = head if colon or len(steps) < self_report.FEWEST_STEPS else steps[0]
    subject = subject_of(str(turn["project_id"]), title)
    plan = _tagged(turn, "plan", f"Plan: {title}")
    yield replace(plan, subject=subject)
    for position, step in enumerate(steps, start=1):
        text = shortened(step, LONGEST_CHARS)
        event = "PLAN_STEP_COMPLETED"
        yield replace(
            plan, text=text, event_type=event, subject=subject, step_status="pending", position=position
        )


def _tagged(turn: Turn, name: str, words: str) -> Candidate:
    known = name in MEMORY_TAGS
    event_type, memory_type = MEMORY_TAGS.get(name, MEMORY_TAGS["context"])
    text = words if known else f"[unknown memory type '{name}'] {words}"
    return Candidate(
        turn, (line_of(turn),), shortened(text, LONGEST_CHARS), event_type, memory_type, TAG_LAYER,
        "tag" if known else "unknown_tag", "assistant",
    )  # fmt: skip
