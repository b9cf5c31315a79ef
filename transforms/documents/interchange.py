"""
Memories out and in: Markdown, other tools' JSON, Claude Code's notes, Cortex's own signed export; none is
believed.
"""

import hashlib
import hmac
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from cortex.hooks.prose.memory_types import OTHER_NAMES
from cortex.hooks.prose.plain import without_private
from cortex.transforms.errors import NothingUsable
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Dismiss, checked_entry
from cortex.transforms.memory.fold import file_memory_id, memory_id
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import (
    CATEGORIES,
    MEMORIES,
    MEMORY_TYPES,
    MODEL_COLUMNS,
    SOURCE_TYPES,
    STATUSES,
    TRUSTS,
    Row,
)

# -- Markdown out and in, and the JSON of other tools as they document it; nothing in it is believed.

# First line of our own Markdown: its headings name projects, and its bullets may have several lines.
MARKDOWN_SIGN = "<!-- cortex-memories: text, type and project of active memories -->"

_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.+)$")
_TYPED = re.compile(r"^\[(?:MEMORY:\s*)?([a-z_]+)\]\s+(.+)$", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6}\s+(.+)$")
_OWN_PROJECT = re.compile(r"^# (.*) <!-- ([a-z0-9-]+) -->$")
_OWN_KIND = re.compile(r"^## ([a-z_]+)$")


@dataclass(frozen=True)
class Imported:
    """One memory of a file: its text, and what the file says about it that has a name of ours."""

    text: str
    memory_type: str = "context"
    is_global: bool = False
    priority: int = 5
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    trust: str = "external"
    created_at: str | None = None
    project: str | None = None  # the id or name that an export of ours names
    memory_id: str = ""  # the id in the store that an export of ours is of


@dataclass(frozen=True)
class Read:
    """What a file gave: the name of its format, its memories, how many of its entries could not be used."""

    form: str
    memories: tuple[Imported, ...]
    unusable: int


def as_markdown(memories: Iterable[Row], names: Mapping[str, str]) -> str:
    """
    Return active MEMORIES rows as Markdown lists, a heading a project and a type.

    Markdown keeps the text, its lines included, the type and the project; dates, trust, reasons and all
    other bookkeeping only JSON keeps.
    """
    lines = [MARKDOWN_SIGN]
    project, kind = "", ""
    order = {name: at for at, name in enumerate(MEMORY_TYPES)}
    active = [m for m in memories if m["status"] == "active"]
    for m in sorted(active, key=lambda m: (m["project_id"], order[m["memory_type"]], m["memory_id"])):
        if m["project_id"] != project:
            project, kind = m["project_id"], ""
            lines += ["", f"# {' '.join(names.get(project, project).split())} <!-- {project} -->"]
        if m["memory_type"] != kind:
            kind = m["memory_type"]
            lines += ["", f"## {kind}", ""]
        first, *rest = m["text"].split("\n")
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return "\n".join(lines) + "\n"


def read_export(raw: bytes) -> Read:
    """
    Return the memories of a file: a Cortex export, claude-mem's, mcp-memory-service's, mem0's, or a list.

    All of it is believed as external, whatever it claims: an export that this user wrote is known by its
    signature, before it comes here (own_export). Raises NothingUsable when nothing in it is a memory.
    """
    text = raw.decode("utf-8", "replace")
    if text.startswith(MARKDOWN_SIGN):
        return _usable(_read_own_markdown(text))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _usable(Read("markdown list", tuple(read_list(text)), 0))
    for form, finds, reads in _SHAPES:
        entries = finds(document)
        if entries is not None:
            facts = [reads(entry) if isinstance(entry, dict) else None for entry in entries]
            kept = tuple(entry for entry in facts if entry is not None and entry.text.strip())
            return _usable(Read(form, kept, len(facts) - len(kept)))
    raise NothingUsable(
        "the JSON has no shape that Cortex knows.",
        "Known: its own export, claude-mem's, mcp-memory-service's, mem0's; or a Markdown list.",
    )


def _usable(read: Read) -> Read:
    if not read.memories:
        raise NothingUsable("there is no memory in it.", "A list needs lines that begin with '- '.")
    return read


