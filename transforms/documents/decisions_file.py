"""
A tracked file of decisions: a line for each, which ends in its id, so that it can be written again.

What people write around the list is theirs and is kept. Of a conflict that git left in the list the lines of
both sides are kept, and its marks go.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cortex.hooks.evidence.text import normalised
from cortex.transforms.identity import content_id

BEGIN = "<!-- cortex decisions: one line each, written by `cortex team decisions` -->"
END = "<!-- end of cortex decisions -->"
_TITLE = "# Decisions\n\n"
_ID_DIGITS = 12
_BEGIN = re.compile(r"<!-- cortex decisions: [^\n>]*-->")  # what it says differs by version
# Both sides of a conflict are kept, and not what stood there before (`merge.conflictStyle diff3`).
_BEFORE_CONFLICT = re.compile(r"^\|{7}.*?(?=^={7}$)", re.MULTILINE | re.DOTALL)
_CONFLICT_MARK = re.compile(r"^(?:<{7}|={7}|>{7})(?: .*)?$")
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
        begin = _BEGIN.search(text)
        listed, end, behind = text[begin.end() :].partition(END) if begin else ("", "", "")
        if not begin or not end:
            return cls(text, {}, "")
        before = text[: begin.start()]
        lines: dict[str, str] = {}
        for line in _BEFORE_CONFLICT.sub("", listed).split("\n"):
            entry = _ENTRY.match(line)
            if entry:
                lines[entry[2]] = line
            elif line.strip() and not _CONFLICT_MARK.match(line):  # not ours: kept if nothing rewrites it
                before += line + "\n"
        return cls(before, lines, behind.removeprefix("\n"))

    def as_text(self) -> str:
        """Return the file: its lines by day and id."""
        listed = sorted(self.lines.values(), key=lambda line: (line[:12], line[-17:]))
        before = self.before if self.before.strip() else _TITLE
        return "\n".join([before.rstrip("\n"), "", BEGIN, *listed, END, self.behind])


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
