"""The command `recall`: searches memories and past sessions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import AS_OF, PROJECT_OPTION
from cortex.transforms.words.ages import age_of
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.recall import Recalled
    from cortex.flows.recalling.recall_results import Evidence, RecallResult


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
@click.option("--since", metavar="DATE", help="Only results from that day (UTC) or later.")
@click.option("--until", metavar="DATE", help="Only results from that day (UTC) or earlier.")
@click.option("--session", metavar="ID", help="Only sessions whose id starts with ID.")
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

    The question itself may say "last week", "since 2026-03-01" or "in session 0211".
    """
    from cortex.flows.operations.ask import recall

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
    within = str(recalled.limits)
    data["limits"] = within or None
    if not recalled.matches:
        place = (
            "any project" if all_projects else f"project '{project}'" if project else "this folder's project"
        )
        also = "" if all_projects else " Search everywhere with --all-projects."
        where = f"{place}, {within}" if within else place
        return Answer(data, hints=[f"Nothing found in {where}.{also}"], warnings=warnings)
    return Answer(data, _lines(recalled, context.now), warnings=warnings)


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
        "why": match.why or None,
        "rejected": match.rejected or None,
        "passage": match.passage,
        "evidence": _evidence(match.evidence),
        "nearby": [
            {
                "id": each.id,
                "kind": each.kind,
                "memory_type": each.memory_type,
                "text": each.text,
                "statement": each.statement,
                "is_earlier": each.is_earlier,
                "evidence": _evidence(each.evidence),
            }
            for each in match.nearby
        ],
        "code": asdict(match.code) if match.code else None,
        "replaces": [{"id": old.memory_id, "text": old.text} for old in match.replaces],
        "doubt": doubt.reason if doubt else None,
    }


def _evidence(evidence: Sequence[Evidence]) -> list[dict[str, object]]:
    return [{"session": e.session_id, "file": e.file, "lines": list(e.lines)} for e in evidence]


def _lines(recalled: Recalled, now: datetime) -> Iterator[str]:
    for rank, match in enumerate(recalled.matches, start=1):
        yield from _match_lines(rank, match, recalled.project_names.get(match.project_id), now)
        if doubt := recalled.doubts.get(match.id):
            yield f"    {doubt.mark}: {doubt.reason}"
    if recalled.related:
        yield "Related:"
    for memory in recalled.related:
        yield f"    {memory.memory_type}  {excerpt(memory.text, 200)}  [{memory.memory_id[:12]}]"


def _match_lines(rank: int, match: RecallResult, project: str | None, now: datetime) -> Iterator[str]:
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
        f"{age_of(match.created_at, now)} old{confidence}, {match.speaker}  [{match.id[:12]}]"
    )
    if match.evidence:
        first = match.evidence[0]
        more = f" and {len(match.evidence) - 1} more" if len(match.evidence) > 1 else ""
        session = f"session {first.session_id[:8]}, " if first.session_id else ""
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
