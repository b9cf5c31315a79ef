"""Statements: what one passage of prose says, whole; the units that extraction reads, scores and shows."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from cortex.hooks.evidence.text import PROSE, SentenceRule, sentences, shortened
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.sentences import STATEMENT_CHARS, Passage, ProseBlock, plain, prose_blocks
from cortex.transforms.words.scripts import latin_length

# Of a person who types small letters too: "use tabs. then run it"; with the quotation marks at its end.
ANY_SCRIPT = SentenceRule(PROSE.end + r"|(?<=[a-z]{3}[.!?])\s+(?=[a-z])", PROSE.goes_on)
CLAUSES = SentenceRule(r"(?<=;)\s+|(?<=；)")
# A list item of this length says something by itself; shorter ones are named in a row under their heading.
ITEM_CHARS = 120
# "It is slow." belongs to the sentence beside it.
SHORT_SENTENCE_CHARS = 40
SENTENCES_TOGETHER = 4
# A longer heading leaves no room for what stands under it.
HEADING_CHARS = 90
LABEL_CHARS = 60
NAMED_ITEM = re.compile(rf"^(\S[^:.;!?\n]{{0,{LABEL_CHARS}}}): ")
# "**Loader** - reads it", "**Loader.** Reads it": the bold words are what is spoken of.
_BOLD_LEAD = re.compile(r"^\s*\*\*([^*\n]{2,80}?)[:.]?\*\*\s*(?:[:–—-]+\s+)?(?=[^\s,;.])")
_VERB_AFTER = re.compile(
    r"^(?:is|are|was|were|has|have|does|do|can|will|must|should|and|or|in|to|for|of|with)\b"
)
_CODE = re.compile(r"`[^`]{2,60}`")
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
    Return the statements of a Markdown text in order: sentences with what leans on them, and items.

    What an assistant announces is left out; a person who types "let's use SQLite" decides.
    """
    read = prose_blocks(text)
    units: list[tuple[str, str, str]] = []
    for key, group in groupby(
        read, lambda block: (block.kind, block.heading, block.group if block.kind == "item" else 0)
    ):
        blocks = list(group)
        if key[0] == "item":
            units += (("item", heading, unit) for heading, unit in _of_list(blocks, phrases))
        elif key[0] == "table":
            units += (("table", key[1], unit) for block in blocks for unit in _of_row(block, phrases))
        else:  # paragraphs under one heading are read on: a short one says little by itself
            spoken = [part for block in blocks for part in _spoken(block, phrases, is_typed)]
            units += ((key[0], key[1], unit) for unit in _joined(spoken, phrases))
    return [Passage(unit, heading, kind, place) for place, (kind, heading, unit) in enumerate(units)]


def _of_row(block: ProseBlock, phrases: Phrasebook) -> list[str]:
    text = _labelled(block.text)
    return [text] if latin_length(text) <= STATEMENT_CHARS else list(_joined(_sentences(text), phrases))


def _spoken(block: ProseBlock, phrases: Phrasebook, is_typed: bool) -> list[str]:
    """Return the sentences of a paragraph without announcements and without the name of a list below it."""
    parts = _sentences(_labelled(block.text))
    spoken = [part for part in parts if is_typed or not phrases.announces.search(part)]
    # "It is called in this order:" names the list below, as its heading.
    if len(spoken) > 1 and spoken[-1].endswith((":", "：")):
        del spoken[-1]
    return spoken


def _of_list(blocks: list[ProseBlock], phrases: Phrasebook) -> Iterator[tuple[str, str]]:
    """Yield (heading, statement) of the items of one list: long ones by themselves, short ones in a row."""
    heading = blocks[0].heading
    room = STATEMENT_CHARS - (latin_length(heading) + 2 if len(heading) <= HEADING_CHARS else 0)
    row: list[str] = []
    for block in blocks:
        text = _labelled(block.text)
        is_short = latin_length(text) < ITEM_CHARS
        if row and (not is_short or latin_length("; ".join([*row, text])) > room):
            yield heading, _in_a_row(row)
            row = []
        if is_short:
            row.append(text)
        else:
            yield from _of_item(block, heading, room, phrases)
    if row:
        yield heading, _in_a_row(row)


def _of_item(block: ProseBlock, heading: str, room: int, phrases: Phrasebook) -> Iterator[tuple[str, str]]:
    text = _labelled(block.text)
    if latin_length(text) <= room:
        yield heading, text
        return
    if block.parts:
        own, *nested = (_labelled(part) for part in block.parts)
        is_lead = own.endswith(":") or latin_length(own) < ITEM_CHARS
        if not is_lead:
            yield from ((heading, unit) for unit in _joined(_sentences(own), phrases))
        lead = own.rstrip(":. ") if is_lead else heading
        parts = [ProseBlock("item", part, lead, block.group) for part in nested]
        yield from _of_list(parts, phrases)
        return
    label = NAMED_ITEM.match(text)
    for number, unit in enumerate(_joined(_sentences(text), phrases)):
        yield (label[1] if label and number else heading), unit


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


def _joined(spoken: Iterable[str], phrases: Phrasebook) -> Iterator[str]:
    """Yield sentences, each with those after it that lean on it, while they fit into one statement."""
    parts: list[str] = []
    for sentence in _clauses(spoken):
        joined = in_line(*parts, sentence)
        if parts and (latin_length(joined) > STATEMENT_CHARS or not _belongs(sentence, parts, phrases)):
            yield in_line(*parts)
            parts = []
        parts.append(sentence)
    if parts:
        yield in_line(*parts)


def _belongs(sentence: str, parts: list[str], phrases: Phrasebook) -> bool:
    """
    Return whether a sentence is read with those before it: one that leans on them, or the fourth at most.

    Four sentences in a row are mostly one thought: with three at most, .04 less of what is worth keeping was
    shown in as many facts.
    """
    return len(parts) < SENTENCES_TOGETHER or _leans(sentence, parts[-1], phrases)


def _leans(sentence: str, before: str, phrases: Phrasebook) -> bool:
    """Return whether a sentence says little without the one before it."""
    if phrases.leans.match(sentence) or before.endswith((":", "：")):
        return True
    if min(latin_length(sentence), latin_length(before)) < SHORT_SENTENCE_CHARS and not before.endswith("?"):
        return True
    return not set(_CODE.findall(sentence)).isdisjoint(_CODE.findall(before))


def _clauses(spoken: Iterable[str]) -> Iterator[str]:
    for sentence in spoken:
        yield from sentences(sentence, CLAUSES) if latin_length(sentence) > STATEMENT_CHARS else [sentence]


def _in_a_row(items: list[str]) -> str:
    return "; ".join(item.rstrip(";. ") for item in items) if len(items) > 1 else items[0]
