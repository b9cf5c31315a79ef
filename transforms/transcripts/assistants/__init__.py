"""Assistants whose sessions are read: whose a transcript is, by its first bytes, and a record as turns."""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping

from cortex.transforms.transcripts.assistants.parsed_turn import Adapter, Assistant, Head, ParsedTurn
from cortex.transforms.transcripts.records import Record

__all__ = [
    "HEAD_BYTES",
    "KNOWN_ASSISTANTS",
    "USUAL",
    "Assistant",
    "Head",
    "ParsedTurn",
    "assistant_of",
    "by_name",
    "folder_in",
    "head_of",
    "lines_of_document",
    "may_name_folder",
    "may_speak",
    "turned",
]  # fmt: skip

# What tells one assistant from another stands at the start of the first record; this much must be given.
HEAD_BYTES = 4096


def by_name(declared: Iterable[Assistant]) -> dict[str, Assistant]:
    """Return assistants by name, those without an adapter first. Raises ValueError for a name given twice."""
    ordered = sorted(declared, key=lambda assistant: (assistant.adapter is not None, assistant.name))
    named = {assistant.name: assistant for assistant in ordered}
    if len(named) < len(ordered):
        raise ValueError(f"two assistants have one name: {[assistant.name for assistant in ordered]}")
    return named


def _declared() -> Iterable[Assistant]:
    for each in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{each.name}")
        if isinstance(assistant := getattr(module, "ASSISTANT", None), Assistant):
            yield assistant


KNOWN_ASSISTANTS: Mapping[str, Assistant] = by_name(_declared())
_ADAPTERS: Mapping[str, Adapter] = {
    name: each.adapter for name, each in KNOWN_ASSISTANTS.items() if each.adapter
}
_SILENT = tuple(start for adapter in _ADAPTERS.values() for start in adapter.silent)
# The one without an adapter: a transcript is its own if nothing tells whose it is.
[USUAL] = KNOWN_ASSISTANTS.keys() - _ADAPTERS.keys()


def assistant_of(start: bytes) -> str:
    """
    Return whose transcript begins with these bytes, its name; Claude Code's if nothing tells.

    >>> assistant_of(b'{"timestamp":"2026-09-01T09:00:00Z","type":"session_meta","payload":{"id":"4f"')
    'codex'
    >>> assistant_of(b'{"parentUuid":null,"type":"user"')
    'claude'
    """
    start = start[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    return next((name for name, adapter in _ADAPTERS.items() if adapter.is_own(start)), USUAL)


def head_of(start: bytes, file: str) -> Head | None:
    """
    Return what the beginning of a transcript says of all of it; None for Claude Code's.

    `start` holds the first HEAD_BYTES and the first line as far as it was read; `file` is the path.
    """
    adapter = _ADAPTERS.get(assistant_of(start))
    return adapter.head_of(start, file) if adapter else None


def parsed_turns(record: Record, head: Head) -> list[ParsedTurn] | None:
    """Return the turns in one record; none for bookkeeping, None for a shape that is not known."""
    return _ADAPTERS[head.assistant].parsed_turns(record, head)


def folder_in(record: Record, head: Head) -> str:
    """Return the folder in which a record says that the session goes on; empty if it says none."""
    name_folder = _ADAPTERS[head.assistant].folder_in
    return name_folder(record) if name_folder else ""


def may_name_folder(line: bytes, head: Head) -> bool:
    """Return whether `folder_in` may find a folder in a line."""
    return _ADAPTERS[head.assistant].folder_in is not None and b"cwd" in line


def may_speak(line: bytes) -> bool:
    """Return whether a line may hold a turn, or is damaged so that it must be looked at."""
    is_whole = line.startswith(b"{") and line.endswith(b"}")
    return not is_whole or not line[:200].startswith(_SILENT)


def lines_of_document(document: bytes, head: Head) -> bytes | None:
    """Return the messages of a transcript that is one JSON object, one a line; None if it is none yet."""
    lines_of = _ADAPTERS[head.assistant].lines_of
    return lines_of(document) if lines_of else None
