"""Markdown out and in, and the JSON of other tools as they document it; nothing in it is believed."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cortex.hooks.prose.memory_types import OTHER_NAMES
from cortex.transforms.errors import NothingUsable
from cortex.transforms.schemas import MEMORY_TYPES, Row

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
    except ValueError:
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
