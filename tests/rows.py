"""Rows for tests: one helper a table, everything set that a test does not speak of."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from cortex.transforms.journal_entries import entry_of
from cortex.transforms.schemas import EVENTS, MEMORIES, TURNS

START = datetime(2026, 9, 1, 12, tzinfo=UTC)


def at(day: str) -> datetime:
    """Return midnight UTC of an ISO date."""
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def turn(line: int, text: str = "words", **chosen: Any) -> dict[str, Any]:
    """Return one TURNS row; its id follows its text and line."""
    row: dict[str, Any] = {
        "turn_id": f"turn-{line}-{text}",
        "project_id": "reef-1",
        "session_id": "s1",
        "file": "/t/s1.jsonl",
        "line": line,
        "block": 0,
        "kind": "prompt",
        "said_at": START + timedelta(minutes=line),
        "text": text,
        "trust": "user",
        "redactions": 0,
        "reader_version": 1,
    }
    return row | chosen


def turns(*rows: dict[str, Any]) -> pa.Table:
    """Return rows as a TURNS table."""
    return TURNS.of(list(rows))


def event(text: str = "Use SQLite", **chosen: Any) -> dict[str, Any]:
    """Return one EVENTS row: a decision said by the user."""
    row: dict[str, Any] = {
        "event_id": f"event-{text}-{chosen.get('turn_id', 't1')}",
        "project_id": "reef-1",
        "session_id": "s1",
        "event_type": "DECISION_MADE",
        "memory_type": "decision",
        "category": "project",
        "text": text,
        "files": [],
        "confidence": 0.9,
        "salience": 0.9,
        "trust": "user",
        "layer": "llm:small@session-1",
        "turn_id": "t1",
        "file": "/t/s1.jsonl",
        "lines": [1],
        "said_at": START,
        "extractor_version": 1,
    }
    return row | chosen


def events(*rows: dict[str, Any]) -> pa.Table:
    """Return rows as an EVENTS table."""
    return EVENTS.of(list(rows))


def memory(name: str = "m1", text: str = "Use SQLite", **chosen: Any) -> dict[str, Any]:
    """Return one MEMORIES row: an active decision."""
    row: dict[str, Any] = {
        "memory_id": name,
        "project_id": "reef-1",
        "category": "project",
        "memory_type": "decision",
        "text": text,
        "files": [],
        "tags": [],
        "status": "active",
        "source_type": "conversation",
        "trust": "user",
        "is_pinned": False,
        "priority": 5,
        "initial_confidence": 0.9,
        "confidence": 0.9,
        "salience": 0.9,
        "access_count": 0,
        "created_at": START,
        "updated_at": START,
        "centrality": 0.0,
        "rank": 0.5,
        "session_count": 1,
        "evidence": [],
        "content_hash": f"hash-{text}",
    }
    return row | chosen


def memories(*rows: dict[str, Any]) -> pa.Table:
    """Return rows as a MEMORIES table."""
    return MEMORIES.of(list(rows))


def entry(
    kind: str, project_id: str, payload: Mapping[str, Any], *, recorded_at: datetime, **columns: Any
) -> dict[str, object]:
    """Return one JOURNAL row from a kind and its payload; `columns` are memory_id and actor."""
    return entry_of(kind, {**payload}).to_row(project_id, recorded_at=recorded_at, **columns)
