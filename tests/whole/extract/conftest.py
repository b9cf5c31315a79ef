"""What is shown of an invented session."""

from tests.shown import events, policy, shown

__all__ = ["events", "policy", "shown"]
