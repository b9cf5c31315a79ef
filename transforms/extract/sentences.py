"""Prose as units: Markdown into passages that stand alone, each with its heading, without code or quotes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cortex.hooks.plain import EMPHASIS, LINK
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.words.scripts import latin_length
from cortex.transforms.words.sentences import PROSE, sentences

# 20 memories of at most 6,000 characters are 300 each; a little more fits, as many are shorter.
PASSAGE_CHARS = 390
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


def plain(text: str) -> str:
    """
    Return `text` on one line without Markdown emphasis, links' targets and pictograms.

    >>> plain("**Use** [the docs](https://x.y)  now ✅")
    'Use the docs now'
    """
    bare = SYMBOL.sub("", BACKSLASH.sub(" ", EMPHASIS.sub("", LINK.sub(r"\1", text))))
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
            self._extend(text, joint=" " if self.blocks[-1].text.rstrip("*_ ").endswith(":") else "; ")
            return
        self.item_indent = indent
        self.blocks.append(ProseBlock("item", text, self.lead or self.heading, self.group))

    def _extend(self, text: str, joint: str = " ") -> None:
        last = self.blocks[-1]
        self.blocks[-1] = ProseBlock(last.kind, last.text + joint + text, last.heading, last.group)

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


def passages(text: str, phrases: Phrasebook) -> list[Passage]:
    """Return the passages of a text in order: sentences and short list items packed together."""
    packed: list[Passage] = []
    for position, (kind, heading, part) in enumerate(_packed(prose_blocks(text), phrases)):
        packed.append(Passage(part, heading, kind, position))
    return packed


def _pieces(block: ProseBlock, phrases: Phrasebook) -> list[str]:
    """Return what may not be cut further: the sentences of a paragraph, or a short item whole."""
    text = plain(block.text)
    if block.kind != "paragraph" and len(text) <= LONGEST_CHARS:
        return [text]
    parts = sentences(text, PROSE)
    if block.kind != "paragraph":
        return parts
    return [part for part in parts if not phrases.announces.search(part)]


def _packed(read: list[ProseBlock], phrases: Phrasebook) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, heading, text), neighbours of one group joined while they fit."""
    open_key: tuple[str, str, int] | None = None
    parts: list[str] = []
    for block in read:
        key = (block.kind, block.heading, block.group if block.kind == "item" else 0)
        joint = " " if block.kind == "paragraph" else "; "
        for piece in _pieces(block, phrases):
            size = sum(latin_length(part) + len(joint) for part in parts) + latin_length(piece)
            if parts and (key != open_key or size > PASSAGE_CHARS):
                yield _joined(open_key or key, parts)
                parts = []
            open_key = key
            parts.append(piece)
    if parts and open_key:
        yield _joined(open_key, parts)


def _joined(key: tuple[str, str, int], parts: list[str]) -> tuple[str, str, str]:
    kind, heading, _group = key
    if kind == "paragraph":
        return kind, heading, SPACE_AFTER_STOP.sub("", " ".join(parts))
    return kind, heading, "; ".join(part.rstrip(";. ") if len(parts) > 1 else part for part in parts)
