"""Prose as blocks: the paragraphs, list items and table rows of Markdown, each with its heading."""

import re
from dataclasses import dataclass, replace

from cortex.hooks.plain import EMPHASIS, LINK
from cortex.transforms.words.scripts import latin_length

# 20 memories of at most 6,000 characters are 300 each; at 300, .04 less of what is worth keeping was shown.
STATEMENT_CHARS = 350
# What is longer than a statement is kept to be found, up to this; it is not shown.
LONGEST_CHARS = 400
SHORTEST_CHARS = 24
# A longer paragraph that ends in a colon says something itself; the list goes under the heading alone.
LONGEST_LEAD_CHARS = 160

FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$")
BOLD_LINE = re.compile(r"^\s*(?:[^\w\s*]+\s*)?\*\*([^*]{2,80}?)\*\*[:：]?\s*$")
ITEM = re.compile(r"^(\s*)(?:[-*•+・]|\d{1,2}[.)]|☐|☒|✅|✓|❌|⚠️)\s+(.+)$")
TABLE_RULE = re.compile(r"^\s*\|?[\s:|-]+\|?\s*$")
BACKSLASH = re.compile(r"\\(?=\s|$)")  # a line break as some terminals type it
SPACE = re.compile(r"\s+")
SPACE_AFTER_STOP = re.compile("(?<=[。！？]) ")
SYMBOL = re.compile(r"[\U0001F300-\U0001FAFF\u2600-\u26FF\u2705-\u2728\u274C\u2753-\u2757\uFE0F\u200D]+\s*")


@dataclass(frozen=True)
class Passage:
    """A part of a turn: its text as spoken, its heading, and the kind of block that it was."""

    text: str
    heading: str
    block: str  # paragraph, item, table
    position: int


@dataclass(frozen=True)
class ProseBlock:
    """One Markdown block: a paragraph, or a list item with its own sub-items."""

    kind: str
    text: str
    heading: str
    group: int
    parts: tuple[str, ...] = ()  # of an item with sub-items: its own words, then each of them


def plain(text: str) -> str:
    """
    Return `text` on one line without Markdown emphasis, links' targets and pictograms.

    >>> plain("**Use** [the docs](https://x.y)  now ✅")
    'Use the docs now'
    """
    bare = EMPHASIS.sub("", LINK.sub(r"\1", text) if "](" in text else text)
    bare = BACKSLASH.sub(" ", bare) if "\\" in bare else bare
    bare = bare if bare.isascii() else SYMBOL.sub("", bare)
    return SPACE.sub(" ", bare).strip()


def prose_blocks(text: str) -> list[ProseBlock]:
    """Return the prose blocks of a Markdown text; fenced code, quotes and rules are left out."""
    return _BlockReader().read(text)


class _BlockReader:
    """Reads Markdown line by line, keeping the heading and the lead-in that a list belongs to."""

    def __init__(self) -> None:
        self.blocks: list[ProseBlock] = []
        self.paragraph: list[str] = []
        self.heading = ""
        self.lead = ""
        self.group = 0
        self.item_indent = -1
        self.has_header = False

    def read(self, text: str) -> list[ProseBlock]:
        """Return all blocks of `text`, in order."""
        fence = ""
        for line in text.split("\n"):
            mark = FENCE.match(line)
            if mark:
                fence = "" if fence == mark[1] else fence or mark[1]
                self._close()
            elif not fence:
                self._line(line)
        self._close()
        return self.blocks

    def _line(self, line: str) -> None:
        bare = line.strip()
        if not bare or bare.startswith((">", "{", "[{")) or bare in {"---", "***", "___"}:
            self._close()
            if not bare:
                self.has_header = False
            return
        heading = HEADING.match(line) or BOLD_LINE.match(line)
        if heading:
            self._close()
            self.heading, self.lead, self.item_indent = plain(heading[1]).rstrip(":："), "", -1
            self.group += 1
            return
        if bare.startswith("|"):
            self._row(bare)
            return
        item = ITEM.match(line)
        if item:
            self._item(len(item[1].expandtabs(4)), item[2])
        elif self.item_indent >= 0 and line[:1] in " \t" and self.blocks:
            self._extend(bare)
        else:
            self.paragraph.append(bare)

    def _item(self, indent: int, text: str) -> None:
        self._close()
        if 0 <= self.item_indent < indent and self.blocks and self.blocks[-1].kind == "item":
            self._nest(text)
            return
        self.item_indent = indent
        self.blocks.append(ProseBlock("item", text, self.lead or self.heading, self.group))

    def _extend(self, text: str) -> None:
        last = self.blocks[-1]
        parts = (*last.parts[:-1], f"{last.parts[-1]} {text}") if last.parts else ()
        self.blocks[-1] = replace(last, text=f"{last.text} {text}", parts=parts)

    def _nest(self, text: str) -> None:
        last = self.blocks[-1]
        joint = " " if last.text.rstrip("*_ ").endswith(":") else "; "
        self.blocks[-1] = replace(
            last, text=f"{last.text}{joint}{text}", parts=(*(last.parts or (last.text,)), text)
        )

    def _row(self, bare: str) -> None:
        self._close()
        if TABLE_RULE.match(bare):
            return
        cells = [cell.strip() for cell in bare.strip("|").split("|")]
        if self.has_header:
            filled = [cell for cell in cells if cell and cell not in "-–—✓✗"]
            self.blocks.append(
                ProseBlock(
                    "table",
                    ": ".join([filled[0], "; ".join(filled[1:])]) if len(filled) > 1 else "".join(filled),
                    self.heading,
                    self.group,
                )
            )
        self.has_header = True

    def _close(self) -> None:
        """End the open paragraph; one that ends in a colon names the list that follows."""
        if not self.paragraph:
            return
        text = " ".join(self.paragraph)
        self.paragraph = []
        self.item_indent = -1
        self.group += 1
        self.lead = ""
        if text.rstrip("*").endswith((":", "：")) and latin_length(text) < LONGEST_LEAD_CHARS:
            self.lead = plain(text).rstrip(":：")
        self.blocks.append(ProseBlock("paragraph", text, self.heading, self.group))
