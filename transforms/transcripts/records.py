"""The parts of a transcript record: its content blocks, who wrote it, and the turn that comes out of it."""

from collections.abc import Mapping
from typing import NamedTuple

from cortex.hooks.prose.plain import without_private

Record = Mapping[str, object]


class Utterance(NamedTuple):
    """One turn as the client wrote it, not yet redacted or cut."""

    kind: str
    text: str
    tool_name: str | None = None  # of a call; of a slash command, its name with the slash
    tool_use_id: str | None = None
    tool_input: Record | None = None
    tool_status: str | None = None
    is_external: bool = False
    is_queued: bool = False


def spoken(kind: str, text: str, tool_use_id: str | None = None) -> list[Utterance]:
    """Return the turn that `text` is, without its private passages; none if no words are left."""
    text = without_private(text).strip()
    return [Utterance(kind, text, tool_use_id=tool_use_id)] if text else []


def string(value: object) -> str:
    """Return `value` if it is a string, "" if the record has something else in its place."""
    return value if isinstance(value, str) else ""


def blocks(message: object) -> list[Record] | None:
    """Return the content blocks of a message, plain text as one block; None for any other shape."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, Mapping)]
    return None


def flat_text(content: object) -> str:
    """Return a result's content as text; images and other blocks leave their name in brackets."""
    if isinstance(content, str):
        return content
    parts = [content] if isinstance(content, Mapping) else content
    if not isinstance(parts, list):
        return ""
    return "\n".join(_block_text(part) for part in parts if isinstance(part, Mapping))


def _block_text(block: Record) -> str:
    text = block.get("text")
    if isinstance(text, str):
        return text
    names = (string(block.get(key)) for key in ("tool_name", "title", "type"))
    return f"[{next(filter(None, names), 'block')}]"


def is_sidechain(record: Record) -> bool:
    """Return whether a record belongs to a subagent's conversation."""
    return record.get("isSidechain") is True


def is_from_sdk(record: Record) -> bool:
    """Return whether a program, not a person, drives the session at this record."""
    return (
        string(record.get("entrypoint")).startswith("sdk")
        or record.get("promptSource") in ("sdk", "system")
        or record.get("turnOrigin") == "sdk"
    )


def is_from_program(record: Record, in_agent_file: bool) -> bool:
    """Return whether the prompt in a record was written by a program or by another agent."""
    origin = record.get("origin")
    origin_kind = origin.get("kind") if isinstance(origin, Mapping) else None
    return in_agent_file or is_sidechain(record) or is_from_sdk(record) or origin_kind not in (None, "human")
