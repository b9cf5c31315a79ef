"""The commands that look around: `list`, `show`, `related`, `timeline`, `today` and `sql`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import ALL_PROJECTS, AS_OF, LIMIT, PROJECT_OPTION, Answer, Listing, command
from cortex.transforms.errors import UsageError
from cortex.transforms.vocabulary import GLOBAL_SCOPE
from cortex.transforms.words.ages import (
    STARTED_BY_PROGRAM,
    ago,
    author_of_layer,
    counted,
    outcome_lines,
    speaker_of,
)
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cortex.flows.context import Context
    from cortex.flows.operations.ask.listing import Details, Listed
    from cortex.flows.operations.ask.memory_details import EvidencePlace, Linked, Neighbourhood
    from cortex.transforms.schemas import Row


@command("list", "List memories, the newest first.", place=60)
@PROJECT_OPTION
@ALL_PROJECTS
@click.option(
    "--type", "memory_type", metavar="TYPE", help="Only memories of this type: decision, gotcha, pattern, …"
)
@click.option("--faded", is_flag=True, help="Only inactive memories: archived, replaced or merged.")
@click.option("--pinned", is_flag=True, help="Only pinned memories.")
@LIMIT
def list_(
    context: Context,
    project: str | None,
    all_projects: bool,
    memory_type: str | None,
    faded: bool,
    pinned: bool,
    limit: int,
) -> Answer:
    """List memories, newest first: those of this folder's project, or of all projects if it has none."""
    from cortex.flows.operations.ask import listing

    listed = listing.list_memories(
        context,
        project,
        all_projects=all_projects,
        memory_type=memory_type,
        faded=faded,
        pinned=pinned,
        limit=limit,
    )
    data = {
        "total": listed.total,
        "memories": [
            {**row, "project": listed.labels.get(row["project_id"], row["project_id"])} for row in listed.rows
        ],
    }
    if not listed.rows:
        return Answer(data, [], [_nothing(context, listed, memory_type, faded, pinned)])
    return Answer(data, [_table(listed, faded)], _hints(listed))


def _table(listed: Listed, faded: bool) -> Listing:
    from cortex.flows.operations import ids

    short = ids.short_ids([row["memory_id"] for row in listed.rows])
    has_several = len({row["project_id"] for row in listed.rows} - {GLOBAL_SCOPE}) > 1
    columns = ["id", "day", "type", *(["project"] if has_several else []), "memory"]
    rows = []
    for row in listed.rows:
        kind = row["status"] if faded else row["memory_type"]
        mark = "★ " if row["is_pinned"] else ""
        if row["project_id"] == GLOBAL_SCOPE and not has_several:
            mark += "everywhere: "
        where = [listed.labels.get(row["project_id"], row["project_id"])] if has_several else []
        text = mark + " ".join(row["text"].split())
        rows.append([short[row["memory_id"]], f"{row['updated_at']:%Y-%m-%d}", kind, *where, text])
    names = ", ".join(listed.labels.get(each, each) for each in listed.project_ids) or "All projects"
    noun = "faded memory" if faded else "memory"
    return Listing(f"{names}: {counted(listed.total, noun)}", columns, rows, wraps="memory", most_lines=2)


def _hints(listed: Listed) -> list[str]:
    left = listed.total - len(listed.rows)
    more = [f"{left} more: --limit {listed.total}"] if left else []
    return [*more, "Read one whole: cortex show ID"]


def _nothing(context: Context, listed: Listed, memory_type: str | None, faded: bool, pinned: bool) -> str:
    from cortex.flows.operations.ask import listing

    if memory_type or faded or pinned or not listed.project_ids:
        return "No memory matches. Without options, cortex list shows all active memories."
    names = ", ".join(listed.labels.get(each, each) for each in listed.project_ids)
    return f"Nothing to list for {names}: {listing.why_nothing(context, listed.project_ids[0])}."


RELATED_SHOWN = 8


