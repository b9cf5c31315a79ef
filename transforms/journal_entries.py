"""The journal's entries: one frozen dataclass for each kind, with its row and the JSON of its payload."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import orjson
import pyarrow as pa

from cortex.transforms.identity import content_id
from cortex.transforms.schemas import (
    CATEGORIES,
    JOURNAL,
    JOURNAL_KINDS,
    MEMORY_TYPES,
    SOURCE_TYPES,
    STATUSES,
    TRUSTS,
    Row,
    checked,
    values,
)
from cortex.transforms.vocabulary import TEAM_SOURCES

Names: TypeAlias = Sequence[str]
MemoryType: TypeAlias = Annotated[str, "one of MEMORY_TYPES", MEMORY_TYPES]
Category: TypeAlias = Annotated[str, "one of CATEGORIES", CATEGORIES]
Trust: TypeAlias = Annotated[str, "one of TRUSTS", TRUSTS]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """
    What one entry says; when, of which scope and memory, and by whom are columns of its row.

    A field that is None is left out of the payload, but for those in `nulls`. A field goes by its own name
    there, or by that in `keys`.
    """

    kind: ClassVar[str] = ""
    keys: ClassVar[Mapping[str, str]] = {}
    nulls: ClassVar[frozenset[str]] = frozenset()

    others: Annotated[Mapping[str, Any] | None, "what another version wrote, kept as it is"] = field(
        default=None, kw_only=True
    )

    @property
    def payload(self) -> str:
        """Return the fields as the JSON of the column `payload`, keys sorted."""
        return json.dumps(self.content, ensure_ascii=False, sort_keys=True)

    @property
    def content(self) -> Row:
        """Return the fields by their keys in the payload."""
        content = {**(self.others or {})}
        for key, name in FIELDS[type(self)].items():
            value = getattr(self, name)
            if value is not None or name in self.nulls:
                content[key] = value
        return content

    def to_row(
        self,
        project_id: str,
        *,
        recorded_at: datetime,
        memory_id: str | None = None,
        actor: str = "user",
    ) -> dict[str, object]:
        """Return the JOURNAL row; its id is made from the rest. Raises UnknownValue for an unknown kind."""
        checked("journal kind", self.kind, JOURNAL_KINDS)
        payload = self.payload
        identity = (recorded_at.isoformat(), self.kind, project_id, memory_id or "", actor, payload)
        return {
            "entry_id": content_id(*identity),
            "recorded_at": recorded_at,
            "kind": self.kind,
            "project_id": project_id,
            "memory_id": memory_id,
            "actor": actor,
            "payload": payload,
        }


@dataclass(frozen=True, slots=True)
class _Fact(JournalEntry):
    """What entries that bring in a fact have in common."""

    text: Annotated[str, "the fact"]
    memory_type: MemoryType
    category: Category
    priority: Annotated[int | None, "weight in ranking, 1 to 10"] = None
    pinned: Annotated[bool | None, "kept from decay and merging"] = None
    files: Annotated[Names | None, "files named"] = None
    tags: Annotated[Names | None, "technologies and topics named"] = None


@dataclass(frozen=True, slots=True)
class Remember(_Fact):
    """A fact that a person gave, or what was indexed of a source file."""

    kind: ClassVar[str] = "remember"
    source_type: Annotated[str | None, "one of SOURCE_TYPES; left out: explicit", SOURCE_TYPES] = None
    trust: Annotated[str | None, "one of TRUSTS; left out: user", TRUSTS] = None
    created_at: Annotated[str | None, "first said, an ISO instant"] = None
    folder: Annotated[str | None, "folder in which it was told"] = None
    git_branch: Annotated[str | None, "branch checked out there"] = None
    git_commit: Annotated[str | None, "commit checked out there"] = None
    session_id: Annotated[str | None, "session of the assistant in which it was told"] = None


@dataclass(frozen=True, slots=True)
class ImportFact(_Fact):
    """A fact from another tool's export."""

    kind: ClassVar[str] = "import"
    source_type: Annotated[str | None, "one of SOURCE_TYPES; left out: import", SOURCE_TYPES] = None
    trust: Annotated[str | None, "one of TRUSTS; left out: external", TRUSTS] = None
    created_at: Annotated[str | None, "noted by that tool, an ISO instant"] = None


