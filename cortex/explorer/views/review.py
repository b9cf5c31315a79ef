"""The review: contradictions, stale claims, proposed merges and weak memories, each settled by a key."""

from cortex.explorer.page import Page, ViewRequest
from cortex.explorer.views.brief import project_meant
from cortex.flows.operations.ask import browse, listing
from cortex.flows.operations.change import review as review_operation
from cortex.transforms.schemas import PROPOSED_BY_MODEL
from cortex.transforms.views.review import Item

KIND_HEADINGS = {
    "contradiction": "Contradictions",
    "stale": "Claims that the repository no longer agrees with",
    "merge": "Memories that say the same",
}
WEAK_SHOWN = 10


def show_review(request: ViewRequest) -> Page:
    """Show what a person may settle of the project in the query, else of the one that the brief is of."""
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
        "items": [{"id": item.item_id, **_as_dict(item)} for item in review.items],
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
