"""Which lines of a brief were said on which branches, for the hook that knows where a session stands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cortex.hooks.prose.plain import on_one_line
from cortex.transforms.brief.brief_sections import Choice
from cortex.transforms.memory.reality import Doubt, branch_doubt, branches_behind
from cortex.transforms.vocabulary import Row


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
