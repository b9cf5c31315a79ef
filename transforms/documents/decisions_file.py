"""
A tracked file of decisions: a line for each, which ends in its id, so that two versions merge line by line.

What people write around the list is theirs: it is kept, and merged as one piece before and one behind.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cortex.hooks.evidence.text import normalised
from cortex.transforms.identity import content_id

BEGIN = "<!-- cortex decisions: one line each, merged by `cortex team merge` -->"
END = "<!-- end of cortex decisions -->"
_TITLE = "# Decisions\n\n"
_ID_DIGITS = 12
_ENTRY = re.compile(r"^- (\d{4}-\d\d-\d\d) .{1,6000} <!-- ([0-9a-f]{12}) -->$")


@dataclass(frozen=True)
class DecisionsFile:
    """A file in its parts: what stands before the list and behind it, and the list's lines by their id."""

    before: str
    lines: Mapping[str, str]
    behind: str

    @classmethod
    def of(cls, text: str) -> "DecisionsFile":
        """Return the parts of a text; one without a list has all of it before the list."""
        text = text.replace("\r\n", "\n")
        before, begin, rest = text.partition(BEGIN)
        listed, end, behind = rest.partition(END)
        if not begin or not end:
            return cls(text, {}, "")
        lines: dict[str, str] = {}
        for line in listed.split("\n"):
            entry = _ENTRY.match(line)
            if entry:
                lines[entry[2]] = line
            elif line.strip():  # not ours: kept if nothing rewrites it
                before += line + "\n"
        return cls(before, lines, behind.removeprefix("\n"))

    def as_text(self, conflicts: Collection[str] = ()) -> str:
        """Return the file: its lines by day and id, conflicts behind them as git marks them."""
        listed = sorted(self.lines.values(), key=lambda line: (line[:12], line[-17:]))
        before = self.before if self.before.strip() else _TITLE
        return "\n".join([before.rstrip("\n"), "", BEGIN, *listed, *conflicts, END, self.behind])


def decision_id(statement: str) -> str:
    """Return the id of a decision's line: of its words, the same in every store."""
    return content_id("decision", normalised(statement))[:_ID_DIGITS]


def decision_line(statement: str, day: str, author: str, reason: str = "", rejected: str = "") -> str:
    """
    Return a decision as its line; `day` is an ISO date.

    >>> decision_line("Use UTC.", "2026-09-14", "Ana", reason="tides cross midnight")
    '- 2026-09-14 Use UTC. Why: tides cross midnight. (Ana) <!-- 4f86a19d4f5b -->'
    """
    parts = [statement, f"Why: {reason}" if reason else "", f"Rejected: {rejected}" if rejected else ""]
    sentences = (" ".join(part.replace("<!--", "").replace("-->", "").split()) for part in parts if part)
    text = " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)
    return f"- {day} {text} ({author}) <!-- {decision_id(statement)} -->"


def with_decisions(text: str, lines: Mapping[str, str], gone: Collection[str]) -> str:
    """
    Return a file's text with `lines` (by id) in its list, and without those that are `gone`.

    A line that is there already stays as it is, whoever wrote it, so that nothing changes back and forth.
    """
    file = DecisionsFile.of(text)
    kept = {name: line for name, line in file.lines.items() if name not in gone}
    return DecisionsFile(file.before, {**lines, **kept}, file.behind).as_text()


def merged_decisions(base: str, ours: str, theirs: str) -> tuple[str, int]:
    """
    Return two versions of a file merged, and how many conflicts are left in it as git marks them.

    A line that only one of them added, changed or removed since `base` is as that one has it. What both have
    changed otherwise is a conflict; that the other side also added something never is.
    """
    before, mine, other = DecisionsFile.of(base), DecisionsFile.of(ours), DecisionsFile.of(theirs)
    lines: dict[str, str] = {}
    conflicts: list[str] = []
    for name in sorted({*mine.lines, *other.lines}):
        sides = before.lines.get(name), mine.lines.get(name), other.lines.get(name)
        line, is_clear = _merged(*sides)
        if not is_clear:
            conflicts.append(_conflict(sides[1] or "", sides[2] or ""))
        elif line is not None:
            lines[name] = line
    around = []
    for part in ("before", "behind"):
        a, b, c = (getattr(file, part) for file in (before, mine, other))
        text, is_clear = _merged(a, b, c)
        if not is_clear:
            conflicts.append("")
            text = _conflict(b.rstrip("\n"), c.rstrip("\n")) + "\n"
        around.append(text or "")
    merged = DecisionsFile(around[0], lines, around[1])
    return merged.as_text([each for each in conflicts if each]), len(conflicts)


def _merged(base: str | None, ours: str | None, theirs: str | None) -> tuple[str | None, bool]:
    """Return the side that changed something, and whether there is just one."""
    if ours == theirs or theirs == base:
        return ours, True
    return (theirs, True) if ours == base else (None, False)


def _conflict(ours: str, theirs: str) -> str:
    sides = ["<<<<<<< ours", *([ours] if ours else []), "=======", *([theirs] if theirs else [])]
    return "\n".join([*sides, ">>>>>>> theirs"])
