"""What of a passage bears on a question: the sentences to show above it."""

from collections.abc import Sequence

from cortex.transforms.search.answers import Asked
from cortex.transforms.search.index_text import prose
from cortex.transforms.words.sentences import MEMORY, sentences, shortened

# Two or three sentences: what a reader takes in at a glance.
_STATEMENT_CHARS = 320


def statement_in(text: str, asked: Asked, limit: int = _STATEMENT_CHARS) -> str:
    """
    Return the sentences of `text` that hold most of a question's words, and what follows them, on one line.

    At most `limit` characters; all of a text that is no longer. Of equal sentences the first is taken; code
    in fences only where there is nothing else.

    >>> asked = Asked({"tide": 1.0, "utc": 2.0})
    >>> statement_in("Gauges were painted. Tide tables are in UTC. Clocks are not.", asked, 45)
    'Tide tables are in UTC. Clocks are not.'
    """
    whole = " ".join(text.split())
    if len(whole) <= limit:
        return whole
    parts = [part for line in (prose(text) or text).split("\n") for part in sentences(line.strip(), MEMORY)]
    shares = [asked.share_in(part) for part in parts]
    start = max(range(len(parts)), key=lambda at: (shares[at], -at))
    return shortened(_from(parts, start, limit), limit)


def _from(parts: Sequence[str], start: int, limit: int) -> str:
    kept = parts[start]
    for part in parts[start + 1 :]:
        if len(kept) + 1 + len(part) > limit:
            break
        kept = f"{kept} {part}"
    # What leads to the sentence, where there is room: a heading, the sentence that names the subject.
    if start and len(parts[start - 1]) + 1 + len(kept) <= limit:
        kept = f"{parts[start - 1]} {kept}"
    return kept
