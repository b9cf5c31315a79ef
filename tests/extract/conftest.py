"""Invented sessions as TURNS rows: only what matters to a claim is named."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy, load_policy
from cortex.transforms.schemas import TURNS

REFERENCE = Path(__file__).parents[2] / "data" / "reference"
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
TRUST = {"tool_result": "tool", "text": "assistant", "tool_call": "assistant", "thinking": "assistant"}

Row = dict[str, object]


def said(kind: str, text: str, **more: object) -> Row:
    """Return what matters of one turn; `session` fills in the rest."""
    return {"kind": kind, "text": text, **more}


def call(tool: str, argument: str, result: str = "", *, status: str = "ok", key: str, **given: object) -> list[Row]:
    """Return a tool call and its result."""
    tool_input = given.get("tool_input")
    return [
        said("tool_call", argument, tool_name=tool, tool_use_id=key, tool_input=tool_input),
        said("tool_result", result, tool_use_id=key, tool_status=status),
    ]


def session(*turns: Row | list[Row], session_id: str = "s1") -> pa.Table:
    """Return TURNS of one session, one line a turn, a minute apart."""
    flat = [row for turn in turns for row in (turn if isinstance(turn, list) else [turn])]
    rows = []
    for line, turn in enumerate(flat, start=1):
        kind = str(turn["kind"])
        rows.append(
            {
                "turn_id": content_id(session_id, str(line), kind, str(turn["text"])),
                "project_id": "tidepool",
                "session_id": session_id,
                "file": f"{session_id}.jsonl",
                "line": line,
                "block": 0,
                "said_at": START + timedelta(minutes=line),
                "parent_uuid": f"u{line}",
                "trust": TRUST.get(kind, "user"),
                "redactions": 0,
                "reader_version": 1,
                **turn,
            }
        )
    return TURNS.of(rows)


@pytest.fixture(scope="session")
def policy() -> Policy:
    """The policy as it is shipped."""
    return load_policy({path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.csv")})


@pytest.fixture
def shown(policy: Policy) -> Callable[..., list[Row]]:
    """Return the events of a session that are shown as memories, surest first."""
    from cortex.transforms.extract import extract_events

    def events(*turns: Row | list[Row]) -> list[Row]:
        rows = extract_events(session(*turns), policy).to_pylist()
        kept = [row for row in rows if row["memory_type"] and row["confidence"] >= 0.5]
        return sorted(kept, key=lambda row: (-row["confidence"], row["text"]))

    return events
