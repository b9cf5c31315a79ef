"""Invented sessions as TURNS rows: a test names only what its claim is about."""

from typing import Any

import orjson
import pyarrow as pa

from tests.rows import turn, turns

Said = dict[str, Any]
TRUST = {"tool_result": "tool", "text": "assistant", "tool_call": "assistant", "thinking": "assistant"}


def said(kind: str, text: str, **more: Any) -> Said:
    """Return what matters of one turn; `session` fills in the rest."""
    return {"kind": kind, "text": text, **more}


def prompt(text: str, **more: Any) -> Said:
    """Return words that a person typed."""
    return said("prompt", text, **more)


def text(words: str, **more: Any) -> Said:
    """Return words of the assistant."""
    return said("text", words, **more)


def call(tool: str, argument: str, result: str = "", *, status: str = "ok", **given: Any) -> list[Said]:
    """Return a tool call with its result; `given` is its input."""
    key = f"call-{tool}-{argument}-{result}-{status}"
    return [
        said("tool_call", argument, tool_name=tool, tool_use_id=key, tool_input=orjson.dumps(given).decode()),
        said("tool_result", result, tool_use_id=key, tool_status=status),
    ]


def session(*given: Said | list[Said], session_id: str = "s1") -> pa.Table:
    """Return the TURNS of one session, one line a turn."""
    flat = [row for one in given for row in (one if isinstance(one, list) else [one])]
    rows = [
        turn(
            line,
            session_id=session_id,
            file=f"/t/{session_id}.jsonl",
            turn_id=f"{session_id}-{line}",
            **{"parent_uuid": f"u{line}", "trust": TRUST.get(row["kind"], "user"), **row},
        )
        for line, row in enumerate(flat, start=1)
    ]
    return turns(*rows)
