"""The request that reads one whole session, from beginning to end, for what is worth keeping of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from cortex.transforms.extract.events import threads_by_session
from cortex.transforms.extract.leaders import is_led_by_person, with_prompts_of_person
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.words.scripts import long_words
from cortex.transforms.writer.fitting import estimated_tokens, fitted
from cortex.transforms.writer.prompt import Prompt
from cortex.transforms.writer.rendering import SessionLine, session_lines
from cortex.transforms.writer.request import ModelRequest

# A known memory is named by the beginning of its id: enough to tell thirty of them apart.
ID_CHARS = 10
KNOWN_CHARS = 300
# Fewer words settle and ask nothing: "hi", "thanks".
FEWEST_LINES = 2
_CLOSING = (
    "Now write the JSON object for the session above: its outcome, and the facts worth keeping, if any."
)


@dataclass(frozen=True)
class KnownMemory:
    """A memory that a person or a language model wrote; never one of the rules, which change by release."""

    memory_id: str
    text: str


@dataclass(frozen=True)
class SessionRequest:
    """A request about one session, its turns as numbered from t1 on, the ids of the memories named."""

    project_id: str
    session_id: str
    request: ModelRequest
    turn_ids: tuple[str, ...]
    known: tuple[str, ...] = ()


def session_requests(
    turns: pa.Table, known: Sequence[KnownMemory], policy: Policy, model: str, prompt: Prompt
) -> list[SessionRequest]:
    """
    Return the request of each whole session in `turns` (TURNS) that a person led, by project and session.

    A request depends on nothing but the session's turns, the memories named and the prompt. Of `known` it
    names the nearest by shared words. A session longer than the price tier is shortened as `fitted` says.
    """
    requests = []
    for threads in threads_by_session(turns):
        main = [thread for thread in threads if thread[0]["agent_id"] is None]
        is_led = any(is_led_by_person(thread) for thread in main)
        lines = session_lines([with_prompts_of_person(thread) for thread in main]) if is_led else []
        if len(lines) >= FEWEST_LINES:
            requests.append(_request(lines, known, policy, model, prompt))
    return requests


def _request(
    lines: Sequence[SessionLine], known: Sequence[KnownMemory], policy: Policy, model: str, prompt: Prompt
) -> SessionRequest:
    named = _nearest(known, lines, int(policy.threshold("writer_known_memories_max")))
    output_tokens = int(policy.threshold("writer_output_tokens_max"))
    head = _listed(named)
    room = int(policy.threshold("writer_session_tokens_max")) - estimated_tokens(
        prompt.system + prompt.schema
    )
    shown = fitted(lines, room - estimated_tokens(head + _CLOSING))
    body = "\n".join(line.shown(number) for number, line in enumerate(shown, start=1))
    # What was redacted turn by turn may make a secret side by side.
    content = redact(f"{head}<session>\n{body}\n</session>\n\n{_CLOSING}")[0]
    first = lines[0].turn
    request = ModelRequest(
        prompt.purpose, model, prompt.name, prompt.system, content, prompt.schema, output_tokens
    )
    return SessionRequest(
        str(first["project_id"]),
        str(first["session_id"]),
        request,
        tuple(str(line.turn["turn_id"]) for line in shown),
        tuple(memory.memory_id for memory in named),
    )


def _nearest(known: Sequence[KnownMemory], lines: Sequence[SessionLine], most: int) -> list[KnownMemory]:
    """Return the memories that share the most of their words with the session, by id."""
    if not known:
        return []
    words = {word for line in lines for word in long_words(line.words)}
    ranked = sorted(known, key=lambda memory: (-_share_in(long_words(memory.text), words), memory.memory_id))
    return sorted(ranked[:most], key=lambda memory: memory.memory_id)


def _listed(known: Sequence[KnownMemory]) -> str:
    if not known:
        return "<known>\nnothing yet\n</known>\n\n"
    rows = [
        f"[{memory.memory_id[:ID_CHARS]}] {' '.join(memory.text.split())[:KNOWN_CHARS]}" for memory in known
    ]
    return "<known>\n" + "\n".join(rows) + "\n</known>\n\n"


def _share_in(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words) if words else 0.0