@dataclass(frozen=True, slots=True)
class ImportMemory(JournalEntry):
    """A whole memory from an own export: the columns of MEMORIES, undecayed, instants in ISO."""

    kind: ClassVar[str] = "import"
    nulls: ClassVar[frozenset[str]] = frozenset(
        {
            "reason",
            "rejected",
            "last_accessed_at",
            "recorded_at",
            "archived_at",
            "superseded_by",
            "merged_into",
        }
    )
    text: Annotated[str, "the fact"]
    memory_type: MemoryType
    category: Category
    files: Annotated[Names, "files named"]
    tags: Annotated[Names, "technologies and topics named"]
    status: Annotated[str, "one of STATUSES", STATUSES]
    source_type: Annotated[str, "one of SOURCE_TYPES", SOURCE_TYPES]
    trust: Trust
    pinned: Annotated[bool, "kept from decay and merging"]
    priority: Annotated[int, "weight in ranking, 1 to 10"]
    initial_confidence: Annotated[float, "confidence when last reinforced, 0 to 1"]
    salience: Annotated[float, "highest salience of its events, 0 to 1"]
    access_count: Annotated[int, "times recalled"]
    created_at: Annotated[str, "first said"]
    updated_at: Annotated[str, "last said or edited"]
    evidence: Annotated[Sequence[Mapping[str, Any]], "where it was said, newest first"]
    reason: Annotated[str | None, "why, where known"] = None
    rejected: Annotated[str | None, "what was turned down, where known"] = None
    last_accessed_at: Annotated[str | None, "last recall"] = None
    recorded_at: Annotated[str | None, "last change known to Cortex"] = None
    archived_at: Annotated[str | None, "when it left the active ones"] = None
    superseded_by: Annotated[str | None, "memory that replaced it"] = None
    merged_into: Annotated[str | None, "memory that took it up in a consolidation"] = None
    folder: Annotated[str | None, "folder in which it was told"] = None
    git_branch: Annotated[str | None, "branch on which it was said or told last"] = None
    git_commit: Annotated[str | None, "commit checked out when it was told"] = None
    session_id: Annotated[str | None, "session of the assistant in which it was told"] = None


@dataclass(frozen=True, slots=True)
class Edit(JournalEntry):
    """Other words for a memory; its id, age and evidence stay."""

    kind: ClassVar[str] = "edit"
    text: Annotated[str, "the new words"]


@dataclass(frozen=True, slots=True)
class Pin(JournalEntry):
    """Keeps a memory from decay and merging."""

    kind: ClassVar[str] = "pin"


@dataclass(frozen=True, slots=True)
class Unpin(JournalEntry):
    """Takes a pin back."""

    kind: ClassVar[str] = "unpin"


@dataclass(frozen=True, slots=True)
class Forget(JournalEntry):
    """A request to forget a memory, a session or a whole project; with `of`, the note that it was erased."""

    kind: ClassVar[str] = "forget"
    turn_ids: Annotated[Names | None, "turns that the memory rests on"] = None
    session_ids: Annotated[Names | None, "sessions to forget as a whole"] = None
    everything: Annotated[bool | None, "all that was said in the project up to now"] = None
    of: Annotated[str | None, "the request that was carried out, by its entry_id"] = None
    pruned: Annotated[Mapping[str, str] | None, "what `prune` holds, as Cortex 1.0 wrote it"] = None

    @property
    def is_wish(self) -> bool:
        """Return whether a person asked for it: no note of an erasure, and not what had only faded."""
        return self.of is None and self.pruned is None


@dataclass(frozen=True, slots=True)
class Supersede(JournalEntry):
    """Another memory takes this one's place."""

    kind: ClassVar[str] = "supersede"
    by: Annotated[str, "the memory that replaces it"]


@dataclass(frozen=True, slots=True)
class Merge(JournalEntry):
    """A consolidation: one memory takes up several, which are archived."""

    kind: ClassVar[str] = "merge"
    members: Annotated[Names, "memories taken up"]
    text: Annotated[str, "the words of the merged memory"]
    memory_type: Annotated[str | None, "one of MEMORY_TYPES", MEMORY_TYPES] = None


@dataclass(frozen=True, slots=True)
class Unmerge(JournalEntry):
    """Takes a merge back."""

    kind: ClassVar[str] = "unmerge"


