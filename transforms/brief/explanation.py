"""
What is published with a brief: why each candidate is in it or not, and which lines belong to which
branch.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from cortex.hooks.prose.plain import on_one_line
from cortex.transforms.memory.reality import Doubt, branch_doubt, branches_behind
from cortex.transforms.vocabulary import Row

# -- What the brief decides about one candidate, and sections that are more than the memories of a type.

# Sections are memory types; order and headings are data (memory_types.csv).
# Where the work stands is put together from outcome records and the living plan.
STATE = "outcome"
REPOSITORY = ""  # what git says of the whole, before the first section
STATEMENTS, STATEMENTS_HEADING = "said", "In the user's words"  # behind the sections of memories
CONFIRM = "confirm"  # the question whether the oldest claims still hold, behind the last section


@dataclass(frozen=True)
class Choice:
    """One candidate for the brief: where it would stand, its printed line or lines, shown or not, and why."""

    section: str
    memory_id: str
    text: str
    is_shown: bool
    reason: str
    rank: float = 0.0


@dataclass(frozen=True)
class TellingOrder:
    """
    The order in which a language model that read a whole project tells its memories, by id.

    `seen` are all that it was shown: what is newer has no place in its order yet.
    """

    memory_ids: Sequence[str] = ()
    seen: AbstractSet[str] = field(default_factory=frozenset)


NO_ORDER = TellingOrder()


# -- Why each candidate is in a brief or not, as published with the brief, and read from there.

EXPLANATION_VERSION = 1
OMITTED_SHOWN = 40


@dataclass(frozen=True)
class BriefChoices:
    """
    The candidates that are shown and the best that are not, of `candidates` in all; doubts by memory id.

    `left_out` holds at most OMITTED_SHOWN, by rank.
    """

    shown: Sequence[Choice]
    left_out: Sequence[Choice]
    candidates: int
    doubts: Mapping[str, str]


def brief_choices_of(choices: Sequence[Choice], doubts: Mapping[str, str]) -> BriefChoices:
    """Return what is said of a brief's candidates: all that are shown, and the best of those left out."""
    left_out = [choice for choice in choices if not choice.is_shown]
    best = sorted(left_out, key=lambda choice: (-choice.rank, choice.memory_id))[:OMITTED_SHOWN]
    shown = [choice for choice in choices if choice.is_shown]
    named = {choice.memory_id for choice in (*shown, *best)}
    kept = {name: doubt for name, doubt in doubts.items() if name in named}
    return BriefChoices(shown, best, len(choices), kept)


def choices_in(document: object) -> BriefChoices | None:
    """Return what was published; None for a document of another version, or that is none."""
    if not isinstance(document, dict) or document.get("version") != EXPLANATION_VERSION:
        return None
    try:
        shown, left_out = ([_choice(each) for each in document[name]] for name in ("shown", "left_out"))
        return BriefChoices(shown, left_out, int(document["candidates"]), dict(document["doubts"]))
    except (KeyError, TypeError, ValueError):
        return None


def _choice(entry: Mapping[str, Any]) -> Choice:
    choice = Choice(**entry)
    texts = (choice.section, choice.memory_id, choice.text, choice.reason)
    if not all(isinstance(text, str) for text in texts) or not isinstance(choice.is_shown, bool):
        raise TypeError("not a choice")
    return replace(choice, rank=float(choice.rank))


# -- Which lines of a brief were said on which branches, for the hook that knows where a session stands.


@dataclass(frozen=True)
class BranchTips:
    """The local branches of a repository: the commit of each, and by branch those that contain it."""

    tips: Mapping[str, str]
    within: Mapping[str, frozenset[str]]
    trunk: str = ""


@dataclass(frozen=True)
class BranchLine:
    """A line of a brief, from 0: the branches that alone said it, and whether its mark stands there now."""

    number: int
    text: str
    branches: tuple[str, ...]
    is_marked: bool


def branches_by_memory(rows: Iterable[Row], known: Iterable[str], trunk: str) -> dict[str, tuple[str, ...]]:
    """Return, by memory_id, the branches of MEMORIES that were only said on branches other than the trunk."""
    names = set(known)
    branches_of = {row["memory_id"]: branches_behind(row) for row in rows}
    return {
        name: tuple(sorted(branches))
        for name, branches in branches_of.items()
        if branches and branches <= names and trunk not in branches
    }


def branch_lines(
    brief: str, choices: Iterable[Choice], branches: Mapping[str, tuple[str, ...]], marks: Mapping[str, str]
) -> list[BranchLine]:
    """
    Return the lines of a brief that hold on some branches only, in their order.

    `branches` are those of each memory; a memory that is marked for another reason in `marks` is passed over.
    """
    lines = brief.split("\n")
    places, start = [], 0
    for choice in choices:
        if not choice.is_shown:
            continue
        place = brief.find(choice.text, start)
        if place < 0:  # what is unseen was taken out of the line on its way out
            continue
        start = place + len(choice.text)
        if choice.memory_id in branches:
            own = branches[choice.memory_id]
            mark = on_one_line(doubt_of(choice.memory_id, own).mark)
            if marks.get(choice.memory_id, mark) == mark:
                number = brief.count("\n", 0, start)
                places.append(BranchLine(number, lines[number], own, f" {mark}" in lines[number]))
    return places


def doubt_of(memory_id: str, branches: tuple[str, ...]) -> Doubt:
    """Return the doubt about a memory that only these branches said, if none of them is merged."""
    return branch_doubt(memory_id, min(branches))
