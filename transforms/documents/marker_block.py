"""A block of ours in a file of the user's: put between two marker lines, changed, taken out to the byte."""

import re
from dataclasses import dataclass

# What `brief.surface` may name, besides a path within the project.
HOOK = "hook"
FILES = {"rules": ".claude/rules/cortex-brief.md", "local": "CLAUDE.local.md"}
# A brief holds any text: a file of another kind may be a program's, which would run what it says.
ENDINGS = (".md", ".mdc")


@dataclass(frozen=True)
class Marks:
    """The two lines that a block stands between."""

    start: bytes
    end: bytes


MARKDOWN = Marks(b"<!-- CORTEX:START -->", b"<!-- CORTEX:END -->")
IGNORE_FILE = Marks(b"# CORTEX:START", b"# CORTEX:END")


class Unplaceable(ValueError):
    """A file that no block can be put into or taken from without a guess; it stays as it is."""


@dataclass(frozen=True)
class Undo:
    """
    What to give back when a block is taken out.

    `inner` is what stood between markers that were the user's own, None if we put the markers too; `glue`
    is the line end that the last line before them lacked.
    """

    inner: bytes | None
    glue: bytes = b""


def file_of(surface: str) -> str | None:
    """
    Return the file within a project that `brief.surface` names, None if the hook hands the brief over.

    >>> file_of("hook"), file_of("local"), file_of("docs/notes.md")
    (None, 'CLAUDE.local.md', 'docs/notes.md')

    Raises Unplaceable for a path out of the project or into .git, and for a file that is not Markdown.
    """
    if surface == HOOK:
        return None
    path = FILES.get(surface, surface)
    if {"", ".", "..", "~", ".git"} & set(path.split("/")) or not path.isprintable():
        raise Unplaceable(f"brief.surface is {surface!r}: give hook, rules, local or a path in the project")
    if not path.endswith(ENDINGS):
        raise Unplaceable(f"brief.surface is {surface!r}: a brief is written only to files in .md or .mdc")
    return path


def put(content: bytes, text: str, marks: Marks, undo: Undo | None = None) -> tuple[bytes, Undo]:
    """
    Return `content` with `text` between the markers, and what takes it out again.

    Where there are no markers they are put at the end. `undo` is that of a block put before. All else stays
    byte for byte; line ends are the file's own. Raises Unplaceable.
    """
    _check_text(content)
    place = _between(content, marks)
    line_end = b"\r\n" if b"\r\n" in (content if place is None else content[: place[0]][-2:]) else b"\n"
    lines = b"".join(line + line_end for line in text.strip("\n").encode().split(b"\n"))
    if _lines_of(lines, marks.start) or _lines_of(lines, marks.end):
        raise Unplaceable("the text itself has a line that is a marker")
    if place is None:
        glue = b"" if not content or content.endswith(b"\n") else line_end
        block = marks.start + line_end + lines + marks.end + line_end
        return content + glue + block, Undo(None, glue)
    start, end = place
    kept = undo if undo is not None else Undo(content[start:end])
    return content[:start] + lines + content[end:], kept


def take(content: bytes, marks: Marks, undo: Undo) -> bytes:
    """
    Return `content` as it was before `put`, with all that was written around the block since.

    Where the markers are gone there is nothing to take. Raises Unplaceable.
    """
    place = _between(content, marks)
    if place is None:
        return content
    start, end = place
    if undo.inner is not None:
        return content[:start] + undo.inner + content[end:]
    before = content[: content.rfind(b"\n", 0, start - 1) + 1]
    after = content[content.find(b"\n", end) + 1 :] if b"\n" in content[end:] else b""
    # With lines written behind the block the glue is needed between the two.
    if undo.glue and not after and before.endswith(undo.glue):
        before = before[: -len(undo.glue)]
    return before + after


def pattern_of(path: str) -> str:
    """
    Return the line of an ignore file that means this one path below the repository's root.

    >>> pattern_of("docs/[a] b*.md")
    '/docs/\\\\[a] b\\\\*.md'
    """
    return "/" + re.sub(r"([\\*?\[]|\s$)", r"\\\1", path)


def _between(content: bytes, marks: Marks) -> tuple[int, int] | None:
    """Return where the lines between the markers begin and end, None if there are no markers."""
    starts, ends = _lines_of(content, marks.start), _lines_of(content, marks.end)
    if not starts and not ends:
        return None
    if len(starts) != 1 or len(ends) != 1 or starts[0].start() > ends[0].start():
        raise Unplaceable("its CORTEX markers are not one pair of lines")
    return starts[0].end(), ends[0].start()


def _lines_of(content: bytes, mark: bytes) -> list["re.Match[bytes]"]:
    return list(re.finditer(rb"^[ \t]*" + re.escape(mark) + rb"[ \t]*(?:\r?\n|\Z)", content, re.MULTILINE))


def _check_text(content: bytes) -> None:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unplaceable("it is not UTF-8 text") from error
    if b"\0" in content:
        raise Unplaceable("it is not text")
