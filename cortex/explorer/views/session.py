"""One session: its result, and the memories taken from it."""

from cortex.explorer.page import Page, ViewRequest
from cortex.flows.operations.ask import listing
from cortex.transforms.errors import NotFound
from cortex.transforms.words.sentences import excerpt


def show_session(request: ViewRequest) -> Page:
    """Show a session."""
    shown = listing.show(request.context, request.parts["session"])
    if shown.kind != "session":
        raise NotFound("this is the id of a memory.", "Look at it under Search.")
    row = shown.row
    data = {
        "session": row,
        "project": shown.labels.get(row["project_id"], row["project_id"]),
        "memories": shown.others,
    }
    return Page("session.html", excerpt(row["goal"] or row["first_prompt"] or "Session", 80), data)
