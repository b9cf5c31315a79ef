"""
One memory as a file of a repository: Markdown with front matter, read in a pull request, of stable bytes.

The file's name is for people; what it says decides which memory it is. Everything in it may be hostile.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from cortex.hooks.evidence.text import normalised
from cortex.hooks.prose.characters import visible
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.vocabulary import MEMORY_TYPES

# Where a repository keeps what its team knows; `/` between the parts, as git names it.
TEAM_FOLDER = ".cortex/memories"
TEAM_FORMAT = 1
LARGEST_TEAM_FILE_BYTES = 16_384
LONGEST_PARAGRAPH_CHARS = 2_000  # of a statement, a reason, what was rejected
LONGEST_NAME_CHARS = 60  # of an author
MOST_NAMED_FILES = 50
_SLUG_CHARS = 48
_ID_DIGITS = 12
_FENCE = "---"
_LABELS = {"Why: ": "reason", "Rejected: ": "rejected"}
_KEY = re.compile(r"[a-z][a-z_]{0,30}")
_AUTHOR_SIGNS = re.compile(r"[^\w .'’-]+")
_REDACTED = "[REDACTED:"


@dataclass(frozen=True)
class TeamMemory:
    """
    What one file says: the statement, its type, why it holds, and what it rests on.

    `author` is the name of who proposed it, `evidence` a hash of the turns that it rests on there, by which
    the author alone can find them again; empty where it was said on purpose.
    """

    statement: str
    memory_type: str
    author: str
    reason: str = ""
    rejected: str = ""
    files: tuple[str, ...] = ()
    evidence: str = ""

    @property
    def file_name(self) -> str:
        """Return the file's name: its first words, then digits of the statement and its author."""
        words = re.sub(r"[^a-z0-9]+", "-", normalised(self.statement)).strip("-")[:_SLUG_CHARS].strip("-")
        digits = content_id("team", self.memory_type, normalised(self.statement), self.author)[:_ID_DIGITS]
        return f"{words}-{digits}.md" if words else f"{digits}.md"

    def as_text(self) -> str:
        """Return the file's text; the same memory has the same bytes on any machine and day."""
        fields: dict[str, object] = {"author": self.author, "format": TEAM_FORMAT, "type": self.memory_type}
        if self.evidence:
            fields["evidence"] = self.evidence
        if self.files:
            fields["files"] = sorted(self.files)
        head = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in sorted(fields.items())]
        labelled = zip(_LABELS, (self.reason, self.rejected), strict=True)
        body = [self.statement, *(label + text for label, text in labelled if text)]
        return "\n".join([_FENCE, *head, _FENCE, "", "\n\n".join(body), ""])


class Unusable(Exception):
    """A file is no memory; the message says why, never what it holds."""


def read_team_memory(content: bytes, policy: Policy) -> TeamMemory:
    """Return what a file says. Raises Unusable, with the reason, for anything but a memory."""
    if len(content) > LARGEST_TEAM_FILE_BYTES:
        raise Unusable(f"it has more than {LARGEST_TEAM_FILE_BYTES // 1024} kB")
    try:
        text = content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Unusable("it is not text") from error
    check_shareable(text, policy)
    fields, body = _parts(text)
    memory = _memory(fields, body)
    if memory.memory_type not in MEMORY_TYPES:
        raise Unusable("its type is none of Cortex's")
    return memory


def check_shareable(text: str, policy: Policy) -> None:
    """Raise Unusable where a text holds what no shared memory may: secrets, hidden characters, orders."""
    if visible(text, keeps_lines=True) != text:
        raise Unusable("it holds characters that cannot be seen")
    for pattern, reason in _refusals(tuple(_rows(policy))):
        if pattern.search(text):
            raise Unusable(reason)
    if _REDACTED in text:
        raise Unusable("a secret was taken out of it")
    if kinds := kinds_of_secret(text):
        raise Unusable(f"it holds a secret ({', '.join(kinds)})")


def author_name(name: str) -> str:
    """
    Return a name as it may stand in a brief's brackets; empty if nothing is left.

    >>> author_name("Ana (admin), <a@example.org>")
    'Ana admin a example.org'
    """
    return " ".join(_AUTHOR_SIGNS.sub(" ", visible(name)).split())[:LONGEST_NAME_CHARS].strip()


def _rows(policy: Policy) -> Iterable[tuple[str, str]]:
    return ((str(row["pattern"]), str(row["reason"])) for row in policy.rows["team_refusals"].values())


@cache
def _refusals(rows: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE | re.MULTILINE), reason) for pattern, reason in rows)


def _parts(text: str) -> tuple[dict[str, object], str]:
    """Return the front matter's fields and the body."""
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE or _FENCE not in (line.rstrip() for line in lines[1:]):
        raise Unusable("it does not begin with front matter between two lines of ---")
    end = next(at for at, line in enumerate(lines[1:], start=1) if line.rstrip() == _FENCE)
    fields: dict[str, object] = {}
    for line in filter(str.strip, lines[1:end]):
        name, colon, value = line.partition(":")
        if not colon or not _KEY.fullmatch(name):
            raise Unusable("its front matter has a line that is not `name: value`")
        if name in fields:
            raise Unusable(f"its front matter names {name} twice")
        fields[name] = _value(value.strip())
    return fields, "\n".join(lines[end + 1 :])


def _value(text: str) -> object:
    """Return a value of JSON, or plain words as a person writes them."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text[:1] in ("[", "{", '"', "&", "*", "!", "|", ">"):
            raise Unusable("its front matter has a value that is not JSON") from None
        return text


def _memory(fields: dict[str, object], body: str) -> TeamMemory:
    if fields.get("format", TEAM_FORMAT) != TEAM_FORMAT:
        raise Unusable("its format is that of another Cortex")
    texts = {"statement": "", "reason": "", "rejected": ""}
    for at, paragraph in enumerate(filter(None, (" ".join(p.split()) for p in body.split("\n\n")))):
        label = next((label for label in _LABELS if at and paragraph.startswith(label)), "")
        name = _LABELS[label] if label else "statement"
        if texts[name]:
            raise Unusable("it has more than a statement, `Why:` and `Rejected:`")
        texts[name] = paragraph.removeprefix(label)
    if not texts["statement"]:
        raise Unusable("it has no statement")
    if max(map(len, texts.values())) > LONGEST_PARAGRAPH_CHARS:
        raise Unusable(f"a paragraph has more than {LONGEST_PARAGRAPH_CHARS} characters")
    author = author_name(_string(fields, "author"))
    evidence = _string(fields, "evidence")[:100] if "evidence" in fields else ""
    return TeamMemory(
        memory_type=_string(fields, "type"), author=author, files=_files(fields), evidence=evidence, **texts
    )


def _string(fields: dict[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Unusable(f"its front matter has no {name}")
    return value


def _files(fields: dict[str, object]) -> tuple[str, ...]:
    files = fields.get("files", [])
    if not isinstance(files, list) or len(files) > MOST_NAMED_FILES:
        raise Unusable("its `files` are not a short list")
    for file in files:
        if not isinstance(file, str) or not is_path_inside(file):
            raise Unusable("its `files` name something outside of the repository")
    return tuple(sorted(set(files)))


def is_path_inside(path: str) -> bool:
    """
    Return whether a path is one of a file below the folder that it is relative to.

    >>> is_path_inside("src/store.py"), is_path_inside("../secrets"), is_path_inside("/etc/passwd")
    (True, False, False)
    """
    parts = path.replace("\\", "/").split("/")
    return 0 < len(path) <= 300 and ":" not in parts[0] and not {"", "..", "~"} & set(parts)
