"""
Memories as files that a team shares: one in Markdown with front matter, a member's snapshot, a list of
decisions.

The file's name is for people; what it says decides which memory it is. Everything in it may be hostile.

What people write around the list is theirs and is kept. Of a conflict that git left in the list the lines of
both sides are kept, and its marks go.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from cortex.hooks.evidence.text import normalised
from cortex.hooks.prose.characters import visible
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.vocabulary import ADMIN, MEMORY_TYPES, ROLES
from cortex.transforms.words.prompt_injection import FROM_FILES, injection_reason, plain_letters

# -- One memory as a file of a repository: Markdown with front matter, read in a pull request, of stable
# bytes.

# Where a repository keeps what its team knows; `/` between the parts, as git names it.
TEAM_FOLDER = ".cortex/memories"
TEAM_FORMAT = 1
LARGEST_TEAM_FILE_BYTES = 16_384
MAX_PARAGRAPH_CHARS = 2_000  # of a statement, a reason, what was rejected
MAX_NAME_CHARS = 60  # of an author
MAX_NAMED_FILES = 50
_SLUG_CHARS = 48
_ID_DIGITS = 12
_FENCE = "---"
_LABELS = {"Why: ": "reason", "Rejected: ": "rejected"}
_KEY = re.compile(r"[a-z][a-z_]{0,30}")
_AUTHOR_SIGNS = re.compile(r"[^\w .'’-]+")
_REDACTED = "[REDACTED:"
# What a brief says in brackets, and whom an assistant answers to: nobody may be called so.
_RESERVED = frozenset(
    (
        *("user", "users", "assistant", "external", "tool", "tools", "colleague", "colleagues", "person"),
        *("human", "developer", "system", "admin", "root", "owner", "you", "me", "cortex", "claude", "model"),
        *("allprojects", "global", "everywhere", "reviewed", "shared", "withdrawn", "team", "theuser"),
        *("anthropic", "administrator", "operator", "thisuser", "yourself", "myself", "theperson"),
    )
)
# Figures and strokes that pass for letters in a name.
_READ_AS = str.maketrans("013457|!", "oieastli")


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
    if reason := injection_reason(text, policy, FROM_FILES):
        raise Unusable(reason)
    if _REDACTED in text:
        raise Unusable("a secret was taken out of it")
    if kinds := kinds_of_secret(text):
        raise Unusable(f"it holds a secret ({', '.join(kinds)})")


def author_name(name: str) -> str:
    """
    Return a name as it may stand in a brief's brackets; empty if nothing is left.

    Empty too for a name that a brief has for the person, the assistant or where a fact holds, however it is
    spelt: in look-alike letters, with signs between.

    >>> author_name("Ana (admin), <a@example.org>"), author_name("U s\u0435r"), author_name("Us\u00e9r1")
    ('Ana admin a example.org', '', '')
    """
    name = " ".join(_AUTHOR_SIGNS.sub(" ", visible(name)).split())[:MAX_NAME_CHARS].strip()
    read = plain_letters(name).casefold()
    spellings = {read, read.translate(_READ_AS), read.replace("rn", "m"), read.replace("vv", "w")}
    bare = {re.sub(r"[\W_]+", "", spelling) for spelling in spellings}
    return "" if _RESERVED & {*bare, *(each.rstrip("0123456789") for each in bare)} else name


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
    if max(map(len, texts.values())) > MAX_PARAGRAPH_CHARS:
        raise Unusable(f"a paragraph has more than {MAX_PARAGRAPH_CHARS} characters")
    author = author_name(_string(fields, "author"))
    if not author:
        raise Unusable("its author has no name, or one that a brief has for the person or the assistant")
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
    if not isinstance(files, list) or len(files) > MAX_NAMED_FILES:
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


# -- All that one member shares of one project, as one JSON file that this member alone writes.

SNAPSHOT_FORMAT = "cortex-shared"
LARGEST_SNAPSHOT_BYTES = 32_000_000
MAX_SHARED = 20_000


@dataclass(frozen=True)
class SharedMemory:
    """One memory of a snapshot, and when it was last said there, an ISO instant."""

    memory: TeamMemory
    said_at: str


def snapshot_text(memories: Iterable[SharedMemory]) -> str:
    """Return a snapshot's text: the same memories have the same bytes, whatever their order."""
    rows = sorted((each.memory.as_text(), each.said_at) for each in memories)
    entries = [{"memory": text, "said_at": said_at} for text, said_at in rows]
    document = {"format": SNAPSHOT_FORMAT, "version": 1, "memories": entries}
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_snapshot(content: bytes, policy: Policy) -> tuple[list[SharedMemory], list[str]]:
    """
    Return the memories of a snapshot, and the reasons for which others are set aside.

    Raises Unusable if the whole is none: what its member shares is then not known.
    """
    if len(content) > LARGEST_SNAPSHOT_BYTES:
        raise Unusable("it is too large")
    try:
        document = json.loads(content)
        if document["format"] != SNAPSHOT_FORMAT or document["version"] != 1:
            raise Unusable("it is of another version of Cortex")
        entries = [(str(entry["memory"]), str(entry["said_at"])) for entry in document["memories"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unusable("it is damaged") from error
    memories: list[SharedMemory] = []
    refused: list[str] = []
    for text, said_at in entries[:MAX_SHARED]:
        try:
            memories.append(SharedMemory(read_team_memory(text.encode("utf-8", "replace"), policy), said_at))
        except Unusable as error:
            refused.append(str(error))
    if len(entries) > MAX_SHARED:
        refused.append(f"more than {MAX_SHARED} memories")
    return memories, refused


# -- A tracked file of decisions: a line for each, which ends in its id, so that it can be written again.

BEGIN = "<!-- cortex decisions: one line each, written by `cortex team decisions` -->"
END = "<!-- end of cortex decisions -->"
_TITLE = "# Decisions\n\n"
_BEGIN = re.compile(r"<!-- cortex decisions: [^\n>]*-->")  # what it says differs by version
# Both sides of a conflict are kept, and not what stood there before (`merge.conflictStyle diff3`).
_BEFORE_CONFLICT = re.compile(r"^\|{7}.*?(?=^={7}$)", re.MULTILINE | re.DOTALL)
_CONFLICT_MARK = re.compile(r"^(?:<{7}|={7}|>{7})(?: .*)?$")
_ENTRY = re.compile(r"^- (\d{4}-\d\d-\d\d) .{1,6000} <!-- ([0-9a-f]{12}) -->$")


@dataclass(frozen=True)
class DecisionsFile:
    """A file in its parts: what stands before the list and behind it, and the list's lines by their id."""

    before: str
    lines: Mapping[str, str]
    behind: str

    @classmethod
    def of(cls, text: str) -> "DecisionsFile":
        """Return the parts of a text; one without a list has all of it before the list."""
        text = text.replace("\r\n", "\n")
        begin = _BEGIN.search(text)
        listed, end, behind = text[begin.end() :].partition(END) if begin else ("", "", "")
        if not begin or not end:
            return cls(text, {}, "")
        before = text[: begin.start()]
        lines: dict[str, str] = {}
        for line in _BEFORE_CONFLICT.sub("", listed).split("\n"):
            entry = _ENTRY.match(line)
            if entry:
                lines[entry[2]] = line
            elif line.strip() and not _CONFLICT_MARK.match(line):  # not ours: kept if nothing rewrites it
                before += line + "\n"
        return cls(before, lines, behind.removeprefix("\n"))

    def as_text(self) -> str:
        """Return the file: its lines by day and id."""
        listed = sorted(self.lines.values(), key=lambda line: (line[:12], line[-17:]))
        before = self.before if self.before.strip() else _TITLE
        return "\n".join([before.rstrip("\n"), "", BEGIN, *listed, END, self.behind])


def decision_id(statement: str) -> str:
    """Return the id of a decision's line: of its words, the same in every store."""
    return content_id("decision", normalised(statement))[:_ID_DIGITS]


def decision_line(statement: str, day: str, author: str, reason: str = "", rejected: str = "") -> str:
    """
    Return a decision as its line; `day` is an ISO date.

    >>> decision_line("Use UTC.", "2026-09-14", "Ana", reason="tides cross midnight")
    '- 2026-09-14 Use UTC. Why: tides cross midnight. (Ana) <!-- d019f2b25bf6 -->'
    """
    parts = [statement, f"Why: {reason}" if reason else "", f"Rejected: {rejected}" if rejected else ""]
    sentences = (" ".join(part.replace("<!--", "").replace("-->", "").split()) for part in parts if part)
    text = " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)
    return f"- {day} {text} ({author}) <!-- {decision_id(statement)} -->"


def with_decisions(text: str, lines: Mapping[str, str], gone: Collection[str]) -> str:
    """
    Return a file's text with `lines` (by id) in its list, and without those that are `gone`.

    A line that is there already stays as it is, whoever wrote it, so that nothing changes back and forth.
    """
    file = DecisionsFile.of(text)
    kept = {name: line for name, line in file.lines.items() if name not in gone}
    return DecisionsFile(file.before, {**lines, **kept}, file.behind).as_text()


# -- Who may read, write and administer a team's place, by project: the file `share/members.json`.

MEMBERS_FORMAT = "cortex-members"
EVERYWHERE = "*"


@dataclass(frozen=True)
class Member:
    """A member: a name for people, and roles by project id, under `*` for every other project."""

    name: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Members:
    """All members by id. Whoever is not listed may do nothing."""

    by_id: Mapping[str, Member] = field(default_factory=dict)

    def role(self, member_id: str, project_id: str) -> str:
        """Return a member's role in a project, "" for none."""
        roles = self.by_id.get(member_id, Member()).roles
        return roles.get(project_id, roles.get(EVERYWHERE, ""))

    def allows(self, member_id: str, project_id: str, needed: str) -> bool:
        """Return whether a member's role in a project is `needed` or more."""
        role = self.role(member_id, project_id)
        return role in ROLES and ROLES.index(role) >= ROLES.index(needed)

    def granted(self, member_id: str, project_id: str, role: str, name: str = "") -> "Members":
        """Return the members once one has a role in a project, or (for "") none there."""
        known = self.by_id.get(member_id, Member())
        # An empty role is kept for a project: it takes back there what `*` gives.
        roles = {**known.roles, project_id: role}
        if project_id == EVERYWHERE:
            roles = {EVERYWHERE: role} if role else {}
        changed = replace(known, name=name or known.name, roles=roles)
        left = {key: each for key, each in self.by_id.items() if key != member_id}
        return Members({**left, member_id: changed} if any(roles.values()) else left)

    @property
    def has_admin(self) -> bool:
        """Whether somebody may change the roles of every project."""
        return any(each.roles.get(EVERYWHERE) == ADMIN for each in self.by_id.values())

    def as_text(self) -> str:
        """Return the file's text."""
        members = {key: {"name": each.name, "roles": dict(each.roles)} for key, each in self.by_id.items()}
        document = {"format": MEMBERS_FORMAT, "version": 1, "members": members}
        return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_members(content: bytes) -> Members:
    """Return what the file says. Raises Unusable if it is none: nobody's role is known then."""
    try:
        document = json.loads(content)
        if document["format"] != MEMBERS_FORMAT or document["version"] != 1:
            raise Unusable("it is of another version of Cortex")
        return Members({str(key): _member(each) for key, each in document["members"].items()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unusable("it is damaged") from error


def _member(entry: Mapping[str, object]) -> Member:
    roles = entry["roles"]
    if not isinstance(roles, dict) or not all(role in (*ROLES, "") for role in roles.values()):
        raise ValueError("not roles")
    return Member(author_name(str(entry.get("name", ""))), {str(key): role for key, role in roles.items()})
