"""Layer 2: what the assistant says in prose, by weighted markers: events to search, never memories."""

from collections.abc import Iterator, Sequence

from cortex.hooks.prose.own_prose import own_prose
from cortex.hooks.prose.self_report import SIGN
from cortex.transforms.extract.ground.candidate import (
    Candidate,
    Turn,
    line_of,
    text_of,
)
from cortex.transforms.extract.ground.lexicon import Lexicon
from cortex.transforms.extract.ground.phrases import FILE
from cortex.transforms.extract.ground.statements import (
    HEADING_CHARS,
    LONGEST_CHARS,
    SHORTEST_CHARS,
    Passage,
    passages,
)
from cortex.transforms.extract.tags import without_tags
from cortex.transforms.words.scripts import latin_length
from cortex.transforms.words.sentences import shortened

# Markers of one type add up as independent evidence, and still nothing read from prose is certain.
SUREST = 0.95
_FILES_KEPT = 8


def prose_candidates(turns: Sequence[Turn], lexicon: Lexicon) -> Iterator[Candidate]:
    """
    Yield the passages of the assistant in one thread whose wording marks an event, in order.

    `turns` are the turns of one transcript in its order, without rewound ones and without those of subagents.
    What it quotes, shows as code or is about to do says nothing. An event is as sure as its markers are
    strong; none of them makes a memory (spec 5.4a).
    """
    phrases = lexicon.phrases
    for turn in turns:
        if turn["kind"] != "text":
            continue
        prose = without_tags(own_prose(text_of(turn)))
        for passage in passages(prose, phrases):
            if latin_length(passage.text) < SHORTEST_CHARS or SIGN in passage.text.lower():
                continue
            marked = None if phrases.narrates.search(passage.text) else lexicon.marked_in(passage.text)
            if marked is None:
                continue
            text = _headed(passage, lexicon)
            reason, rejected = phrases.reason.part_in(text), phrases.rejected.part_in(text)
            yield Candidate(
                turn, (line_of(turn),), text, marked.event_type, None, f"layer2:{marked.language}",
                "prose", str(turn["trust"]),
                reason=reason.strip() if reason else None,
                rejected=rejected.strip() if rejected else None,
                files=tuple(dict.fromkeys(FILE.findall(text)))[:_FILES_KEPT],
                confidence=round(min(SUREST, marked.strength), 3),
            )  # fmt: skip


def _headed(passage: Passage, lexicon: Lexicon) -> str:
    """Return a passage without leading filler, an item of a list under its heading."""
    text = lexicon.phrases.without_filler(passage.text)
    heading = lexicon.phrases.filler.cut_from(passage.heading)
    is_named = passage.block != "paragraph" and 0 < len(heading) <= HEADING_CHARS
    if is_named and not lexicon.phrases.generic_heading.match(heading):
        text = f"{heading}: {text}"
    return shortened(text, LONGEST_CHARS)
