"""What an event may rest on: a stranger's words stay a stranger's, and pieces joined make no secret."""

import pyarrow as pa

from cortex.transforms.fold import normalised
from cortex.transforms.framing import sentences
from cortex.transforms.redact import redact
from cortex.transforms.schemas import EVENTS
from cortex.transforms.threads import EXTERNAL_TOOL_PREFIX, EXTERNAL_TOOLS
from cortex.transforms.told import SHORTEST_CHARS

# Cortex's own answers are recognised as told, not as a stranger's.
OWN_TOOLS = "mcp__cortex"
# Free text of an event, put together from pieces that were redacted one by one.
TEXTS = ("text", "reason", "rejected")


def with_quotes_lowered(events: pa.Table, turns: pa.Table) -> pa.Table:
    """
    Return EVENTS with trust `external` where the assistant only repeats what a stranger wrote.

    Takes the TURNS that the events rest on. A stranger's words are the results of web tools and MCP servers;
    repeated is a sentence that stands in one of the same session word for word. What a person says or pastes
    is the person's.
    """
    read = _read_from_strangers(turns)
    if not read:
        return events
    rows = events.select(["session_id", "trust", *TEXTS]).to_pylist()
    trusts = ["external" if _is_quote(row, read.get(row["session_id"], "")) else row["trust"] for row in rows]
    return _with_column(events, "trust", trusts)


def without_secrets(events: pa.Table) -> pa.Table:
    """Return EVENTS with secrets marked that only show once their pieces stand side by side."""
    for name in TEXTS:
        told = events[name].to_pylist()
        clean = [redact(text)[0] if text else text for text in told]
        if clean != told:
            events = _with_column(events, name, clean)
    return events


def _read_from_strangers(turns: pa.Table) -> dict[str, str]:
    """Return the words of web pages and MCP answers by session, normalised, between spaces."""
    rows = turns.select(["session_id", "kind", "tool_name", "tool_use_id", "trust"]).to_pylist()
    asked = {
        row["tool_use_id"]
        for row in rows
        if row["kind"] == "tool_call" and _is_foreign(row["tool_name"] or "")
    }
    found: dict[str, str] = {}
    for at, row in enumerate(rows):
        is_foreign = row["trust"] == "external" or row["tool_use_id"] in asked
        if row["kind"] == "tool_result" and is_foreign:
            words = normalised(turns["text"][at].as_py())
            found[row["session_id"]] = f"{found.get(row['session_id'], '')} {words} "
    return found


def _is_foreign(tool: str) -> bool:
    is_own = tool.startswith(OWN_TOOLS)
    return tool in EXTERNAL_TOOLS or (tool.startswith(EXTERNAL_TOOL_PREFIX) and not is_own)


def _is_quote(row: dict[str, str | None], read: str) -> bool:
    if row["trust"] != "assistant" or not read:
        return False
    said = [normalised(part) for name in TEXTS for part in sentences(row[name] or "")]
    return any(len(words) >= SHORTEST_CHARS and f" {words} " in read for words in said)


def _with_column(events: pa.Table, name: str, values: list[str | None]) -> pa.Table:
    position = events.schema.get_field_index(name)
    return events.set_column(position, EVENTS.arrow.field(name), pa.array(values, pa.string()))