@dataclass(frozen=True, slots=True)
class Archive(JournalEntry):
    """Takes a memory out of the brief; it is still found."""

    kind: ClassVar[str] = "archive"
    reason: Annotated[str | None, "what the repository says against it"] = None


@dataclass(frozen=True, slots=True)
class Restore(JournalEntry):
    """Takes a supersede back."""

    kind: ClassVar[str] = "restore"


@dataclass(frozen=True, slots=True)
class Recall(JournalEntry):
    """Memories that answered a question, which reinforces them, and marks of the lines that were shown."""

    kind: ClassVar[str] = "recall"
    keys: ClassVar[Mapping[str, str]] = {"marks": "told"}
    memory_ids: Annotated[Names, "memories recalled"]
    marks: Annotated[Names | None, "fingerprints of the lines shown, to know their echo by"] = None


@dataclass(frozen=True, slots=True)
class Confirm(JournalEntry):
    """A person says that a memory still holds: it counts as said again that day."""

    kind: ClassVar[str] = "confirm"


@dataclass(frozen=True, slots=True)
class Dismiss(JournalEntry):
    """Leaves what a review found as it is, for good."""

    kind: ClassVar[str] = "dismiss"
    memory_ids: Annotated[Names, "memories that the item is about"]
    item: Annotated[str | None, "contradiction, stale, merge or global"] = None
    reason: Annotated[str | None, "what the repository said; stale only"] = None
    is_withdrawn: Annotated[bool | None, "takes back what left it as it is"] = None


@dataclass(frozen=True, slots=True)
class Fade(JournalEntry):
    """Memories that a run found weak: their days of grace begin."""

    kind: ClassVar[str] = "fade"
    memory_ids: Annotated[Names, "memories found weak"]


@dataclass(frozen=True, slots=True)
class Recover(JournalEntry):
    """Weak memories that a run found strong again."""

    kind: ClassVar[str] = "recover"
    memory_ids: Annotated[Names, "memories found strong"]


@dataclass(frozen=True, slots=True)
class Prune(JournalEntry):
    """The tombstone of a memory that faded too long ago; its words stay in the lake."""

    kind: ClassVar[str] = "prune"
    memory_type: MemoryType
    source_type: Annotated[str, "one of SOURCE_TYPES", SOURCE_TYPES]
    trust: Trust
    created_at: Annotated[str, "first said, an ISO instant"]
    updated_at: Annotated[str, "last said or edited, an ISO instant"]


@dataclass(frozen=True, slots=True)
class ActiveDays(JournalEntry):
    """When a project was worked on in the store that an import came from."""

    kind: ClassVar[str] = "worked"
    active_at: Annotated[Names, "ISO instants"]


@dataclass(frozen=True, slots=True)
class ProjectFolder(JournalEntry):
    """A working directory and the project that it belongs to."""

    kind: ClassVar[str] = "project"
    cwd: Annotated[str, "the directory"]
    name: Annotated[str, "the repository's name, or the directory's"]
    identity: Annotated[str, "git:<remote>, root:<first commit> or path:<path>"]
    root: Annotated[str | None, "first commit of its repository"] = None


@dataclass(frozen=True, slots=True)
class ProjectName(JournalEntry):
    """The name that a person gave a project."""

    kind: ClassVar[str] = "project"
    name: Annotated[str, "the name"]


@dataclass(frozen=True, slots=True)
class ProjectMerge(JournalEntry):
    """Makes a project part of another, or takes that back."""

    kind: ClassVar[str] = "project"
    nulls: ClassVar[frozenset[str]] = frozenset({"merged_into"})
    merged_into: Annotated[str | None, "id of the other project; null: it stands by itself again"]


@dataclass(frozen=True, slots=True)
class TeamFact(JournalEntry):
    """A memory that colleagues hold for a project: in its repository, reviewed, or in a team's place."""

    kind: ClassVar[str] = "team"
    text: Annotated[str, "the fact"]
    memory_type: MemoryType
    paths: Annotated[Names, "its files in the repository, sorted"]
    authors: Annotated[Names, "who proposed each of these files, as git says"]
    files: Annotated[Names | None, "files named"] = None
    reason: Annotated[str | None, "why, where known"] = None
    rejected: Annotated[str | None, "what was turned down, where known"] = None
    said_at: Annotated[str | None, "when its files last changed, an ISO instant"] = None
    source: Annotated[str | None, "one of TEAM_SOURCES; left out: git", TEAM_SOURCES] = None