@command("show", "Show everything known about one memory or session.", place=70)
@click.argument("id")
@PROJECT_OPTION
def show(context: Context, id: str, project: str | None) -> Answer:
    """
    Show a memory or a session by its ID, or by the first 4 or more characters of it; a session also by its
    number in `cortex timeline`.

    ID:LINE shows what was said at a line of a session, and around it.
    """
    from cortex.flows.operations.ask import listing

    name, colon, line = id.strip().strip("[]`()").partition(":")
    shown = listing.show(context, name, with_others=not colon, project=project)
    if colon:
        if shown.kind != "session" or not line.isdigit():
            raise UsageError(f"'{id}' is no place in a session.", "Write SESSION:LINE, as in abc123:40.")
        # Imported here: it reads the lake by Arrow, which no other look needs.
        from cortex.flows.operations.ask import memory_details

        place = memory_details.words_at_line(context, shown.row, int(line))
        return Answer(
            {"session": shown.row, "turns": [asdict(turn) for turn in place.turns]}, _turn_lines(place)
        )
    others = "related" if shown.kind == "memory" else "memories"
    data: dict[str, object] = {shown.kind: shown.row, others: list(shown.others)}
    if shown.kind == "memory":
        data["doubt"] = shown.doubt.reason if shown.doubt else None
        data["outcomes"] = list(shown.outcomes)
        data["use"] = asdict(listing.profit_and_loss(shown.row, shown.uses, shown.others))
    if shown.kind == "memory":
        sessions = [
            *filter(None, [shown.row["session_id"], *(e["session_id"] for e in shown.row["evidence"])])
        ]
        numbers = listing.numbers_of(context, session_id=sessions) if sessions else {}
        return Answer(data, _memory_lines(shown, context.now, numbers))
    return Answer(data, _session_lines(shown, context.now))


def _turn_lines(place: EvidencePlace) -> Iterator[str]:
    for turn in place.turns:
        speaker = STARTED_BY_PROGRAM if turn.kind == "program" else turn.tool_name or turn.trust
        by = "user" if turn.trust == "user" else speaker
        at = f"{turn.said_at:%Y-%m-%d %H:%M} UTC, " if turn.said_at else ""
        yield f"{'>' if turn.is_cited else ' '} {by} ({at}{place.session_id[:8]}:{turn.line})"
        yield from (f"    {line}" for line in turn.text.split("\n"))
        yield ""


def _memory_lines(shown: Details, now: datetime, numbers: Mapping[str, int]) -> Iterator[str]:
    row = shown.row
    yield row["text"]
    for label, more in (("Why", row["reason"]), ("Rejected", row["rejected"])):
        if more and more not in row["text"]:
            yield f"{label}: {more}"
    if shown.doubt:
        yield f"{shown.doubt.mark}: {shown.doubt.reason}"
    yield ""
    yield _field("memory", row["memory_id"])
    yield _field("project", shown.labels.get(row["project_id"], row["project_id"]))
    yield _field("type", row["memory_type"] + (", pinned" if row["is_pinned"] else ""))
    yield _field("status", _status(row["status"], row["superseded_by"] or row["merged_into"]))
    yield _field("confidence", f"{row['confidence']:.2f}, said by {speaker_of(row)}")
    yield _field("first said", f"{row['created_at']:%Y-%m-%d %H:%M} UTC, {ago(row['created_at'], now)}")
    if row["updated_at"] != row["created_at"]:
        yield _field("last said", f"{row['updated_at']:%Y-%m-%d %H:%M} UTC")
    for at, line in enumerate(outcome_lines(shown.outcomes)):
        yield _field("" if at else "came of it", line)
    yield from _use_lines(shown, now)
    for label, place in (
        *(("branch", row["git_branch"]), ("commit", row["git_commit"]), ("folder", row["folder"])),
        ("told in", row["session_id"] and _session_name(row["session_id"], numbers)),
    ):
        if place:
            yield _field(label, place)
    for label, names in (("files", row["files"]), ("tags", row["tags"])):
        if names:
            yield _field(label, ", ".join(names))
    for at, place in enumerate(row["evidence"]):
        lines = ",".join(map(str, place["lines"][:5]))
        session = f"{_session_name(place['session_id'], numbers)}, " if place["session_id"] else ""
        by = "" if lines else f", by {author_of_layer(place['layer'])}"
        where = f"{place['file']}:{lines}" if lines else place["file"]
        yield _field("" if at else "from", f"{session}{where}{by}")
    for at, other in enumerate(shown.others[:RELATED_SHOWN]):
        words = f"{other['memory_id'][:6]}  {excerpt(other['text'], 58)}"
        yield _field("" if at else "related", words)


def _session_name(session_id: str, numbers: Mapping[str, int]) -> str:
    number = numbers.get(session_id)
    return f"session {number} ({session_id[:8]})" if number else f"session {session_id[:8]}"


