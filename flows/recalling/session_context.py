"""
Adds to results what is next to them in their sessions: the reply to a question, the command that was run.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from cortex.flows.recalling.recall_results import Evidence, Nearby, RecallResult
from cortex.flows.recalling.recall_search import question_of
from cortex.hooks.evidence.question import SearchQuestion
from cortex.hooks.evidence.statements import asks_anything, statement_in
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row
from cortex.transforms.search.session_context import command_for, reply_to

# What is read of the turns of a session to see what was replied and run in it.
RUN_COLUMNS = [
    "turn_id", "session_id", "file", "line", "block", "kind", "text", "said_at", "tool_name", "tool_use_id",
    "tool_input", "tool_status",
]  # fmt: skip

# A turn is as long as a passage at most: what is shown of it is far shorter.
_TEXT_CHARS = 900

# Returns the turns of some sessions of a project with RUN_COLUMNS.
TurnsOf = Callable[[str, Collection[str]], Sequence[Row]]


def with_session_context(
    results: Sequence[RecallResult], question: str, policy: Policy, turns_of: TurnsOf
) -> list[RecallResult]:
    """
    Return results with the reply below what a person asks in them, and the command that was run.

    A command is looked for where the question asks for the way to do something. What one result shows is not
    shown below another. Apart from `recall`, since it reads the turns of the sessions that a question or a
    command is looked for in: the prompt has no time for that.
    """
    asking = question_of(question, policy)
    turns = _turns_near(results, turns_of, is_all=asking.asks_how)
    if not turns:
        return list(results)
    shown = {place for result in results for place in _turns_shown(result)}
    commands: set[str] = set()
    extended = []
    for result in results:
        nearby = _with_reply(result, turns, shown, asking)
        call = (
            _command_of(result, turns, asking, int(asking.settings.numbers["stretch_lines"]), commands)
            if asking.asks_how
            else []
        )
        extended.append(replace(result, nearby=(*call, *nearby)))
    return extended


def _turns_near(results: Sequence[RecallResult], turns_of: TurnsOf, *, is_all: bool) -> dict[str, list[Row]]:
    """Return by file the turns of the sessions in which something shown asks, or of all of them."""
    sessions: dict[str, set[str]] = {}
    for result in results:
        items: tuple[RecallResult | Nearby, ...] = (result, *result.nearby)
        for item in items:
            if is_all or (item.kind == "turn" and asks_anything(item.text)):
                names = {place.session_id for place in item.evidence}
                sessions.setdefault(result.project_id, set()).update(names)
    turns: dict[str, list[Row]] = {}
    for scope, wanted in sorted(sessions.items()):
        for row in sorted(turns_of(scope, wanted), key=lambda row: (row["line"], row["block"])):
            turns.setdefault(row["file"], []).append(row)
    return turns


def _turns_shown(result: RecallResult) -> Iterator[tuple[str, int]]:
    """Yield where the turns stand that a result shows; further lines say the same."""
    items: tuple[RecallResult | Nearby, ...] = (result, *result.nearby)
    for item in items:
        if item.kind == "turn" and item.evidence:
            yield item.evidence[0].file, item.evidence[0].lines[0]


def _with_reply(
    result: RecallResult, turns: dict[str, list[Row]], shown: set[tuple[str, int]], asking: SearchQuestion
) -> list[Nearby]:
    """Return what is near a result, and behind the first turn of a person that asks what was replied."""
    nearby = list(result.nearby)
    items: tuple[RecallResult | Nearby, ...] = (result, *result.nearby)
    for at, item in enumerate(items):
        if item.kind != "turn" or not item.evidence:
            continue
        place = item.evidence[0]
        reply = reply_to(place.lines[0], turns.get(place.file, ()), asking.settings.pattern("announces"))
        if reply is not None and (reply["file"], reply["line"]) not in shown:
            shown.add((reply["file"], reply["line"]))
            nearby.insert(at, _nearby(reply, statement_in(reply["text"], asking.asked)))
            break
    return nearby


def _command_of(
    result: RecallResult, run: dict[str, list[Row]], asking: SearchQuestion, within: int, shown: set[str]
) -> list[Nearby]:
    """Return the command that a result is about, if nothing above shows it."""
    words = " ".join([result.statement, result.quote, *(each.statement for each in result.nearby)])
    for item in result.evidence:
        call = command_for(item.lines, words, run.get(item.file, ()), asking.asked, within)
        if call is not None and call["text"] not in words and call["text"] not in shown:
            shown.add(call["text"])
            return [_nearby(call, f"Ran `{' '.join(call['text'].split())}`")]
    return []


def _nearby(row: Row, statement: str) -> Nearby:
    place = Evidence(row["session_id"], row["file"], (row["line"],), row["said_at"])
    return Nearby(row["turn_id"], "turn", None, row["text"][:_TEXT_CHARS], statement, (place,))
