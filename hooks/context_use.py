"""How full a session's context is, by the usage that the client notes with each answer of the model."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from cortex.hooks import hook_settings, ticket
else:
    import hook_settings
    import ticket

# Compaction starts by itself at about 80 to 95 percent, in the middle of whatever is going on.
WARN_PERCENT = 70
# Of most models; a transcript does not say which window a session has.
USUAL_WINDOW_TOKENS = 200_000

# The last answer stands within the last lines of a transcript; tool results between it and the end are short
# after a Stop. Reading this much takes under a millisecond.
_TAIL_BYTES = 256 * 1024
_PARTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def tokens_of(usage: object) -> int:
    """
    Return the tokens of context that a usage record counts; 0 for what is none.

    >>> tokens_of({"input_tokens": 4, "cache_read_input_tokens": 140_000, "output_tokens": 900})
    140004
    """
    counts = [usage.get(name) for name in _PARTS] if isinstance(usage, dict) else []
    return sum(count for count in counts if type(count) is int and count > 0)


def tokens_in_transcript(path: str) -> int:
    """Return the tokens of context that the last answer of a session took; 0 if that is not found."""
    descriptor = ticket.open_regular(path)
    try:
        size = os.fstat(descriptor).st_size
        tail = os.pread(descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    finally:
        os.close(descriptor)
    for line in reversed(tail.split(b"\n")):
        if b'"usage"' not in line or b'"assistant"' not in line:
            continue
        try:
            record = json.loads(line)
            if record.get("type") == "assistant" and not record.get("isSidechain"):
                return tokens_of(record["message"].get("usage"))
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
    return 0


def context_warning(home: str, session_id: str, transcript: str, project_id: str | None) -> bytes | None:
    """
    Return the output that tells the person, once a session, that its context fills up; None for nothing.

    After a compaction or /clear the record of what was shown starts again, and so does this.
    """
    tokens = tokens_in_transcript(transcript)
    percent = hook_settings.HookSettings(home, project_id).number("statusline.warn_percent", WARN_PERCENT)
    # What is beyond the usual window is in a larger one, of which nothing is known.
    if not percent * USUAL_WINDOW_TOKENS <= 100 * tokens <= 100 * USUAL_WINDOW_TOKENS:
        return None
    if TYPE_CHECKING or __package__:
        from cortex.hooks import shown
    else:  # only here: 5 ms
        import shown
    staging = os.path.join(home, "staging")
    record = shown.read(staging, session_id)
    if record.is_warned:
        return None
    record.is_warned = True
    shown.save_record(staging, session_id, record)
    share = 100 * tokens // USUAL_WINDOW_TOKENS
    text = (
        f"Cortex: about {tokens // 1000}k tokens of context in use, {share} % of a window of 200k. Use "
        "/compact at a good moment, before it happens by itself; what was settled is kept either way."
    )
    return json.dumps({"systemMessage": text}).encode()
