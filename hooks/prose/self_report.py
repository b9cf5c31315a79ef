"""How the assistant reports by itself: lines `[MEMORY: type] text` and lists of steps."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING or __package__ != "prose":
    from collections.abc import Iterator

    from cortex.hooks.evidence.lazy import lazy
    from cortex.hooks.prose.own_prose import own_prose
    from cortex.hooks.prose.plain import LONGEST_LINE
else:
    from evidence.lazy import lazy
    from prose.own_prose import own_prose
    from prose.plain import LONGEST_LINE

SIGN = "[memory:"

# A list that the assistant keeps in its prose, or with the client's tools; a single step is not a plan.
CHECKBOX = lazy(r"^[^\S\n]*[-*]\s+\[([ xX])\]\s+(\S.*)$", re.MULTILINE)
TASK_NUMBER = lazy(r"#(\d+)")
STEP_STATUSES = ("pending", "in_progress", "completed")
FEWEST_STEPS = 2

# A tag opens its line; in a sentence or in backticks it is being talked about, further in it is code.
TAG = lazy(r"^ {0,3}(?:[-*•] +)?(?:\*\*)?\[MEMORY:\s*([^\]\n]{0,40})\](?:\*\*)?\s*(.*)$", re.IGNORECASE)
_PLACEHOLDER = lazy(
    r"^(?:\.{2,}|…|<[^>]*>|\{[^}]*\}|\[[^\]]*\]|text|your text|description|what .*\?)?[.…]*$", re.IGNORECASE
)
_TABLE_RULE = lazy(
    r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$|^[ \t]*\|[ \t:-]+\|[ \t]*$"
)


def tags_in(text: str) -> Iterator[tuple[str, str]]:
    """
    Yield (type, text) of each tag line in the assistant's own prose; placeholders and tables are left out.

    >>> list(tags_in("[MEMORY: decision] Use SQLite.\\n```\\n[MEMORY: plan] no\\n```\\n[MEMORY: type] ..."))
    [('decision', 'Use SQLite.')]
    """
    if SIGN not in text.lower():
        return
    lines = own_prose(text).split("\n")
    is_table = False
    for line, following in zip(lines, [*lines[1:], ""]):
        is_table = bool(line.strip()) and (is_table or bool(_TABLE_RULE.match(following)))
        tag = None if is_table or len(line) > LONGEST_LINE else TAG.match(line)
        if tag and not _PLACEHOLDER.match(tag[2].strip()):
            yield tag[1].strip().lower(), tag[2]
