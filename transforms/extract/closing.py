"""What the last report of a session states: what was done, without filler and praise."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cortex.transforms.extract.candidate import Turn, text_of
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.recaps import as_deed, prose_sentences
from cortex.transforms.extract.sentences import ProseBlock, prose_blocks
from cortex.transforms.extract.stretches import Stretch
from cortex.transforms.extract.tags import without_tags

# Questions answered in words alone move the subject on: after this many the last report is no state any more.
ANSWERS_AFTER = 3
_SHORTEST_CHARS = 20
_SHORTEST_WIDE_CHARS = 10  # a line of Japanese says twice as much
_LONGEST_CHARS = 260
_LABEL_WORDS = 4  # "Timeline filtering hides groups: …" says it all before the colon, "Trigger: …" does not
_HASH_LINE_CHARS = 80  # "Committed as 1a2b3c4, 8 files changed"
_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_COUNTS = re.compile(r"^\W*\d+ files? changed\b|\b(?:are|is|been) (?:now )?committed$", re.IGNORECASE)
_BOX = re.compile(r"^\[([ xX])\]\s*")
_WIDE = re.compile(r"[぀-ヿ一-鿿가-힣]")
_NUMBER = re.compile(r"^\d{1,2}[.)]\s+")
_DANGLING = re.compile(
    r"(?:,? (?:so|that|which|it|they|now|by|with|to|the|following|as|follows|including|are|is|setting|using"
    r"|via|through|covering|because|for|in|of|on|at|includes?|have|has|been|was|were|two|three))+$"
)
# Where a report's statements stand: a deed, before its first list, in a list, after one.
_DEED, _LEAD, _ITEM, _AFTER = range(4)


@dataclass(frozen=True)
class ClosingReport:
    """What the last report states, the most telling first, what it leaves open, and the turn that it is."""

    statements: tuple[str, ...] = ()
    left_open: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()


def closing_report(parts: Sequence[Stretch], phrases: Phrasebook, *, has_commits: bool) -> ClosingReport:
    """Return what the last answer says that came after work; answers to later questions report nothing."""
    left_open: tuple[str, ...] = ()
    answered = [(part, part.answer) for part in reversed(parts)]
    answers = [(part, answer) for part, answer in answered if answer is not None]
    for part, answer in answers[: ANSWERS_AFTER + 1]:
        report = _report(answer, phrases, has_commits=has_commits)
        left_open = left_open or report.left_open
        if part.has_worked:
            return replace(report, left_open=left_open)
    return ClosingReport(left_open=left_open)


def _report(turn: Turn, phrases: Phrasebook, *, has_commits: bool) -> ClosingReport:
    """Sort what a report says: deeds first, then what stands before its first list, its items, the rest."""
    ranked: list[tuple[int, str]] = []
    left_open: list[str] = []
    cuts: list[str] = []
    has_items = False
    for block in prose_blocks(without_tags(text_of(turn))):
        has_items = has_items or block.kind != "paragraph"
        for statement, is_cut in _statements(block, phrases):
            if is_cut and not phrases.deed.search(statement):
                cuts.append(statement)
            elif statement.startswith("[ ]") or _is_open(statement, block, phrases):
                if not phrases.proposes.search(statement):
                    left_open.append(phrases.open_point(statement) or _BOX.sub("", statement))
            elif phrases.addressed.search(statement):
                continue
            elif not (has_commits and _repeats_commit(statement)):
                place = _ITEM if block.kind != "paragraph" else _AFTER if has_items else _LEAD
                place = _DEED if phrases.deed.search(statement) else place
                ranked.append((place, _BOX.sub("", statement)))
    if has_commits:  # they say what was done, a list without deeds explains it
        ranked = [placed for placed in ranked if placed[0] <= _LEAD]
    if not any(place <= _LEAD for place, _ in ranked):
        ranked += [(_LEAD, statement) for statement in cuts[:1]]
    ranked.sort(key=lambda placed: placed[0])
    return ClosingReport(tuple(statement for _, statement in ranked), tuple(left_open), (turn,))


def _is_open(statement: str, block: ProseBlock, phrases: Phrasebook) -> bool:
    is_under_one = phrases.open_heading.search(block.heading)
    return bool(is_under_one or phrases.left_open.search(statement) or phrases.open_point(statement))


def _repeats_commit(statement: str) -> bool:
    is_short = len(statement) <= _HASH_LINE_CHARS
    return bool(_COUNTS.search(statement) or (is_short and _HASH.search(statement)))


def _statements(block: ProseBlock, phrases: Phrasebook) -> Iterator[tuple[str, bool]]:
    """Yield what a block states, and whether a colon cut it off from its list."""
    for sentence in prose_sentences(block.text):
        text = as_deed(_NUMBER.sub("", sentence), phrases)
        whole = text if block.kind == "paragraph" else _without_explanation(text)
        is_cut = whole != text or whole.endswith((":", "："))
        whole = whole.rstrip(":： ")
        if len(whole) > _LONGEST_CHARS or whole.endswith(("?", "？")) or whole.count("`") % 2:
            continue
        if is_cut:
            whole = _DANGLING.sub("", whole)
        if phrases.announces.search(whole) or phrases.praise.search(whole):
            continue
        shortest = _SHORTEST_WIDE_CHARS if _WIDE.search(whole) else _SHORTEST_CHARS
        if len(whole) >= shortest and (not is_cut or len(whole.split()) >= _LABEL_WORDS):
            yield whole, is_cut and block.kind == "paragraph"


def _without_explanation(item: str) -> str:
    """Return what stands before the colon of a list item, where that is a statement by itself."""
    label, colon, _ = item.partition(": ")
    return label if colon and len(label.split()) >= _LABEL_WORDS else item
