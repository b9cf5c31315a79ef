"""The shipped policy, and what is shown of an invented session."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortex.transforms.extract.events import extract_events
from cortex.transforms.policy import Policy, load_policy
from tests.sessions import Said, session

REFERENCE = Path(__file__).parents[1] / "data" / "reference"
Shown = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def policy() -> Policy:
    """Return the policy as it is shipped."""
    return load_policy({path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.csv")})


@pytest.fixture(scope="session")
def events(policy: Policy) -> Shown:
    """Return a function from turns to all events of their session."""

    def of(*turns: Said | list[Said], session_id: str = "s1") -> list[dict[str, Any]]:
        return extract_events(session(*turns, session_id=session_id), policy).to_pylist()

    return of


@pytest.fixture(scope="session")
def shown(events: Shown) -> Shown:
    """Return a function from turns to the events that become memories, surest first."""

    def of(*turns: Said | list[Said]) -> list[dict[str, Any]]:
        kept = [row for row in events(*turns) if row["memory_type"] and row["confidence"] >= 0.5]
        return sorted(kept, key=lambda row: (-row["confidence"], row["text"]))

    return of
