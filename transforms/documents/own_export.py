"""Cortex's own export: whole memories as signed JSON, and what an import may believe of such a file."""

import hashlib
import hmac
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from cortex.hooks.prose.plain import without_private
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

FORMAT, FORMAT_VERSION = "cortex-memories", 2
GLOBAL = "global"

# What every store works out for itself: from the day, from the edges, from the evidence, from the text, and
# from what a language model answered it.
DERIVED = ("confidence", "centrality", "rank", "session_count", "content_hash", *MODEL_COLUMNS)
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
        name: tuple(at for at in map(_instant, instants) if at is not None)
        for name, instants in given.items()
        if PROJECT_ID.fullmatch(name) and isinstance(instants, list)
    }


def _weak_in(document: Mapping[str, Any]) -> dict[str, datetime]:
    value = document.get("weak")
    given = value.items() if isinstance(value, dict) else ()
    return {name: at for name, text in given if (at := _instant(text)) is not None}


def _instant(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


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
