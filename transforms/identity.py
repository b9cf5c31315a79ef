"""Content-addressed ids: the same input gives the same id on any machine (spec 3.2)."""

from cortex.hooks.identity import ID_HEX_DIGITS, content_id

__all__ = ["ID_HEX_DIGITS", "content_id", "event_id"]


def event_id(event_type: str, layer: str, turn_id: str, text: str) -> str:
    """Return the id of an event: what was seen, by which layer, in which turn, in which words."""
    return content_id("event", event_type, layer, turn_id, text)