def read_list(text: str) -> list[Imported]:
    """Return a list's bullets; a heading that is the name of a memory type gives those below it theirs."""
    memories: list[Imported] = []
    kind = "context"
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            kind = _kind(heading.group(1))
        elif bullet := _BULLET.match(line):
            typed = _TYPED.match(bullet.group(1))
            words, own = (typed.group(2), _kind(typed.group(1))) if typed else (bullet.group(1), kind)
            memories.append(Imported(words.strip(), own))
    return memories


def _read_own_markdown(text: str) -> Read:
    """Read back what `as_markdown` wrote."""
    memories: list[Imported] = []
    project, kind = None, "context"
    for line in text.split("\n")[1:]:
        if heading := _OWN_PROJECT.match(line):
            project = heading.group(2)
        elif heading := _OWN_KIND.match(line):
            kind = _kind(heading.group(1))
        elif line.startswith("- "):
            memories.append(Imported(line[2:], kind, project == "global", project=project))
        elif line.startswith("  ") and memories:
            memories[-1] = replace(memories[-1], text=f"{memories[-1].text}\n{line[2:]}")
    return Read("cortex markdown", tuple(memories), 0)


def _kind(name: object) -> str:
    name = str(name or "").strip().lower().replace(" ", "_")
    if name in MEMORY_TYPES:
        return name
    singular = name.removesuffix("s")
    if singular in MEMORY_TYPES:
        return singular
    return OTHER_NAMES.get(singular, OTHER_NAMES.get(name, "context"))


def _own(row: Row) -> Imported | None:
    """Read one memory of an export that nobody here vouches for: neither its trust nor its pin counts."""
    if row.get("status", "active") != "active" or row.get("memory_type") not in MEMORY_TYPES:
        return None
    project = row.get("project_id") or row.get("project")
    return Imported(
        text=str(row.get("text") or ""),
        memory_type=row["memory_type"],
        is_global=row.get("category") == "global",
        priority=row["priority"] if row.get("priority") in range(1, 11) else 5,
        tags=_strings(row.get("tags")),
        files=_strings(row.get("files")),
        created_at=_instant(row.get("created_at")),
        project=project if isinstance(project, str) else None,
        memory_id=str(row.get("memory_id") or ""),
    )


def _claude_mem(row: Row) -> Imported | None:
    """Read one observation: type, title, subtitle, narrative, facts, concepts, created_at_epoch (ms)."""
    parts = [str(row.get(name) or "").strip().rstrip(".") for name in ("title", "narrative", "text")]
    text = ". ".join(part for part in dict.fromkeys(parts) if part)
    return Imported(
        f"{text}." if text else "",
        _kind(row.get("type")),
        tags=_strings(row.get("concepts")),
        files=_strings(row.get("files_modified")),
        created_at=_instant(row.get("created_at_epoch")),
    )


def _memory_service(row: Row) -> Imported | None:
    """Read one entry: content, tags, memory_type, created_at (s)."""
    return Imported(
        str(row.get("content") or ""),
        _kind(row.get("memory_type")),
        tags=_strings(row.get("tags")),
        created_at=_instant(row.get("created_at")),
    )


def _mem0(row: Row) -> Imported | None:
    """Read one entry: memory, metadata, categories, created_at (ISO)."""
    metadata = row.get("metadata")
    kind = metadata.get("type") or metadata.get("category") if isinstance(metadata, dict) else None
    return Imported(
        str(row.get("memory") or ""),
        _kind(kind),
        tags=_strings(row.get("categories")),
        created_at=_instant(row.get("created_at")),
    )


def _strings(value: object) -> tuple[str, ...]:
    """Return a list of texts; claude-mem keeps its lists as JSON in a column of text."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return ()
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _instant(value: object) -> str | None:
    """Return an instant as ISO text: from ISO text, seconds or milliseconds since 1970."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > 1e11 else value  # 1e11 s is the year 5138
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).isoformat()
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _list_in(key: str, within: str) -> Callable[[Any], list[Any] | None]:
    """Return a finder of the list under `key` (of the list itself: no key) whose entries have `within`."""

    def find(document: Any) -> list[Any] | None:
        rows = document.get(key) if isinstance(document, dict) else document if not key else None
        if not isinstance(rows, list) or not any(isinstance(row, dict) and within in row for row in rows):
            return None
        return rows

    return find


