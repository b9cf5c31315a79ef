"""Adds to results what their sessions have beside them: the reply to a question, the command that was run."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from cortex.flows.recall_results import Evidence, Nearby, RecallResult
from cortex.storage.reference import word_ranks
from cortex.storage.tables import Searchable
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row
from cortex.transforms.search.index_text import setting
from cortex.transforms.search.questions import RecallQuestion
from cortex.transforms.search.session_context import command_for, reply_to
from cortex.transforms.search.statements import statement_in

_PROSE_COLUMNS = ["passage_id", "session_id", "file", "line", "seq", "kind", "text", "said_at"]
# What is read of the turns of a session to see what was run in it.
RUN_COLUMNS = [
    "turn_id", "session_id", "file", "line", "block", "kind", "text", "said_at", "tool_name", "tool_use_id",
    "tool_input", "tool_status",
]  # fmt: skip

# Returns the turns of some sessions of a project with RUN_COLUMNS.
TurnsOf = Callable[[str, Collection[str]], Sequence[Row]]


def with_session_context(
    tables: Searchable,
    results: Sequence[RecallResult],
    question: str,
    policy: Policy,
    turns_of: TurnsOf | None,
) -> list[RecallResult]:
    """
    Return results with the reply below what a person asks in them, and the command that was run.

    A command is looked for where the question asks for the way to do something, and where `turns_of` is
    given. What one result shows is not shown below another. Apart from `recall`, since it reads the
    transcripts of every result: the prompt has no time for that.
    """
    asking = RecallQuestion.of(question, word_ranks(), policy)
    shown = {name for result in results for name in (result.id, *(each.id for each in result.nearby))}
    prose = _by_file(tables, results)
    run = _runs_of(results, turns_of) if turns_of is not None and asking.asks_how else {}
    extended = []
    for result in results:
        nearby = _with_reply(result, prose, shown, asking)
        call = _command_of(result, run, asking, int(setting(policy, "stretch_lines")), shown)
        extended.append(replace(result, nearby=(*call, *nearby)))
    return extended


def _by_file(tables: Searchable, results: Sequence[RecallResult]) -> dict[str, list[Row]]:
    files: dict[str, set[str]] = {}
    for result in results:
        files.setdefault(result.project_id, set()).update(item.file for item in result.all_evidence)
    prose: dict[str, list[Row]] = {}
    for scope, names in sorted(files.items()):
        rows = (
            tables.open_index([scope], "passages").read(_PROSE_COLUMNS, {"file": sorted(names)}).to_pylist()
        )
        for row in sorted(rows, key=lambda row: (row["line"], row["seq"])):
            prose.setdefault(row["file"], []).append(row)
    return prose


def _with_reply(
    result: RecallResult, prose: dict[str, list[Row]], shown: set[str], asking: RecallQuestion
) -> list[Nearby]:
    """Return what is near a result, and behind the first turn of a person that asks what was replied."""
    nearby = list(result.nearby)
    items: tuple[RecallResult | Nearby, ...] = (result, *result.nearby)
    for at, item in enumerate(items):
        places = item.evidence[:1] if item.kind == "turn" else ()
        replies = (
            reply_to(line, prose.get(place.file, ()), asking.patterns.announces)
            for place in places
            for line in place.lines[:1]
        )
        reply = next((each for each in replies if each is not None), None)
        if reply is not None and reply["passage_id"] not in shown:
            shown.add(reply["passage_id"])
            nearby.insert(at, _nearby(reply["passage_id"], reply, statement_in(reply["text"], asking.asked)))
            break
    return nearby


def _runs_of(results: Sequence[RecallResult], turns_of: TurnsOf) -> dict[str, list[Row]]:
    sessions: dict[str, set[str]] = {}
    for result in results:
        sessions.setdefault(result.project_id, set()).update(item.session_id for item in result.evidence)
    run: dict[str, list[Row]] = {}
    for scope, names in sorted(sessions.items()):
        for row in sorted(turns_of(scope, names), key=lambda row: (row["line"], row["block"])):
            run.setdefault(row["file"], []).append(row)
    return run


def _command_of(
    result: RecallResult, run: dict[str, list[Row]], asking: RecallQuestion, within: int, shown: set[str]
) -> list[Nearby]:
    """Return the command that a result is about, where nothing above shows it."""
    words = " ".join([result.statement, result.quote, *(each.statement for each in result.nearby)])
    for item in result.evidence:
        call = command_for(item.lines, words, run.get(item.file, ()), asking.asked, within)
        if call is not None and call["text"] not in words and call["text"] not in shown:
            shown.add(call["text"])
            return [_nearby(call["turn_id"], call, f"Ran `{' '.join(call['text'].split())}`")]
    return []


def _nearby(name: str, row: Row, statement: str) -> Nearby:
    place = Evidence(row["session_id"], row["file"], (row["line"],), row["said_at"])
    return Nearby(name, "turn", None, row["text"], statement, (place,))
