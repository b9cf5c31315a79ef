"""Statements: Markdown as blocks, and what each block says as passages that fit one statement."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cortex.hooks.evidence.text import PROSE, SentenceRule, sentences, shortened
from cortex.hooks.prose.plain import EMPHASIS, LINK
from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.words.sentences import latin_length

# A fact of a session is a sentence or two; a longer passage is cut between sentences.
STATEMENT_CHARS = 350
# What is longer than a statement is kept to be found, up to this; it is not shown.
MAX_CHARS = 400
MIN_CHARS = 24
# A longer paragraph that ends in a colon says something itself; the list goes under the heading alone.
MAX_LEAD_CHARS = 160

FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$")
BOLD_LINE = re.compile(r"^\s*(?:[^\w\s*]+\s*)?\*\*([^*]{2,80}?)\*\*[:：]?\s*$")
ITEM = re.compile(r"^(\s*)(?:[-*•+・]|\d{1,2}[.)]|☐|☒|✅|✓|❌|⚠️)\s+(.+)$")
TABLE_RULE = re.compile(r"^\s*\|?[\s:|-]+\|?\s*$")
BACKSLASH = re.compile(r"\\(?=\s|$)")  # a line break as some terminals type it
SPACE = re.compile(r"\s+")
SYMBOL = re.compile(r"[\U0001F300-\U0001FAFF\u2600-\u26FF\u2705-\u2728\u274C\u2753-\u2757\uFE0F\u200D]+\s*")
# Of a person who types small letters too: "use tabs. then run it"; with the quotation marks at its end.
ANY_SCRIPT = SentenceRule(PROSE.end + r"|(?<=[a-z]{3}[.!?])\s+(?=[a-z])", PROSE.goes_on)
# A longer heading leaves no room for what stands under it.
HEADING_CHARS = 90
# "**Loader** - reads it", "**Loader.** Reads it": the bold words are what is spoken of.
_BOLD_LEAD = re.compile(r"^\s*\*\*([^*\n]{2,80}?)[:.]?\*\*\s*(?:[:–—-]+\s+)?(?=[^\s,;.])")
_VERB_AFTER = re.compile(
    r"^(?:is|are|was|were|has|have|does|do|can|will|must|should|and|or|in|to|for|of|with)\b"
)


@dataclass(frozen=True)
class Passage:
    """A part of a turn: its text as spoken, its heading, and the kind of block that it was."""

    text: str
    heading: str
    block: str  # paragraph, item, table
    position: int


@dataclass(frozen=True)
class ProseBlock:
    """One Markdown block: a paragraph, a list item with its sub-items, a row of a table."""

    kind: str
    text: str
    heading: str


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
        self.blocks.append(ProseBlock("item", text, self.lead or self.heading))

    def _extend(self, text: str) -> None:
        last = self.blocks[-1]
        self.blocks[-1] = replace(last, text=f"{last.text} {text}")

    def _nest(self, text: str) -> None:
        last = self.blocks[-1]
        joint = " " if last.text.rstrip("*_ ").endswith(":") else "; "
        self.blocks[-1] = replace(last, text=f"{last.text}{joint}{text}")

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
        self.lead = ""
        if text.rstrip("*").endswith((":", "：")) and latin_length(text) < MAX_LEAD_CHARS:
            self.lead = plain(text).rstrip(":：")
        self.blocks.append(ProseBlock("paragraph", text, self.heading))


_WIDE_STOPS = frozenset("。！？」』")
_WIDE = re.compile(r"[\u3000-\u303f\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60]")


def is_wide(character: str) -> bool:
    """Return whether a character belongs to Chinese, Japanese or Korean, whose stops need no space."""
    return bool(_WIDE.match(character))


def in_line(*parts: str) -> str:
    """Return sentences as one text; none of them empty, and no space after a wide full stop."""
    line = ""
    for part in parts:
        line = f"{line}{'' if line[-1:] in _WIDE_STOPS else ' '}{part}" if line and part else line or part
    return line


def cut_between(text: str, chars: int) -> str:
    """
    Return as many of the first sentences of a text as fit into `chars`; a first one that is longer is cut.

    >>> cut_between("Levels are kept in UTC. Two stations stand abroad.", 30)
    'Levels are kept in UTC.'
    """
    kept = ""
    for sentence in sentences(text, ANY_SCRIPT):
        longer = in_line(kept, sentence)
        if len(longer) > chars:
            break
        kept = longer
    return kept or shortened(text, chars)


def passages(text: str, phrases: Phrasebook, *, is_typed: bool = False) -> list[Passage]:
    """
    Return the paragraphs, items and rows of a Markdown text in order, long ones cut between sentences.

    What an assistant announces is left out; a person who types "let's use SQLite" decides.
    """
    units = [
        (block.kind, block.heading, unit)
        for block in prose_blocks(text)
        for unit in _packed(_spoken(block, phrases, is_typed))
    ]
    return [Passage(unit, heading, kind, place) for place, (kind, heading, unit) in enumerate(units)]


def _spoken(block: ProseBlock, phrases: Phrasebook, is_typed: bool) -> list[str]:
    """Return the sentences of a block without announcements and without the name of a list below it."""
    parts = _sentences(_labelled(block.text))
    if is_typed or block.kind != "paragraph":
        return parts
    spoken = [part for part in parts if not phrases.announces.search(part)]
    # "It is called in this order:" names the list below, as its heading.
    if len(spoken) > 1 and spoken[-1].endswith((":", "：")):
        del spoken[-1]
    return spoken


def _packed(parts: Iterable[str]) -> Iterator[str]:
    """Yield sentences in as few runs as fit one statement each."""
    run = ""
    for part in parts:
        longer = in_line(run, part)
        if run and latin_length(longer) > STATEMENT_CHARS:
            yield run
            run = part
        else:
            run = longer
    if run:
        yield run


def _labelled(text: str) -> str:
    """
    Return a block on one line, its bold beginning as the name of what it speaks of.

    >>> _labelled("**Loader** - reads the levels")
    'Loader: reads the levels'
    """
    lead = _BOLD_LEAD.match(text)
    if lead:
        rest = text[lead.end() :]
        is_named = not _VERB_AFTER.match(rest) and (
            lead[0].rstrip()[-1] in ":–—-" or lead[0].rstrip("* ")[-1] in ":."
        )
        if is_named:
            text = f"{lead[1]}: {rest}"
    return plain(text)


def _sentences(text: str) -> list[str]:
    """Return the sentences of a line; one that opens a bracket or a quotation of code goes on to its end."""
    whole: list[str] = []
    for part in sentences(text, ANY_SCRIPT):
        if whole and _is_open(whole[-1]) and latin_length(whole[-1]) + latin_length(part) < STATEMENT_CHARS:
            whole[-1] = f"{whole[-1]} {part}"
        else:
            whole.append(part)
    return whole


def _is_open(text: str) -> bool:
    return text.count("(") > text.count(")") or text.count("`") % 2 == 1
