"""The notes that Claude Code keeps for itself: one Markdown file a fact, and an index; none is believed."""

import re
from collections.abc import Mapping

from cortex.transforms.documents.interchange import Imported, read_list

_INDEX = "MEMORY.md"
# A note is a fact with its reason. What is longer is a document, of which the first lines say what it is.
LONGEST_NOTE_CHARS = 1_500

# What a note says it is about, as far as it has a name of ours.
_KINDS = {"user": "pattern", "feedback": "pattern", "project": "context", "reference": "context"}
_FIELD = re.compile(r"^ {0,4}([a-z_-]{1,30}): {0,8}(\S.{0,2000})$")
_LINKED = re.compile(r"\[\[([^\[\]]{1,200})\]\]")
_POINTS_TO_FILE = re.compile(r"\[[^\[\]]{0,200}\]\([^()\s]{1,200}\.md\)")


def facts_in(files: Mapping[str, str]) -> tuple[list[Imported], int]:
    """
    Return the facts of one folder of notes, by file name in order, and how many files held none.

    `files` has the text of each. Of the index only lines count that point to no file: older versions of the
    program kept facts there.
    """
    facts: list[Imported] = []
    empty = 0
    for name in sorted(files):
        if name == _INDEX:
            facts += [each for each in read_list(files[name]) if not _POINTS_TO_FILE.search(each.text)]
        elif fact := note_in(files[name]):
            facts.append(fact)
        else:
            empty += 1
    return facts, empty


def note_in(text: str) -> Imported | None:
    """
    Return the fact of one file: its words, else its description; None without either.

    >>> note_in("---\\nname: lamp\\n---\\nThe lamp stays red, see [[harbour]].").text
    'The lamp stays red, see harbour.'
    """
    head, body = _parted(text)
    words = _LINKED.sub(r"\1", body).strip() or head.get("description", "").strip()
    if not words:
        return None
    if len(words) > LONGEST_NOTE_CHARS:
        words = words[:LONGEST_NOTE_CHARS].rsplit("\n", 1)[0].rstrip()
    return Imported(words, _KINDS.get(head.get("type", ""), "context"))


def _parted(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of a file's head, nested ones by their own name, and what follows it."""
    lines = text.lstrip("\ufeff").split("\n")
    if lines[0].strip() != "---":
        return {}, text
    end = next((at for at, line in enumerate(lines[1:60], 1) if line.strip() == "---"), None)
    if end is None:
        return {}, text
    fields = (_FIELD.match(line.rstrip()) for line in lines[1:end])
    return {field[1]: field[2].strip("\"'") for field in fields if field}, "\n".join(lines[end + 1 :])
