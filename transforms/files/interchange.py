"""Markdown out and in, and the JSON of other tools as they document it; nothing in it is believed."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cortex.transforms.errors import NothingUsable
from cortex.transforms.schemas import MEMORY_TYPES, Row

# First line of our own Markdown: its headings name projects, and its bullets may have several lines.
MARKDOWN_SIGN = "<!-- cortex-memories: text, type and project of active memories -->"

# Other tools' kinds of observation, as far as they have a name of ours. Anything else is context.
_KINDS = {
    **dict.fromkeys(("bugfix", "error", "gotcha", "problem_solution", "warning"), "gotcha"),
    **dict.fromkeys(("preference", "pattern", "convention", "best_practice"), "pattern"),
    **dict.fromkeys(("decision", "architectural_decision"), "decision"),
    **dict.fromkeys(("feature", "refactor", "change", "task", "progress"), "progress"),
    **dict.fromkeys(("architecture", "how-it-works"), "architecture"),
}
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
        told = json.loads(text)
    except ValueError:
        return _usable(_read_list(text))
    for form, finds, reads in _SHAPES:
        entries = finds(told)
        if entries is not None:
            made = [reads(one) if isinstance(one, dict) else None for one in entries]
            kept = tuple(one for one in made if one is not None and one.text.strip())
            return _usable(Read(form, kept, len(made) - len(kept)))
    raise NothingUsable(
        "the JSON has no shape that Cortex knows.",
        "Known: its own export, claude-mem's, mcp-memory-service's, mem0's; or a Markdown list.",
    )


def _usable(read: Read) -> Read:
    if not read.memories:
        raise NothingUsable("there is no memory in it.", "A list needs lines that begin with '- '.")
    return read


def _read_list(text: str) -> Read:
    """Read bullets; a heading that is the name of a memory type gives those below it theirs."""
    memories: list[Imported] = []
    kind = "context"
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            kind = _kind(heading.group(1))
        elif bullet := _BULLET.match(line):
            typed = _TYPED.match(bullet.group(1))
            said, own = (typed.group(2), _kind(typed.group(1))) if typed else (bullet.group(1), kind)
            memories.append(Imported(said.strip(), own))
    return Read("markdown list", tuple(memories), 0)


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


def _kind(told: object) -> str:
    name = str(told or "").strip().lower().replace(" ", "_")
    if name in MEMORY_TYPES:
        return name
    singular = name.removesuffix("s")
    return singular if singular in MEMORY_TYPES else _KINDS.get(singular, _KINDS.get(name, "context"))


def _own(one: Row) -> Imported | None:
    """Read one memory of an export that nobody here vouches for: neither its trust nor its pin counts."""
    if one.get("status", "active") != "active" or one.get("memory_type") not in MEMORY_TYPES:
        return None
    project = one.get("project_id") or one.get("project")
    return Imported(
        text=str(one.get("text") or ""),
        memory_type=one["memory_type"],
        is_global=one.get("category") == "global",
        priority=one["priority"] if one.get("priority") in range(1, 11) else 5,
        tags=_strings(one.get("tags")),
        files=_strings(one.get("files")),
        created_at=_instant(one.get("created_at")),
        project=project if isinstance(project, str) else None,
    )


def _claude_mem(one: Row) -> Imported | None:
    """Read one observation: type, title, subtitle, narrative, facts, concepts, created_at_epoch (ms)."""
    told = [str(one.get(name) or "").strip().rstrip(".") for name in ("title", "narrative", "text")]
    said = ". ".join(part for part in dict.fromkeys(told) if part)
    return Imported(
        f"{said}." if said else "",
        _kind(one.get("type")),
        tags=_strings(one.get("concepts")),
        files=_strings(one.get("files_modified")),
        created_at=_instant(one.get("created_at_epoch")),
    )


def _memory_service(one: Row) -> Imported | None:
    """Read one entry: content, tags, memory_type, created_at (s)."""
    return Imported(
        str(one.get("content") or ""),
        _kind(one.get("memory_type")),
        tags=_strings(one.get("tags")),
        created_at=_instant(one.get("created_at")),
    )


def _mem0(one: Row) -> Imported | None:
    """Read one entry: memory, metadata, categories, created_at (ISO)."""
    metadata = one.get("metadata")
    kind = metadata.get("type") or metadata.get("category") if isinstance(metadata, dict) else None
    return Imported(
        str(one.get("memory") or ""),
        _kind(kind),
        tags=_strings(one.get("categories")),
        created_at=_instant(one.get("created_at")),
    )


def _strings(told: object) -> tuple[str, ...]:
    """Return a list of texts; claude-mem keeps its lists as JSON in a column of text."""
    if isinstance(told, str) and told.startswith("["):
        try:
            told = json.loads(told)
        except ValueError:
            return ()
    return tuple(str(one) for one in told) if isinstance(told, list) else ()


def _instant(told: object) -> str | None:
    """Return an instant as ISO text: from ISO text, seconds or milliseconds since 1970."""
    try:
        if isinstance(told, int | float) and not isinstance(told, bool):
            seconds = told / 1000 if told > 1e11 else told  # 1e11 s is the year 5138
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        if isinstance(told, str):
            read = datetime.fromisoformat(told)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).isoformat()
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _list_in(key: str, within: str) -> Callable[[Any], list[Any] | None]:
    """Return a finder of the list under `key` (of the list itself: no key) whose entries have `within`."""

    def find(told: Any) -> list[Any] | None:
        found = told.get(key) if isinstance(told, dict) else told if not key else None
        if not isinstance(found, list) or not any(isinstance(one, dict) and within in one for one in found):
            return None
        return found

    return find


def _own_list(told: Any) -> list[Any] | None:
    is_own = isinstance(told, dict) and told.get("format") == "cortex-memories"
    return told["memories"] if is_own and isinstance(told.get("memories"), list) else None


# (name, finder of its list or None, reader of one entry), the surest signs first.
_SHAPES: tuple[tuple[str, Callable[[Any], list[Any] | None], Callable[[Row], Imported | None]], ...] = (
    ("cortex", _own_list, _own),
    ("claude-mem", _list_in("observations", "title"), _claude_mem),
    ("mcp-memory-service", _list_in("memories", "content"), _memory_service),
    ("mem0", _list_in("results", "memory"), _mem0),
    ("mem0", _list_in("memories", "memory"), _mem0),
    ("mem0", _list_in("", "memory"), _mem0),
)