@dataclass(frozen=True, slots=True)
class Withdraw(JournalEntry):
    """Colleagues hold a memory no more: its file was removed, or says something else."""

    kind: ClassVar[str] = "withdraw"
    by: Annotated[str | None, "the memory that its file holds now"] = None
    source: Annotated[str | None, "one of TEAM_SOURCES; left out: git", TEAM_SOURCES] = None


@dataclass(frozen=True, slots=True)
class Checkpoint(JournalEntry):
    """A name for a moment that a consolidation can be taken back to."""

    kind: ClassVar[str] = "checkpoint"
    name: Annotated[str, "the name"]


@dataclass(frozen=True, slots=True)
class UnknownEntry(JournalEntry):
    """An entry of a kind that this version does not know; nothing is made of it."""


Import: TypeAlias = ImportFact | ImportMemory
Worded: TypeAlias = (
    Remember | ImportFact | ImportMemory | TeamFact | Edit | Merge
)  # those that carry a memory's text
ProjectEntry: TypeAlias = ProjectFolder | ProjectName | ProjectMerge
Entry: TypeAlias = (
    Worded
    | ProjectEntry
    | Pin
    | Unpin
    | Forget
    | Supersede
    | Unmerge
    | Archive
    | Restore
    | Recall
    | Confirm
    | Dismiss
    | Fade
    | Recover
    | Prune
    | ActiveDays
    | Withdraw
    | Checkpoint
    | UnknownEntry
)
ENTRIES: tuple[type[JournalEntry], ...] = tuple(kind for kind in get_args(Entry) if kind is not UnknownEntry)
_BY_KIND = {entry.kind: entry for entry in ENTRIES}  # import and project have several: see `entry_of`

# Key of the payload → field, for each class.
FIELDS: dict[type[JournalEntry], dict[str, str]] = {
    known: {known.keys.get(field.name, field.name): field.name for field in fields(known)[1:]}
    for known in (*ENTRIES, cast(type[JournalEntry], UnknownEntry))
}

AnEntry = TypeVar("AnEntry", bound=JournalEntry)


def from_row(row: Row) -> Entry:
    """Return what a JOURNAL row says. Raises ValueError if its payload is not that of its kind."""
    try:
        payload = orjson.loads(row["payload"])
    except orjson.JSONDecodeError:  # NaN and halves of surrogate pairs, which json takes
        payload = json.loads(row["payload"])
    return entry_of(row["kind"], payload)


def entry_of(kind: str, payload: Mapping[str, Any]) -> Entry:
    """Return the entry of a kind with this payload. Raises ValueError if a field is missing."""
    if not isinstance(payload, dict):
        raise ValueError(f"not the payload of an entry: {kind}")
    entry = _class_of(kind, payload)
    names = FIELDS[entry]
    content = {names[key]: value for key, value in payload.items() if key in names}
    if len(content) < len(payload):
        content["others"] = {key: value for key, value in payload.items() if key not in names}
    try:
        return cast(Entry, entry(**content))
    except TypeError as error:
        raise ValueError(f"the payload of an entry lacks a field: {kind}") from error


def entries_in(journal: pa.Table, entry_class: type[AnEntry]) -> Iterator[tuple[Row, AnEntry]]:
    """Yield the JOURNAL rows of one class, in their order, each with what it says."""
    import pyarrow.compute as pc  # here: a question needs none of these functions

    for row in journal.filter(pc.equal(journal["kind"], pa.scalar(entry_class.kind))).to_pylist():
        entry = from_row(row)
        if isinstance(entry, entry_class):
            yield row, entry


def dismissals_in_force(journal: pa.Table) -> list[Dismiss]:
    """Return what JOURNAL rows left as it is and no later one took back."""
    in_force: dict[tuple[str | None, tuple[str, ...], str | None], Dismiss] = {}
    for _, entry in entries_in(journal, Dismiss):
        about = (entry.item, tuple(sorted(entry.memory_ids)), entry.reason)
        in_force.pop(about, None)
        if not entry.is_withdrawn:
            in_force[about] = entry
    return list(in_force.values())


