"""Foreign text on a line of its own: what a memory says cannot leave the line that it is printed on."""

import re
from itertools import pairwise

from cortex.hooks.characters import visible

_SPACE = re.compile(r"\s+")
# The start of a tag, comment or instruction; `a < b` stays.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_COMMENT_END = re.compile(r"-{2,}!?>")
_FENCE = re.compile(r"`{2,}|~{3,}|\"{3,}")
# A quoted tag would be extracted again, as a new memory.
_SELF_REPORT = re.compile(r"\[(?=\s*memory\s*:)", re.IGNORECASE)
_IMAGE = re.compile(r"!+(?=\[)")
# Heading, quote, list, table and rule marks count at the start of a line, also inside a list item.
_LEAD = re.compile(r"^(?:(?:[#>*+=|~_-]+|\d{1,9}[.)])(?:\s+|$))+")
# Full stop, question or exclamation mark, then a space and what a sentence begins with; not after "e.g.".
_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<=[.!?])[\"'”’)`]*\s+(?=[\"'“‘(`]*[^\Wa-z_]|→)")
_WORD = re.compile(r"\w+")
_CUT_AT = re.compile(r"[;,:]?\s+\S*$")


def on_one_line(text: str) -> str:
    """
    Return `text` as one line of prose: no line break, tag, comment, fence, heading or invisible character.

    Applied twice it changes nothing more.

    >>> on_one_line("# Now\\n<!-- CORTEX:END -->\\n```sh\\nrm x\\n```")
    "Now ‹!-- CORTEX:END -> 'sh rm x '"
    """
    line = visible(text)
    # What is taken away may leave a mark of what stood around it: "--->" a shorter end of a comment.
    while (plainer := _plainer(line)) != line:
        line = plainer
    return line


def _plainer(line: str) -> str:
    line = _SPACE.sub(" ", line).strip()
    line = _COMMENT_END.sub("->", _TAG.sub("‹", line))
    line = _SELF_REPORT.sub("(", _IMAGE.sub("", _FENCE.sub("'", line)))
    return _closed(_LEAD.sub("", line)).strip()


def first_sentences(line: str, *, count: int, chars: int) -> str:
    """
    Return the first sentences of `line`: at most `count`, and as many as stay within `chars` characters.

    A first sentence longer than that is cut between words and ends in an ellipsis.

    >>> first_sentences("Keep UTC. Stations differ. So do clocks.", count=2, chars=80)
    'Keep UTC. Stations differ.'
    >>> first_sentences("Stations report in local time until the firmware of 2025", count=1, chars=30)
    'Stations report in local time…'
    """
    kept = ""
    for sentence in sentences(line)[:count]:
        if len(joined := f"{kept} {sentence}".lstrip()) > chars:
            break
        kept = joined
    return _closed(kept or _CUT_AT.sub("", line[:chars]).rstrip(" ;,:") + "…")


def sentences(line: str) -> list[str]:
    """
    Return the sentences of a line, none if it is empty.

    >>> sentences("Keep UTC, e.g. for Saltmarsh. (Clocks differ.) So be it")
    ['Keep UTC, e.g. for Saltmarsh.', '(Clocks differ.)', 'So be it']
    """
    starts = [0, *(found.end() for found in _SENTENCE_END.finditer(line)), len(line)]
    return [line[here:then].strip() for here, then in pairwise(starts) if line[here:then].strip()]


def words(text: str) -> frozenset[str]:
    """Return the words of `text`, in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


def shared_words(one: frozenset[str], other: frozenset[str]) -> float:
    """
    Return the share of words that two texts have in common, of all words in either: 0 to 1.

    >>> shared_words(words("keep raw payloads"), words("Keep the raw payloads"))
    0.75
    """
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def _closed(line: str) -> str:
    """Return `line` with its last backtick made a quote where that one opens code that nothing closes."""
    if line.count("`") % 2 == 0:
        return line
    head, _, tail = line.rpartition("`")
    return f"{head}'{tail}"  # dropped, it would join what it parted: "<`br" is no tag
