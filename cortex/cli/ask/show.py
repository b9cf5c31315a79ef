"""The command `show`: one memory, one session, or what was said at a line of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.transforms.errors import UsageError
from cortex.transforms.memory.authors import author_of_layer, speaker_of
from cortex.transforms.words.ages import age_of, counted
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.history import EvidencePlace
    from cortex.flows.operations.ask.listing import Details

RELATED_SHOWN = 8


@command("show", "Show everything known about one memory or session.", place=70)
@click.argument("id")
def show(context: Context, id: str) -> Answer:
    """
    Show a memory or a session by its ID, or by the first 4 or more characters of it.

    ID:LINE shows what was said at a line of a session, and around it.
    """
    from cortex.flows.operations.ask import history, listing

    name, colon, line = id.strip().strip("[]`()").partition(":")
    shown = listing.show(context, name, with_others=not colon)
    if colon:
        if shown.kind != "session" or not line.isdigit():
            raise UsageError(f"'{id}' is no place in a session.", "Write SESSION:LINE, as in abc123:40.")
        place = history.words_at_line(context, shown.row, int(line))
        return Answer(
            {"session": shown.row, "turns": [asdict(turn) for turn in place.turns]}, _turn_lines(place)
        )
    lines = _memory_lines if shown.kind == "memory" else _session_lines
    others = "related" if shown.kind == "memory" else "memories"
    return Answer({shown.kind: shown.row, others: list(shown.others)}, lines(shown, context.now))


def _turn_lines(place: EvidencePlace) -> Iterator[str]:
    for turn in place.turns:
        by = "user" if turn.trust == "user" else turn.tool_name or turn.trust
        at = f"{turn.said_at:%Y-%m-%d %H:%M} UTC, " if turn.said_at else ""
        yield f"{'>' if turn.is_cited else ' '} {by} ({at}{place.session_id[:8]}:{turn.line})"
        yield from (f"    {line}" for line in turn.text.split("\n"))
        yield ""


def _memory_lines(shown: Details, now: datetime) -> Iterator[str]:
    row = shown.row
    yield row["text"]
    for label, more in (("Why", row["reason"]), ("Rejected", row["rejected"])):
        if more and more not in row["text"]:
            yield f"{label}: {more}"
    yield ""
    yield _field("memory", row["memory_id"])
    yield _field("project", shown.labels.get(row["project_id"], row["project_id"]))
    yield _field("type", row["memory_type"] + (", pinned" if row["is_pinned"] else ""))
    yield _field("status", _status(row["status"], row["superseded_by"] or row["merged_into"]))
    yield _field("confidence", f"{row['confidence']:.2f}, said by {speaker_of(row)}")
    yield _field(
        "first said", f"{row['created_at']:%Y-%m-%d %H:%M} UTC, {age_of(row['created_at'], now)} ago"
    )
    if row["updated_at"] != row["created_at"]:
        yield _field("last said", f"{row['updated_at']:%Y-%m-%d %H:%M} UTC")
    if row["access_count"]:
        yield _field("recalled", counted(row["access_count"], "time"))
    for label, names in (("files", row["files"]), ("tags", row["tags"])):
        if names:
            yield _field(label, ", ".join(names))
    for at, place in enumerate(row["evidence"]):
        lines = ",".join(map(str, place["lines"][:5]))
        session = f"session {place['session_id'][:8]}, " if place["session_id"] else ""
        by = "" if lines else f", by {author_of_layer(place['layer'])}"
        where = f"{place['file']}:{lines}" if lines else place["file"]
        yield _field("" if at else "from", f"{session}{where}{by}")
    for at, other in enumerate(shown.others[:RELATED_SHOWN]):
        words = f"{other['memory_id'][:6]}  {excerpt(other['text'], 58)}"
        yield _field("" if at else "related", words)


def _session_lines(shown: Details, now: datetime) -> Iterator[str]:
    row = shown.row
    yield row["goal"] or row["first_prompt"] or "(no prompt)"
    yield ""
    yield _field("session", row["session_id"])
    yield _field("project", shown.labels.get(row["project_id"], row["project_id"]))
    if row["began_at"]:
        yield _field("began", _instant(row["began_at"], now))
        yield _field("ended", f"{row['ended_at']:%Y-%m-%d %H:%M} UTC")
    if row["git_branch"]:
        yield _field("branch", row["git_branch"])
    yield _field("prompts", str(row["prompts"]))
    for label, name in (("done", "outcome"), ("open", "still_open")):
        for at, part in enumerate((row[name] or "").split("; ") if row[name] else ()):
            yield _field("" if at else label, part)
    if shown.others:
        yield ""
        yield f"{counted(len(shown.others), 'memory')} from it:"
    for other in shown.others:
        yield f"  {other['memory_id'][:6]}  {other['memory_type']:<12}  {excerpt(other['text'], 56)}"


def _instant(at: datetime, now: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC, {age_of(at, now)} ago"


def _field(label: str, text: str) -> str:
    return f"{label:<10}  {text}"


def _status(status: str, replaced_by: str | None) -> str:
    return f"{status}, by {replaced_by[:12]}" if replaced_by else status