def _own_list(document: Any) -> list[Any] | None:
    is_own = isinstance(document, dict) and document.get("format") == "cortex-memories"
    return document["memories"] if is_own and isinstance(document.get("memories"), list) else None


# (name, finder of its list or None, reader of one entry), the surest signs first.
_SHAPES: tuple[tuple[str, Callable[[Any], list[Any] | None], Callable[[Row], Imported | None]], ...] = (
    ("cortex", _own_list, _own),
    ("claude-mem", _list_in("observations", "title"), _claude_mem),
    ("mcp-memory-service", _list_in("memories", "content"), _memory_service),
    ("mem0", _list_in("results", "memory"), _mem0),
    ("mem0", _list_in("memories", "memory"), _mem0),
    ("mem0", _list_in("", "memory"), _mem0),
)


# -- The notes that Claude Code keeps for itself: one Markdown file a fact, and an index; none is believed.

_INDEX = "MEMORY.md"
# A note is a fact with its reason. What is longer is a document, of which the first lines say what it is.
MAX_NOTE_CHARS = 1_500

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
    if len(words) > MAX_NOTE_CHARS:
        words = words[:MAX_NOTE_CHARS].rsplit("\n", 1)[0].rstrip()
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


# -- Cortex's own export: whole memories as signed JSON, and what an import may believe of such a file.

FORMAT, FORMAT_VERSION = "cortex-memories", 2
GLOBAL = "global"

# What every store works out for itself: from the day, from the edges, from the evidence, from the text, and
# from what a language model answered it.
DERIVED = ("chosen", "confidence", "centrality", "rank", "session_count", "content_hash", *MODEL_COLUMNS)
CARRIED = tuple(name for name in MEMORIES.arrow.names if name not in DERIVED)
CLOSED = {
    "memory_type": MEMORY_TYPES,
    "category": CATEGORIES,
    "status": STATUSES,
    "source_type": SOURCE_TYPES,
    "trust": TRUSTS,
}
FRACTIONS = ("initial_confidence", "salience")
_TEXTS = ("text", "reason", "rejected")
# An id names a memory in journal and tables, a project's id a folder of the store.
MEMORY_ID = re.compile(r"[0-9a-f]{32}")
PROJECT_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")


@dataclass(frozen=True)
class Export:
    """
    What an own export holds: MEMORIES rows by what is CARRIED, and the journal's words about projects.

    `notes` are (project_id, payload) of entries of the kind `project`, `settled` are whole entries of the
    kind `dismiss`. `worked` are the instants at which each project was worked on, by which its clock goes;
    `weak` says since when a run knows a memory to be weak. `unusable` counts the memories that break the
    format.
    """

    memories: tuple[Row, ...]
    notes: tuple[tuple[str, Row], ...]
    settled: tuple[Row, ...]
    worked: dict[str, tuple[datetime, ...]]
    weak: dict[str, datetime]
    unusable: int


