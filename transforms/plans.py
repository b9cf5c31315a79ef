"""The text of a living plan: its title, what is done, the current step, what comes next (spec 5.5)."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

# Older finished steps only say that work went on; their number is kept.
DONE_STEPS_SHOWN = 3
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def plan_text(events: Iterable[dict[str, Any]]) -> str:
    """
    Return one line that says where a plan stands, from the EVENTS rows of its subject in any order.

    A step's last word on its status counts; steps stand in the order in which they were first named. A
    plan without steps is its title alone; one with all steps done says so.

    >>> place = {"event_id": "1", "said_at": None, "file": "f", "lines": [1]}
    >>> plan_text([{**place, "text": "Ship 1.0", "step_status": None}])
    'Plan: Ship 1.0.'
    """
    ordered = sorted(events, key=lambda e: (e["said_at"] or _NEVER, e["file"], e["lines"][:1], e["event_id"]))
    title = next((e["text"] for e in reversed(ordered) if not e["step_status"]), "")
    steps: dict[str, str] = {}
    for event in ordered:
        if event["step_status"]:
            steps[event["text"]] = event["step_status"]
    named = title.removeprefix("Plan: ").rstrip(".") or "work in progress"
    return " ".join([f"Plan: {named}.", *_progress(steps)])


def _progress(steps: dict[str, str]) -> list[str]:
    by_status = {
        status: [text.rstrip(".") for text, found in steps.items() if found == status]
        for status in ("completed", "in_progress", "pending")
    }
    done, current, ahead = by_status["completed"], by_status["in_progress"], by_status["pending"]
    if steps and not current and not ahead:
        return [f"All {len(done)} steps done."]
    said = []
    if done:
        older = f"{len(done) - DONE_STEPS_SHOWN} earlier; " if len(done) > DONE_STEPS_SHOWN else ""
        said.append(f"Done: {older}{'; '.join(done[-DONE_STEPS_SHOWN:])}.")
    if current:
        said.append(f"Now: {'; '.join(current)}.")
    if ahead:
        said.append(f"Next: {'; '.join(ahead)}.")
    return said
