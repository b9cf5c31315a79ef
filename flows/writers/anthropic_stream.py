"""An answer of the Messages API that comes in pieces, as server-sent events, put together to one message."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cortex.transforms.errors import AnswerLost


def message_of_events(lines: Iterable[str], next_step: str) -> Mapping[str, Any]:
    """
    Return the message that a stream's lines make, as the service answers it in one piece.

    Raises AnswerLost where the stream ends early or tells of an error: what was written until then may cost.

    >>> start = '{"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}'
    >>> piece = '{"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}'
    >>> end = '{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}'
    >>> message = message_of_events([f"data: {event}" for event in (start, piece, end)], "Ask again.")
    >>> message["content"], message["stop_reason"], message["usage"]
    ([{'type': 'text', 'text': 'Hi'}], 'end_turn', {'input_tokens': 3, 'output_tokens': 1})
    """
    message: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    texts: list[str] = []
    try:
        for line in lines:
            event: dict[str, Any] = json.loads(line[5:]) if line.startswith("data:") else {"type": ""}
            kind = event["type"]
            if kind == "message_start":
                message = dict(event["message"])
                usage = dict(message["usage"])
            elif kind == "content_block_delta" and event["delta"].get("type") == "text_delta":
                texts.append(str(event["delta"]["text"]))
            elif kind == "message_delta":
                message["stop_reason"] = event["delta"].get("stop_reason")
                usage.update(event["usage"])
            elif kind == "error":
                raise AnswerLost(f"the service broke off its answer ({_kind_of(event)}).", next_step)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AnswerLost("the service's answer is not a message.", next_step) from error
    if not message.get("stop_reason"):
        raise AnswerLost("the service's answer is cut off.", next_step)
    return {**message, "usage": usage, "content": [{"type": "text", "text": "".join(texts)}]}


def _kind_of(event: Mapping[str, Any]) -> str:
    """Return the kind of error alone: a message may quote key or text."""
    error = event.get("error")
    return str(error.get("type"))[:40] if isinstance(error, Mapping) else "unknown"
