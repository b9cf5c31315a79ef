"""What a session read from tools, and what the person and the assistant said before (spec 2, trust)."""

from collections.abc import Iterable, Mapping

from cortex.hooks.sources import trust_of_call
from cortex.transforms.extract.structural import input_of
from cortex.transforms.schemas import Row

OWN_KINDS = frozenset(("prompt", "command", "rejection", "choice", "plan", "shell", "text"))


def trust_of_result(call: Row | None, result: Row) -> str | None:
    """
    Return `external` or `tool` for the words of a tool's result, None where they are nobody else's.

    Takes TURNS rows; `call` is None where the transcript lacks it.
    """
    if result["trust"] == "external":
        return "external"
    if result["tool_status"] == "rejected":  # the words are the person's
        return None
    return trust_of_call(str(call["tool_name"] or ""), str(call["text"] or "")) if call else "tool"


def own_words(turns: Iterable[Row]) -> list[tuple[int, str]]:
    """Return (place, text) of what person and assistant said or wrote in the main thread, in order."""
    return [(place, text) for place, turn in enumerate(turns) if (text := _own(turn))]


def _own(turn: Row) -> str:
    if turn["agent_id"] is not None:
        return ""
    if turn["kind"] == "tool_call":
        return " ".join(_strings(input_of(turn)))
    return str(turn["text"] or "") if turn["kind"] in OWN_KINDS else ""


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]
