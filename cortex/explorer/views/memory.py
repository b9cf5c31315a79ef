"""One memory with all that is known of it, and the pages that ask before it is changed."""

from cortex.explorer.actions import FORGET_AGREED, going
from cortex.explorer.charts import ChartPoint, line_chart
from cortex.explorer.page import Page, ViewRequest
from cortex.flows.operations.ask import browse, graph, listing
from cortex.flows.operations.ask import history as history_operation
from cortex.flows.operations.ask.browse import Filters
from cortex.flows.operations.ask.listing import Details
from cortex.flows.operations.change import forget
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.schemas import Row
from cortex.transforms.words.sentences import excerpt

# Memories offered to take another one's place.
OFFERED = 10
# The table next to the curve shows every sixth of its points.
TABLE_STEP = 6


def show_memory(request: ViewRequest) -> Page:
    """Show a memory: statement, reasons, evidence with the turns around it, relations, history."""
    shown = _memory(request)
    history = history_operation.history_of(request.context, shown.row)
    data = {
        "memory": shown.row,
        "project": _label(shown),
        "places": history.places,
        "places_total": len(shown.row["evidence"]),
        "related": graph.relations_of(request.context, shown.row["memory_id"]),
        "replaced": history.replaced,
        "replaced_by": history.replaced_by,
        "deeds": history.deeds,
        "recalled_at": history.recalled_at,
        "confidence": [{"at": at, "confidence": round(value, 4)} for at, value in history.curve],
    }
    points = [ChartPoint(at, value) for at, value in history.curve]
    extra = {
        "curve": [*history.curve[::TABLE_STEP], *history.curve[-1:]],
        "chart": line_chart(points, "Confidence over time, from 0 to 1"),
    }
    return Page("memory.html", excerpt(shown.row["text"], 80), data, extra)


def ask_edit(request: ViewRequest) -> Page:
    """Ask for other words."""
    shown = _memory(request)
    return Page("edit.html", "Change the words", {"memory": shown.row, "project": _label(shown)})


def ask_forget(request: ViewRequest) -> Page:
    """Show what forgetting the memory would erase, and ask."""
    plan = forget.plan_forget(request.context, request.parts["memory"])
    data = {"memory": plan.memory, "memory_id": plan.memory_id, "others": plan.others}
    extra = {"agreed": FORGET_AGREED, "going": going(plan)}
    return Page("forget.html", "Forget", data, extra)


def ask_supersede(request: ViewRequest) -> Page:
    """Offer memories of its project that may take a memory's place; with one named, show both and ask."""
    shown = _memory(request)
    new = request.word("new")
    other = listing.show(request.context, new, with_others=False) if new else None
    if other is not None and other.kind != "memory":
        raise UsageError(f"'{new}' is a session.", "Choose a memory of the list.")
    words = request.word("q")
    offers = [] if other else _offers(request, shown.row, words)
    data = {
        "memory": shown.row,
        "project": _label(shown),
        "new": other.row if other else None,
        "offers": offers,
    }
    return Page("supersede.html", "Replace by another", data, {"words": words})


def _offers(request: ViewRequest, memory: Row, words: str) -> list[Row]:
    filters = Filters(question=words or memory["text"][:400], project=memory["project_id"])
    rows = browse.browse(request.context, filters, limit=OFFERED * 3).rows
    is_offered = [row for row in rows if row["kind"] == "memory" and row["memory_id"] != memory["memory_id"]]
    return [row for row in is_offered if row["project_id"] == memory["project_id"]][:OFFERED]


def _memory(request: ViewRequest) -> Details:
    shown = listing.show(request.context, request.parts["memory"], with_others=False)
    if shown.kind != "memory":
        raise NotFound("this is the id of a session.", f"Look at /session/{shown.row['session_id']}")
    return shown


def _label(shown: Details) -> str:
    return shown.labels.get(shown.row["project_id"], shown.row["project_id"])
