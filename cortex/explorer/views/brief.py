"""What the assistant is told, and what a person may settle of it: a project's brief and the review."""

from collections.abc import Sequence

from cortex.explorer.page import Page, ViewRequest
from cortex.flows.operations.ask import brief, browse, listing
from cortex.flows.operations.ask.brief import Explanation
from cortex.flows.operations.edit import review as review_operation
from cortex.hooks.tokens import tokens_in
from cortex.transforms.brief.explanation import Choice
from cortex.transforms.errors import NotFound
from cortex.transforms.schemas import PROPOSED_BY_MODEL, Row
from cortex.transforms.views.review import Item

# -- What the assistant is told: a project's brief, each line with its memory, its reason and its doubts.


def show_brief(request: ViewRequest) -> Page:
    """Show the brief of the project in the path, else of the folder's, else of the one worked on last."""
    context = request.context
    projects = listing.list_known_projects(context)
    project_id = request.parts.get("project") or project_meant(request, projects)
    labels = listing.labels_of(context)
    if project_id not in {row["project_id"] for row in projects}:
        raise NotFound(
            f"no project has the id '{project_id}'.", "Choose one from the list next to the brief."
        )
    as_of = request.word("as_of")
    explanation = _explanation(request, project_id, as_of)
    listed = [*explanation.shown, *explanation.left_out]
    rows = listing.memories_named(context, [each.memory_id for each in listed if each.memory_id])
    data = {
        "project_id": project_id,
        "project": labels[project_id],
        "as_of": as_of,
        "tokens": tokens_in(explanation.text),
        "text": explanation.text,
        "sections": _sections(request, explanation, explanation.shown, rows),
        "candidates": explanation.total,
        "left_out": [_line(explanation, choice, rows) for choice in explanation.left_out],
    }
    extra = {"projects": projects, "has_nothing": _why_nothing(request, project_id, explanation)}
    return Page("brief.html", f"What the assistant is told: {labels[project_id]}", data, extra)


def project_meant(request: ViewRequest, projects: Sequence[Row]) -> str:
    """Return the folder's project, else the one worked on last. Raises NotFound if there is none."""
    context = request.context
    here = listing.projects_meant(context, context.open_catalogue(), projects, None, False)
    known = [*here, *(row["project_id"] for row in projects)]
    if not known:
        raise NotFound("no project was read yet.", "Read old sessions: cortex backfill")
    return str(known[0])


def _explanation(request: ViewRequest, project_id: str, as_of: str) -> Explanation:
    """Return what is published of a brief's lines where it still holds, else what holds now or held then."""
    context = request.context
    if not as_of and (published := brief.published_explanation(context, project_id)):
        return published

    def explain() -> Explanation:
        [explanation] = brief.explain_briefs(context, project_id, as_of=as_of or None)
        return explanation

    return request.kept(("brief", project_id, as_of), project_id, explain)


def _sections(
    request: ViewRequest, explanation: Explanation, shown: Sequence[Choice], rows: dict[str, Row]
) -> list[dict[str, object]]:
    kinds = request.context.policy.tables["memory_types"].to_pylist()
    headings = {row["memory_type"]: row["brief_section"] for row in kinds}
    sections: dict[str, list[dict[str, object]]] = {}
    for choice in shown:
        heading = headings.get(choice.section, choice.section) if choice.section else "The repository"
        sections.setdefault(heading, []).append(_line(explanation, choice, rows))
    return [{"heading": heading, "lines": lines} for heading, lines in sections.items()]


def _line(explanation: Explanation, choice: Choice, rows: dict[str, Row]) -> dict[str, object]:
    row = rows.get(choice.memory_id, {})
    lines = choice.text.removeprefix("- ").split("\n")
    return {
        "memory_id": choice.memory_id or None,
        "text": lines[0],
        "more": [line.strip().removeprefix("- ") for line in lines[1:]],
        "reason": choice.reason,
        "rank": round(choice.rank, 4),
        "doubt": explanation.doubts.get(choice.memory_id),
        "memory_type": row.get("memory_type"),
        "trust": row.get("trust"),
        "updated_at": row.get("updated_at"),
        "sessions": row.get("session_count"),
    }


def _why_nothing(request: ViewRequest, project_id: str, explanation: Explanation) -> str:
    return "" if explanation.shown else listing.why_nothing(request.context, project_id)


# -- The review: contradictions, stale claims, proposed merges and weak memories, each resolved by a key.

KIND_HEADINGS = {
    "contradiction": "Contradictions",
    "stale": "Claims that the repository no longer agrees with",
    "merge": "Memories that say the same",
    "global": "Wishes that may hold in every project",
}
WEAK_SHOWN = 10
REVIEW_ITEMS_SHOWN = 20  # who settles one sees the next


def show_review(request: ViewRequest) -> Page:
    """Show the items to resolve in the project of the query, else of the one that the brief is of."""
    context = request.context
    projects = listing.list_known_projects(context)
    project_id = request.word("project") or project_meant(request, projects)
    [review] = request.kept(
        ("review", project_id), project_id, lambda: review_operation.review(context, project=project_id)
    )
    weak = browse.weakest(context, project_id, limit=WEAK_SHOWN)
    data = {
        "project_id": project_id,
        "project": listing.labels_of(context).get(project_id, project_id),
        "total": len(review.items),
        "items": [{"id": item.item_id, **_as_dict(item)} for item in review.items[:REVIEW_ITEMS_SHOWN]],
        "weak": weak,
    }
    extra = {"projects": projects, "headings": KIND_HEADINGS, "by_model": PROPOSED_BY_MODEL}
    return Page("review.html", "Review", data, extra)


def _as_dict(item: Item) -> dict[str, object]:
    return {
        "kind": item.kind,
        "memories": [
            {"memory_id": name, "text": text} for name, text in zip(item.memory_ids, item.texts, strict=True)
        ],
        "offer": item.offer,
        "detail": item.detail,
    }