# Entries of one instant: what makes a memory comes before what changes it, then what takes a change back, and
# last what forgets. A clock may give two steps of a program the same instant; all others are in between.
_RANKS = {
    "remember": 0,
    "import": 0,
    "team": 0,
    "unpin": 2,
    "restore": 2,
    "unmerge": 2,
    "recover": 2,
    "forget": 3,
}
_OTHERS = 1


def in_order(journal: pa.Table) -> pa.Table:
    """Return JOURNAL rows in the order in which they count: by instant, of one instant by kind, then id."""
    ranks = pa.array([_RANKS.get(kind, _OTHERS) for kind in values(journal, "kind")], pa.int8())
    ranked = journal.append_column("rank", ranks)
    ordered = ranked.sort_by([("recorded_at", "ascending"), ("rank", "ascending"), ("entry_id", "ascending")])
    return ordered.drop_columns(["rank"])


def project_entries(journal: pa.Table) -> Iterator[tuple[Row, ProjectEntry]]:
    """Yield the JOURNAL rows about projects, in their order, each with what it says."""
    import pyarrow.compute as pc

    for row in journal.filter(pc.equal(journal["kind"], pa.scalar(ProjectName.kind))).to_pylist():
        yield row, cast(ProjectEntry, from_row(row))


def project_entry(payload: str) -> ProjectEntry:
    """Return what the payload of an entry about a project says."""
    return cast(ProjectEntry, from_row({"kind": ProjectName.kind, "payload": payload}))


def is_prune(entry: JournalEntry) -> bool:
    """Return whether an entry is a tombstone of what only faded, also as Cortex 1.0 wrote it."""
    return isinstance(entry, Prune) or (isinstance(entry, Forget) and entry.pruned is not None)


def entry_in(content: bytes) -> Row:
    """
    Return the JOURNAL row that a waiting file holds. Raises ValueError or TypeError for anything else.

    A fold reads every entry, so one of another shape would stop its scope for ever.
    """
    row = json.loads(content)
    if not isinstance(row, dict) or set(row) != set(JOURNAL.arrow.names):
        raise ValueError("not the columns of an entry")
    for name, value in row.items():
        if not isinstance(value, str) and not (name == "memory_id" and value is None):
            raise TypeError(name)
        (value or "").encode()  # half a surrogate pair cannot be stored
    checked_entry(row["kind"], json.loads(row["payload"]))
    identity = (row["recorded_at"], row["kind"], row["project_id"], row["memory_id"] or "", row["actor"])
    if row["entry_id"] != content_id(*identity, row["payload"]):
        raise ValueError("its id is that of another entry")
    at = datetime.fromisoformat(row["recorded_at"])
    if at.tzinfo is None:
        raise ValueError("its time has no zone")
    return {**row, "recorded_at": at}


def checked_entry(kind: str, payload: Mapping[str, Any]) -> Entry:
    """Return an entry with its fields checked for type and closed set. Raises ValueError or TypeError."""
    entry = entry_of(checked("journal kind", kind, JOURNAL_KINDS), payload)
    hints = _hints_of(cast(type, type(entry)))
    for name in FIELDS[type(entry)].values():
        value, (hint, _, *allowed) = getattr(entry, name), get_args(hints[name])
        if not _is_of(value, hint):
            raise TypeError(name)
        if allowed and value is not None:
            checked(name, value, *allowed)
    return entry


@cache
def _hints_of(entry: type) -> dict[str, Any]:
    return get_type_hints(entry, include_extras=True)


def _class_of(kind: str, payload: Mapping[str, Any]) -> type[JournalEntry]:
    if kind == "import":
        return ImportMemory if "initial_confidence" in payload else ImportFact
    if kind == "project":
        if "cwd" in payload:
            return ProjectFolder
        return ProjectMerge if "merged_into" in payload else ProjectName
    return _BY_KIND.get(kind, UnknownEntry)


def _is_of(value: object, hint: Any) -> bool:
    """Return whether a value of JSON is of a field's type."""
    parts = get_args(hint)
    if isinstance(hint, UnionType):
        return any(_is_of(value, part) for part in parts)
    if get_origin(hint) is Sequence:
        return isinstance(value, list) and all(_is_of(item, parts[0]) for item in value)
    if get_origin(hint) is Mapping:
        return isinstance(value, dict)
    return isinstance(value, (int, float) if hint is float else hint)