def _use_lines(shown: Details, now: datetime) -> Iterator[str]:
    """Yield what came of a memory: where it was shown, whether it was used, what stands against it."""
    from cortex.flows.operations.ask.listing import profit_and_loss

    use = profit_and_loss(shown.row, shown.uses, shown.others)
    if use.recalled:
        yield _field("recalled", counted(use.recalled, "time"))
    if use.sessions:
        places = [(use.briefs, "brief"), (use.prompts, "message")]
        where = ", ".join(counted(count, noun) for count, noun in places if count)
        yield _field("shown", f"in {counted(use.sessions, 'session')} ({where})")
        last = f", last {ago(use.last_used_at, now)}" if use.last_used_at else ""
        cited = f", cited in {use.cited}" if use.cited else ""
        yield _field("used", f"in {use.used} of these{last}{cited}")
    if use.corrected or use.contradicted:
        parts = [(use.corrected, "corrected in {}"), (use.contradicted, "contradicted by {}")]
        nouns = ("session", "memory")
        phrases = [text.format(counted(n, noun)) for (n, text), noun in zip(parts, nouns, strict=True) if n]
        yield _field("against it", ", ".join(phrases))


def _session_lines(shown: Details, now: datetime) -> Iterator[str]:
    from cortex.flows.operations.ask.listing import NO_PROMPT

    row = shown.row
    yield row["goal"] or row["first_prompt"] or NO_PROMPT
    yield ""
    yield _field("session", row["session_id"] + (f", number {row['number']}" if row.get("number") else ""))
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
    return f"{at:%Y-%m-%d %H:%M} UTC, {ago(at, now)}"


def _field(label: str, text: str) -> str:
    return f"{label:<10}  {text}"


def _status(status: str, replaced_by: str | None) -> str:
    return f"{status}, by {replaced_by[:12]}" if replaced_by else status


_MAX_STEPS = 4


@command("related", "Show the memories linked to a memory.", place=80)
@click.argument("id")
@click.option(
    "--steps",
    type=click.IntRange(1, _MAX_STEPS),
    default=2,
    show_default=True,
    metavar="COUNT",
    help=f"Maximum number of links in between (up to {_MAX_STEPS}).",
)
@LIMIT
def related(context: Context, id: str, steps: int, limit: int) -> Answer:
    """Show the memories linked to the memory ID, directly or through others; nearest and strongest first."""
    from cortex.flows.operations.ask import memory_details

    near = memory_details.neighbourhood_of(context, id, steps=steps, limit=limit)
    data = {
        "memory": {name: near.memory[name] for name in ("memory_id", "memory_type", "text")},
        "related": [_as_dict(each, near) for each in near.linked],
        "left_out": near.left_out,
    }
    if not near.linked:
        return Answer(data, hints=["No memory is linked to it yet."])
    hints = [f"{near.left_out} more: --limit {near.left_out + len(near.linked)}"] if near.left_out else []
    return Answer(data, _lines(near), hints)


def _as_dict(linked: Linked, near: Neighbourhood) -> dict[str, object]:
    row = near.memories[linked.memory_id]
    return {
        "memory_id": linked.memory_id,
        "memory_type": row["memory_type"],
        "text": row["text"],
        "distance": linked.distance,
        "via_id": linked.via_id,
        "edge_type": linked.edge_type,
        "is_source": linked.is_source,
        "strength": round(linked.strength, 4),
    }


def _lines(near: Neighbourhood) -> Iterator[str]:
    yield excerpt(near.memory["text"], 200)
    for distance in sorted({each.distance for each in near.linked}):
        yield f"{counted(distance, 'link')} away:"
        for each in near.linked:
            if each.distance == distance:
                yield f"  {_relation(each)}  {excerpt(near.memories[each.memory_id]['text'], 160)}"
                yield f"      [{each.memory_id[:12]}], from [{each.via_id[:12]}]"


def _relation(linked: Linked) -> str:
    """
    Return the link in words, as seen from what it was reached from.

    >>> from cortex.flows.operations.ask.memory_details import Linked
    >>> _relation(Linked("b", 1, "a", "refines", 0.5, is_source=True))
    '<- refines .50'
    """
    arrow = "<-" if linked.is_source else "->"
    return f"{arrow} {linked.edge_type.replace('_', ' ')} {linked.strength:.2f}".replace(" 0.", " .")


@command("timeline", "List sessions with their results.", place=90)
@PROJECT_OPTION
@ALL_PROJECTS
@LIMIT
def timeline(context: Context, project: str | None, all_projects: bool, limit: int) -> Answer:
    """List sessions, newest first, with what was done and what was left open."""
    from cortex.flows.operations.ask import listing

    listed = listing.list_sessions(context, project, all_projects=all_projects, limit=limit)
    data = {"total": listed.total, "sessions": [session_as_dict(row, listed) for row in listed.rows]}
    if not listed.rows:
        return Answer(data, [], ["No session of that project has been read yet."])
    left = listed.total - len(listed.rows)
    more = [f"{left} more: --limit {listed.total}"] if left else []
    is_numbered = len(listed.project_ids) == 1 and listed.rows[0].get("number")
    named = f"cortex show {listed.rows[0]['number']}" if is_numbered else "cortex show SESSION"
    if is_numbered and project:
        named += f" --project {shlex.quote(project)}"
    return Answer(data, [_timeline_table(listed)], [*more, f"Read one whole: {named}"])


