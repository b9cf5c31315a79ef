"""The commands `recall` and `brief`: what is known to a question, what a session is given at its start."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import AS_OF, PROJECT_OPTION, SEARCHED_ALL, Answer, check_day, command
from cortex.hooks.prose.plain import on_one_line
from cortex.transforms.errors import UsageError
from cortex.transforms.words.ages import old_age
from cortex.transforms.words.sentences import excerpt, first_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cortex.flows.context import Context
    from cortex.flows.operations.ask.brief import Explanation
    from cortex.flows.operations.ask.recall import Recalled
    from cortex.flows.recalling.recall_search import Evidence, RecallResult
    from cortex.transforms.brief.explanation import Choice


@command("recall", "Search memories and past conversations.", place=10)
@click.argument("question", nargs=-1, required=True)
@PROJECT_OPTION
@click.option("--all-projects", is_flag=True, help="Search every project.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Maximum number of results.",
)
@click.option(
    "--related",
    type=click.IntRange(0, 3),
    default=0,
    metavar="STEPS",
    help="Also show memories linked to the results, up to STEPS links away (1 to 3).",
)
@AS_OF
@click.option(
    "--since",
    metavar="DATE",
    callback=check_day,
    help="Only results from that day (UTC) or later: 2026-09-14, yesterday, 10d or 3w ago.",
)
@click.option(
    "--until", metavar="DATE", callback=check_day, help="Only results from that day (UTC) or earlier."
)
@click.option("--session", metavar="ID", help="Only sessions whose id starts with ID, or by number: 6, 5-8.")
@click.option("--branch", metavar="NAME", help="Only results from that git branch.")
@click.option("--file", metavar="PATH", help="Only results that name the file, by its path or the end of it.")
def recall(
    context: Context,
    question: tuple[str, ...],
    project: str | None,
    all_projects: bool,
    limit: int,
    related: int,
    as_of: str | None,
    **limits: str | None,
) -> Answer:
    """
    Search memories and past sessions; results come with source, age and confidence.

    In a folder that belongs to no project, all projects are searched.

    The question itself may say "last week", "since 2026-03-01", "in session 0211" or "sessions 5-8". One that
    names no subject, such as "what was decided last week", lists what there is, newest first.
    """
    from cortex.flows.operations.ask import recall
    from cortex.flows.operations.lookup import is_outside

    outside = is_outside(context, project, all_projects=all_projects)
    all_projects = all_projects or outside
    recalled = recall.recall(
        context,
        " ".join(question),
        project=project,
        all_projects=all_projects,
        limit=limit,
        related=related,
        as_of=as_of,
        limits=recall.limits_from(context, **limits),
    )
    results = [_as_dict(recalled, rank, match) for rank, match in enumerate(recalled.matches, start=1)]
    data: dict[str, object] = {"results": results}
    if related:
        data["related"] = [asdict(memory) for memory in recalled.related]
    warnings = [each for each in (recalled.warning, recalled.note) if each]
    hints = [SEARCHED_ALL] if outside else []
    within = str(recalled.limits)
    data["limits"] = within or None
    if not recalled.matches:
        own = f"project '{project}'" if project else "this folder's project"
        place = "any project" if all_projects else own
        also = "" if all_projects else " Search everywhere with --all-projects."
        where = f"{place}, {within}" if within else place
        return Answer(data, hints=[*hints, f"Nothing found in {where}.{also}"], warnings=warnings)
    return Answer(data, _lines(recalled, context.now), hints, warnings)


def _as_dict(recalled: Recalled, rank: int, match: RecallResult) -> dict[str, object]:
    doubt = recalled.doubts.get(match.id)
    return {
        "id": match.id,
        "rank": rank,
        "score": round(match.score, 6),
        "kind": match.kind,
        "memory_type": match.memory_type,
        "text": match.text,
        "project": recalled.project_names.get(match.project_id, match.project_id),
        "project_id": match.project_id,
        "confidence": match.confidence,
        "trust": match.trust,
        "speaker": match.speaker,
        "status": match.status,
        "created_at": match.created_at.isoformat() if match.created_at else None,
        "statement": match.statement,
        "chosen": match.slots.get("chosen"),
        "why": match.why or match.slots.get("reason"),
        "rejected": match.rejected or match.slots.get("rejected"),
        "passage": match.passage,
        "evidence": _evidence(match.evidence, recalled),
        "nearby": [
            {
                "id": each.id,
                "kind": each.kind,
                "memory_type": each.memory_type,
                "text": each.text,
                "statement": each.statement,
                "is_earlier": each.is_earlier,
                "evidence": _evidence(each.evidence, recalled),
            }
            for each in match.nearby
        ],
        "code": asdict(match.code) if match.code else None,
        "replaces": [{"id": old.memory_id, "text": old.text} for old in match.replaces],
        "doubt": doubt.reason if doubt else None,
    }


def _evidence(evidence: Sequence[Evidence], recalled: Recalled) -> list[dict[str, object]]:
    numbers = recalled.session_numbers
    return [
        {
            "session": e.session_id,
            "session_number": numbers.get(e.session_id),
            "file": e.file,
            "lines": list(e.lines),
        }
        for e in evidence
    ]


def _lines(recalled: Recalled, now: datetime) -> Iterator[str]:
    for rank, match in enumerate(recalled.matches, start=1):
        yield from _match_lines(rank, match, recalled, now)
        if doubt := recalled.doubts.get(match.id):
            yield f"    {doubt.mark}: {doubt.reason}"
    if recalled.related:
        yield "Related:"
    for memory in recalled.related:
        yield f"    {memory.memory_type}  {excerpt(memory.text, 200)}  [{memory.memory_id[:12]}]"


def _match_lines(rank: int, match: RecallResult, recalled: Recalled, now: datetime) -> Iterator[str]:
    project = recalled.project_names.get(match.project_id)
    confidence = f", confidence {match.confidence:.2f}" if match.confidence is not None else ""
    yield f"{rank:>2}. {excerpt(_plain(match.statement), 400)}"
    if match.why:
        yield f"    Why: {excerpt(_plain(match.why), 320)}"
    if match.rejected:
        yield f"    Rejected: {excerpt(_plain(match.rejected), 200)}"
    for old in match.replaces:
        yield f"    In place of: {excerpt(old.text, 200)}  [{old.memory_id[:12]}]"
    yield (
        f"    {match.memory_type or 'said'}, {project or match.project_id}, "
        f"{old_age(match.created_at, now)}{confidence}, {match.speaker}  [{match.id[:12]}]"
    )
    if match.evidence:
        first = match.evidence[0]
        more = f" and {len(match.evidence) - 1} more" if len(match.evidence) > 1 else ""
        number = recalled.session_numbers.get(first.session_id)
        name = f"{number} ({first.session_id[:8]})" if number else first.session_id[:8]
        session = f"session {name}, " if first.session_id else ""
        lines = f":{','.join(map(str, first.lines[:5]))}" if first.lines else ""
        yield f"    {session}{first.file}{lines}{more}"
    if match.quote:
        yield f"    | {excerpt(_plain(match.quote), 320)}"
    for each in match.nearby:
        mark = "earlier: " if each.is_earlier else ""
        yield f"    - {mark}{excerpt(_plain(each.statement), 320)}  [{each.id[:12]}]"
    if match.code:
        yield f"    code of {match.code.file}  [{match.code.memory_id[:12]}]"
        for line in match.code.excerpt.splitlines():
            yield f"      | {line}"


def _plain(text: str) -> str:
    """
    Return text without the marks of Markdown that a terminal shows as they are.

    >>> _plain("## Tides\\n- **UTC** everywhere")
    'Tides UTC everywhere'
    """
    lines = (line.strip().lstrip("#>-* ").replace("**", "") for line in text.split("\n"))
    return " ".join(line for line in lines if line and not line.startswith("```"))


TEXT_CHARS = 110


@command("brief", "Print the brief that the assistant gets when a session starts.", place=40)
@click.option(
    "--explain", is_flag=True, help="Explain why each line is in the brief, and list what is left out."
)
@click.option("--archive", is_flag=True, help="Print the older decisions that do not fit into the brief.")
@click.option("--branch", metavar="NAME", help="Print it as a session on that git branch gets it.")
@PROJECT_OPTION
@AS_OF
def brief(
    context: Context, explain: bool, archive: bool, branch: str | None, project: str | None, as_of: str | None
) -> Answer:
    """Print the brief that the assistant gets when a session starts."""
    from cortex.flows.operations.ask import brief as brief_operation

    if explain and archive:
        raise UsageError("--explain and --archive cannot be combined.", "Give one of them.")
    if branch and (explain or archive or as_of):
        raise UsageError(
            "--branch cannot be combined with --explain, --archive or --as-of.", "Give one of them."
        )
    if explain:
        explanations = brief_operation.explain_briefs(context, project, as_of=as_of)
        lines = [line for explanation in explanations for line in _brief_lines(explanation)]
        return Answer({"briefs": [_brief_as_dict(explanation) for explanation in explanations]}, lines)
    briefs = brief_operation.read_briefs(context, project, archive=archive, as_of=as_of)
    if branch:
        briefs = brief_operation.on_branch(context, briefs, branch)
    texts = [brief.text for brief in briefs if brief.text]
    inside = f"--project {shlex.quote(project)} " if project else ""
    listing = f'cortex recall {inside}--branch {shlex.quote(branch or "")} "what was decided"'
    on_it = [f"To list what was decided on {branch}: {listing}"] if branch else []
    return Answer(
        {"briefs": [{"project_id": brief.project_id, "text": brief.text} for brief in briefs]},
        [text.removesuffix("\n") for text in texts],
        on_it if texts else [_nothing(context, project, archive, is_known=bool(briefs))],
    )


def _nothing(context: Context, project: str | None, archive: bool, *, is_known: bool) -> str:
    from cortex.flows.operations.ask import listing

    register, what = context.open_store().projects, "older decisions" if archive else "brief"
    if is_known:
        ids = register.named(project) if project else [register.known(str(context.folder)) or ""]
        why = "" if archive else f": {listing.why_nothing(context, ids[0])}"
        return f"No {what} for {project or 'this folder'}{why}."
    known = ", ".join(sorted(register.labels().values()))
    others = f"Known projects: {known}. Read one: cortex brief --project NAME"
    rest = others if known else "Read your sessions with: cortex backfill"
    return f"No {what} for {project or 'this folder'}: no session of it has been read yet. {rest}"


def _brief_lines(explanation: Explanation) -> Iterator[str]:
    shown, left_out = explanation.shown, explanation.left_out
    yield f"{explanation.project.name}: {len(shown)} of {len(explanation.choices)} candidates are in."
    section = ""
    for choice in shown:
        if choice.section != section:
            section = choice.section
            yield f"\n{section}"
        doubt = explanation.doubts.get(choice.memory_id)
        yield f"  {choice.memory_id[:6] or '-':<6}  {_first_sentence(choice.text)}"
        yield f"          in: {choice.reason}" + (f"; {doubt}" if doubt else "")
    if left_out:
        yield "\nLeft out, the best first"
    for choice in left_out:
        yield f"  {choice.memory_id[:6] or '-':<6}  {_first_sentence(choice.text)}"
        yield f"          out: {choice.reason} (rank {choice.rank:.2f})"


def _first_sentence(text: str) -> str:
    """Return the first line of a text, cut at a sentence end."""
    line = on_one_line(text.split("\n", 1)[0])
    return line if len(line) <= TEXT_CHARS else first_sentences(line, count=1, chars=TEXT_CHARS)


def _brief_as_dict(explanation: Explanation) -> dict[str, object]:
    def choice_as_dict(choice: Choice) -> dict[str, object]:
        return {
            "section": choice.section,
            "memory_id": choice.memory_id or None,
            "text": choice.text,
            "reason": choice.reason,
            "rank": round(choice.rank, 4),
            "doubt": explanation.doubts.get(choice.memory_id),
        }

    return {
        "project_id": explanation.project.project_id,
        "project": explanation.project.name,
        "shown": [choice_as_dict(choice) for choice in explanation.shown],
        "left_out": [choice_as_dict(choice) for choice in explanation.left_out],
    }
