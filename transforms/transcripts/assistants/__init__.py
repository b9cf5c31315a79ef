"""Other assistants' transcripts: whose a file is, by its first bytes, and one of its records as turns."""

from collections.abc import Callable, Mapping

from cortex.transforms.transcripts.assistants import codex, copilot, gemini
from cortex.transforms.transcripts.assistants.gemini import lines_of as lines_of_document
from cortex.transforms.transcripts.assistants.turned import Head, Turned
from cortex.transforms.transcripts.records import Record

__all__ = [
    "HEAD_BYTES", "NAMES", "Head", "Turned", "assistant_of", "head_of", "lines_of_document", "may_speak",
    "turned",
]  # fmt: skip

# The names people know them by; Claude Code's transcripts are read by the reader itself.
NAMES: Mapping[str, str] = {
    "claude": "Claude Code",
    "codex": "Codex CLI",
    "gemini": "Gemini CLI",
    "copilot": "Copilot CLI",
}

# What tells one assistant from another stands at the start of the first record; this much must be given.
HEAD_BYTES = 4096

_READERS: Mapping[str, Callable[[Record, Head], list[Turned] | None]] = {
    "codex": codex.turned,
    "gemini": gemini.turned,
    "copilot": copilot.turned,
}


def assistant_of(start: bytes) -> str:
    """
    Return whose transcript begins with these bytes, a key of NAMES; Claude Code's if nothing tells.

    >>> assistant_of(b'{"timestamp":"2026-09-01T09:00:00Z","type":"session_meta","payload":{"id":"4f"')
    'codex'
    >>> assistant_of(b'{"parentUuid":null,"type":"user"')
    'claude'
    """
    start = start[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    if codex.is_own(start):
        return "codex"
    if copilot.is_own(start):
        return "copilot"
    return "gemini" if gemini.is_own(start) else "claude"


def head_of(start: bytes, file: str) -> Head | None:
    """
    Return what the beginning of a transcript says of all of it; None for Claude Code's.

    `start` holds the first HEAD_BYTES and the first line as far as it was read; `file` is the path.
    """
    name = assistant_of(start)
    if name == "claude":
        return None
    if name == "gemini":
        return gemini.head_of(start, file)
    return codex.head_of(start) if name == "codex" else copilot.head_of(start)


def turned(record: Record, head: Head) -> list[Turned] | None:
    """Return the turns in one record; none for bookkeeping, None for a shape that is not known."""
    return _READERS[head.assistant](record, head)


def may_speak(line: bytes) -> bool:
    """Return whether a line may hold a turn, or is damaged so that it must be looked at."""
    is_whole = line.startswith(b"{") and line.endswith(b"}")
    return not is_whole or not line[:200].startswith(codex.SILENT + gemini.SILENT + copilot.SILENT)