def session_as_dict(row: Row, listed: Listed) -> dict[str, object]:
    """Return a session for programs."""
    return {**row, "project": listed.labels.get(row["project_id"], row["project_id"])}


def _timeline_table(listed: Listed) -> Listing:
    from cortex.flows.operations import ids

    short = ids.short_ids([row["session_id"] for row in listed.rows], least=8)
    has_several = len({row["project_id"] for row in listed.rows}) > 1
    columns = ["no", "session", "ended", *(["project"] if has_several else []), "result"]
    rows = []
    for row in listed.rows:
        ended = f"{row['ended_at']:%Y-%m-%d %H:%M}" if row["ended_at"] else ""
        where = [listed.labels.get(row["project_id"], row["project_id"])] if has_several else []
        rows.append([str(row.get("number", "")), short[row["session_id"]], ended, *where, _summary(row)])
    names = ", ".join(listed.labels.get(each, each) for each in listed.project_ids) or "All projects"
    return Listing(
        f"{names}: {counted(listed.total, 'session')}", columns, rows, wraps="result", most_lines=2
    )


def _summary(row: Row) -> str:
    from cortex.flows.operations.ask.listing import NO_PROMPT

    text = row["outcome"] or row["goal"] or row["first_prompt"] or NO_PROMPT
    return f"{text.rstrip('.')}. Open: {row['still_open']}" if row["still_open"] else text


@command("today", "Summarize the last session: what was done and what is open.", place=50)
@PROJECT_OPTION
def today(context: Context, project: str | None) -> Answer:
    """
    Summarize the last session: what was done and what is open. Outside a project: the projects worked on
    last.
    """
    from cortex.flows.operations.ask import listing

    listed = listing.last_sessions(context, project)
    data = {"sessions": [session_as_dict(row, listed) for row in listed.rows]}
    if not listed.rows:
        return Answer(data, [], ["No session of that project has been read yet."])
    waiting = listing.waiting(context)
    hints = [f"{counted(waiting, 'transcript')} waiting: cortex run"] if waiting else []
    if any(not row["prompts"] for row in listed.rows):
        hints.append("What a program started is found; its words count as yours once you go on with it.")
    return Answer(data, _today_lines(listed, context.now), hints)


def _today_lines(listed: Listed, now: datetime) -> Iterator[str]:
    for at, row in enumerate(listed.rows):
        if at:
            yield ""
        yield from _today_session_lines(row, listed, now)


def _today_session_lines(row: Row, listed: Listed, now: datetime) -> Iterator[str]:
    label = listed.labels.get(row["project_id"], row["project_id"])
    branch = f", on {row['git_branch']}" if row["git_branch"] else ""
    when = ago(row["ended_at"], now) if row["ended_at"] else "at an unknown time"
    number = f" {row['number']}" if row.get("number") else ""
    yield f"{label}: session{number} ({row['session_id'][:8]}), {when}{branch}"
    if row["goal"] or not row["outcome"]:
        from cortex.flows.operations.ask.listing import NO_PROMPT

        yield f"  asked  {row['goal'] or row['first_prompt'] or NO_PROMPT}"
    for label, name in (("done", "outcome"), ("open", "still_open")):
        for at, part in enumerate(row[name].split("; ") if row[name] else ()):
            yield f"  {'' if at else label:<5}  {part}"


@command("sql", "Query turns, events, memories, edges and the journal with DuckDB.", place=180)
@click.argument("query")
@AS_OF
@click.option(
    "--timeout", "seconds", type=click.FloatRange(min=0.1), help="Stop the query after so many seconds."
)
def sql(context: Context, query: str, as_of: str | None, seconds: float | None) -> Answer:
    """Query turns, events, memories, edges, metrics and the journal with DuckDB (read-only)."""
    from cortex.flows.operations.ask import sql

    result = sql.query_tables(context, query, as_of=as_of, seconds=seconds)
    count = len(result.rows)
    rows = [[_cell(value) for value in row] for row in result.rows]
    return Answer(
        {"columns": list(result.columns), "rows": [list(row) for row in result.rows]},
        [Listing(f"{count} row{'' if count == 1 else 's'}", result.columns, rows)],
    )


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