def as_json_text(
    memories: Iterable[Row],
    names: Mapping[str, str],
    at: datetime,
    *,
    notes: Sequence[tuple[str, Row]] = (),
    settled: Sequence[Row] = (),
    worked: Mapping[str, Sequence[datetime]] = MappingProxyType({}),
    weak: Mapping[str, datetime] = MappingProxyType({}),
    key: bytes | None = None,
) -> str:
    """
    Return undecayed MEMORIES rows as Cortex's JSON, ordered by project and id, signed with `key` if any.

    `names` are the projects' names, for a reader; the rest is as in Export. The same arguments give the same
    bytes, whatever the order of the rows.
    """
    rows = sorted(memories, key=lambda m: (m["project_id"], m["memory_id"]))
    document: Row = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "exported_at": at.isoformat(),
        "projects": [
            {"project_id": project_id, **payload}
            for project_id, payload in sorted(notes, key=lambda note: (note[0], sorted(note[1].items())))
        ],
        "settled": [_plain(row) for row in sorted(settled, key=lambda row: str(row["entry_id"]))],
        "worked": {name: list(worked[name]) for name in sorted(worked)},
        "weak": {name: weak[name] for name in sorted(weak)},
        "memories": [
            {"project": names.get(m["project_id"], m["project_id"]), **{n: m.get(n) for n in CARRIED}}
            for m in rows
        ],
    }
    document = json.loads(json.dumps(document, ensure_ascii=False, default=lambda t: t.isoformat()))
    if key is not None:
        document["signature"] = signature_of(document, key)
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def signature_of(document: Mapping[str, Any], key: bytes) -> str:
    """Return the HMAC-SHA256 of an export without its signature; white space and order do not matter."""
    signed = {name: value for name, value in document.items() if name != "signature"}
    text = json.dumps(signed, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def document_in(raw: bytes) -> Row | None:
    """Return the document of an export of this version; None for any other file."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return None
    is_current = document.get("version") == FORMAT_VERSION and isinstance(document.get("memories"), list)
    return document if is_current else None


def is_signed_with(document: Mapping[str, Any], key: bytes | None) -> bool:
    """Return whether a document was written with `key` and not changed since."""
    signature = document.get("signature")
    if key is None or not isinstance(signature, str):
        return False
    return hmac.compare_digest(signature.encode(), signature_of(document, key).encode())


def export_in(document: Mapping[str, Any]) -> Export:
    """Return what a document holds; what breaks the format is left out, secrets and private text too."""
    rows = [row_of(entry) if isinstance(entry, dict) else None for entry in document["memories"]]
    notes = [_note_of(value) for value in _listed(document, "projects")]
    settled = [_settled_of(value) for value in _listed(document, "settled")]
    return Export(
        tuple(row for row in rows if row is not None),
        tuple(note for note in notes if note is not None),
        tuple(row for row in settled if row is not None),
        _worked_in(document),
        _weak_in(document),
        rows.count(None),
    )


def row_of(value: Mapping[str, Any]) -> Row | None:
    """Return a memory of an export as an undecayed MEMORIES row; None if anything in it is not allowed."""
    try:
        row = {name: _as_kind(value.get(name), MEMORIES.arrow.field(name)) for name in CARRIED}
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
    return _clean(row) if _is_sound(row) else None


def moved(rows: Sequence[Row], to: Mapping[str, str]) -> list[Row]:
    """
    Return rows as memories of other projects, `to` gives the new project by the old; ids follow the project.

    What names another memory (superseded by, merged into) follows its id.
    """
    ids = {row["memory_id"]: _id_in(row, to.get(row["project_id"], row["project_id"])) for row in rows}
    links = ("memory_id", "superseded_by", "merged_into")
    return [
        {
            **row,
            "project_id": to.get(row["project_id"], row["project_id"]),
            **{name: ids.get(row[name], row[name]) for name in links},
        }
        for row in rows
    ]


def _id_in(row: Row, project_id: str) -> str:
    if row["project_id"] == project_id:
        return str(row["memory_id"])
    content = (row["memory_type"], row["text"])
    if row["memory_id"] == memory_id(row["project_id"], *content):
        return memory_id(project_id, *content)
    for file in row["files"][:1]:
        if row["memory_id"] == file_memory_id(row["project_id"], row["memory_type"], file):
            return file_memory_id(project_id, row["memory_type"], file)
    return content_id("memory", project_id, "moved", row["memory_id"])


def _plain(row: Row) -> Row:
    """Return a row with instants as ISO text."""
    plain: Row = json.loads(json.dumps(row, ensure_ascii=False, default=lambda t: t.isoformat()))
    return plain


def _listed(document: Mapping[str, Any], name: str) -> list[Any]:
    values = document.get(name)
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _worked_in(document: Mapping[str, Any]) -> dict[str, tuple[datetime, ...]]:
    value = document.get("worked")
    given = value if isinstance(value, dict) else {}
    return {
        name: tuple(at for at in map(_own_export_instant, instants) if at is not None)
        for name, instants in given.items()
        if PROJECT_ID.fullmatch(name) and isinstance(instants, list)
    }


def _weak_in(document: Mapping[str, Any]) -> dict[str, datetime]:
    value = document.get("weak")
    given = value.items() if isinstance(value, dict) else ()
    return {name: at for name, text in given if (at := _own_export_instant(text)) is not None}


def _own_export_instant(text: object) -> datetime | None:
    known = _instant(text) if isinstance(text, str) else None
    return datetime.fromisoformat(known) if known else None


def _note_of(value: Row) -> tuple[str, Row] | None:
    payload = {name: text for name, text in value.items() if name != "project_id"}
    project_id = value.get("project_id")
    is_sound = isinstance(project_id, str) and PROJECT_ID.fullmatch(project_id) and project_id != GLOBAL
    is_place = {"cwd", "name", "identity"} <= payload.keys()
    are_texts = all(isinstance(text, str) for text in payload.values())
    into = payload.get("merged_into", "")
    # An id becomes the name of a folder: one of another shape could lead out of the store.
    is_merge = are_texts and PROJECT_ID.fullmatch(into) is not None and into not in (project_id, GLOBAL)
    is_word = payload.keys() == {"name"} or (payload.keys() == {"merged_into"} and is_merge)
    return (str(project_id), payload) if is_sound and are_texts and (is_place or is_word) else None


def _settled_of(value: Row) -> Row | None:
    """Return an entry that left something as it is; None unless it is whole and its id its own."""
    try:
        entry = checked_entry(Dismiss.kind, json.loads(value["payload"]))
        at = datetime.fromisoformat(value["recorded_at"])
        row = entry.to_row(value["project_id"], recorded_at=at, actor=value["actor"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    is_whole = isinstance(entry, Dismiss) and entry.item is not None
    return row if is_whole and row["entry_id"] == value.get("entry_id") else None


def _as_kind(value: Any, field: "pa.Field[Any]") -> Any:
    """Return a JSON value as a column's kind. Raises TypeError or ValueError if it is not."""
    if value is None:
        if not field.nullable:
            raise ValueError(f"{field.name} is missing")
        return None
    if pa.types.is_timestamp(field.type):
        instant = datetime.fromisoformat(value)
        return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    if pa.types.is_list(field.type):
        if not isinstance(value, list):
            raise TypeError(f"{field.name} is not a list")
        return [_as_kind(part, field.type.value_field) for part in value]
    if pa.types.is_struct(field.type):
        return {inner.name: _as_kind(value.get(inner.name), inner) for inner in field.type}
    return _as_scalar(value, field)


def _as_scalar(value: Any, field: "pa.Field[Any]") -> Any:
    wanted: tuple[type, ...] = (str,)
    if pa.types.is_boolean(field.type):
        wanted = (bool,)
    elif pa.types.is_integer(field.type):
        wanted = (int,)
    elif pa.types.is_floating(field.type):
        wanted = (int, float)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise TypeError(f"{field.name} is not of its kind")
    # Refuses a number that does not fit and text that is not Unicode; makes 1 a fraction again.
    return pa.scalar(value, field.type).as_py()


def _is_sound(row: Row) -> bool:
    is_global = row["project_id"] == GLOBAL
    return (
        all(row[name] in allowed for name, allowed in CLOSED.items())
        and all(math.isfinite(row[name]) and 0 <= row[name] <= 1 for name in FRACTIONS)
        and 1 <= row["priority"] <= 10
        and row["access_count"] >= 0
        and row["status"] != "pruned"
        and MEMORY_ID.fullmatch(row["memory_id"]) is not None
        and PROJECT_ID.fullmatch(row["project_id"]) is not None
        and is_global == (row["category"] == "global")
    )


def _clean(row: Row) -> Row | None:
    """Return a row without secrets and private text; None if no text is left."""
    for name in _TEXTS:
        row[name] = _cleaned(row[name]) if row[name] is not None else None
    for name in ("files", "tags"):
        row[name] = [_cleaned(text) for text in row[name]]
    return row if row["text"].strip() else None


def _cleaned(text: str) -> str:
    return redact(without_private(text))[0]
