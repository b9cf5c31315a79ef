"""The views on memories: one of them, one session, a search, the graph and the timeline."""

from collections.abc import Sequence

from cortex.explorer.actions import FORGET_AGREED, going
from cortex.explorer.drawing import ChartBar, ChartPoint, bar_chart, line_chart, picture
from cortex.explorer.page import PAGE_ROWS, Page, ViewRequest, pager
from cortex.flows.operations.ask import browse, listing, memory_details
from cortex.flows.operations.ask.browse import MAX_MATCHES, Facet, Filters, TimelinePeriod
from cortex.flows.operations.ask.listing import Details
from cortex.flows.operations.ask.memory_details import MAX_GRAPH_STEPS, GraphAround
from cortex.flows.operations.edit import forget
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.schemas import Row
from cortex.transforms.words.ages import outcome_lines
from cortex.transforms.words.sentences import excerpt

# -- One memory with all that is known of it, and the pages that ask before it is changed.

# Memories offered to take another one's place.
OFFERED = 10
# The table next to the curve shows every sixth of its points.
TABLE_STEP = 6
# Between two loads of a page that follows a session: what a hook notes is read within half a minute.
LIVE_SECONDS = 15


def show_memory(request: ViewRequest) -> Page:
    """Show a memory: statement, reasons, evidence with the turns around it, relations, history."""
    shown = _memory(request)
    history = memory_details.history_of(request.context, shown.row)
    doubt = listing.doubt_about(request.context, shown.row)
    related = memory_details.relations_of(request.context, shown.row["memory_id"])
    data = {
        "memory": shown.row,
        "doubt": doubt.reason if doubt else None,
        "project": _label(shown),
        "places": history.places,
        "places_total": len(shown.row["evidence"]),
        "related": related,
        "use": listing.profit_and_loss(shown.row, shown.uses, related),
        "outcomes": outcome_lines(shown.outcomes),
        "replaced": history.replaced,
        "replaced_by": history.replaced_by,
        "changes": history.changes,
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


# -- One session: its result, and the memories taken from it.


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


# -- Search: memories by a question or without one, narrowed by facets, a page at a time.

_NAMES = {"q": "question"}
_FIELDS = ("q", "project", "type", "status", "trust", "since", "until", "month", "file", "branch")


def show_search(request: ViewRequest) -> Page:
    """Show the memories that pass the filters in the query: a question's answers, else the newest first."""
    filters = Filters(**{_NAMES.get(name, name): request.word(name) for name in _FIELDS})
    offset = (request.number("page", 1) - 1) * PAGE_ROWS
    browsed = browse.browse(request.context, filters, offset=offset, limit=PAGE_ROWS)
    data = {
        "filters": dict(filters.chosen),
        "total": browsed.total,
        "memories": [{**row, "project": browsed.labels.get(row["project_id"])} for row in browsed.rows],
        "facets": browsed.facets,
    }
    extra = {
        "words": filters.question,
        "period": {name: request.word(name) for name in ("since", "until", "file")},
        "facet_links": {facet.name: _links(request, facet) for facet in browsed.facets},
        "chosen": [
            (name, request.word(name), request.link(**{name: "", "page": ""})) for name in _set(request)
        ],
        "pager": pager(request, browsed.total, len(browsed.rows)),
        "is_cut": bool(filters.question) and browsed.total >= MAX_MATCHES,
        "most": MAX_MATCHES,
        "labels": browsed.labels,
    }
    return Page("search.html", "Search", data, extra)


def _set(request: ViewRequest) -> list[str]:
    return [name for name in _FIELDS if name != "q" and request.word(name)]


def _links(request: ViewRequest, facet: Facet) -> dict[str, str]:
    """Return value → the address that chooses it, or takes it back where it is chosen."""
    return {
        value.value: request.link(**{facet.name: "" if value.is_chosen else value.value, "page": ""})
        for value in facet.values
    }


# -- The graph: what stands around a memory, a file or a tag, as a picture and as a list.

# Where nothing is named, the page begins with these.
FIRST_OFFERED = 12


def show_graph(request: ViewRequest) -> Page:
    """Show the neighbourhood of the memory, the file or the tag in the query; without one, where to begin."""
    context, memory = request.context, request.word("memory")
    file, tag = request.word("file"), request.word("tag")
    steps = request.number("steps", 2, high=MAX_GRAPH_STEPS)
    around = None
    if memory:
        memory = listing.show(context, memory, with_others=False).row["memory_id"]
        around = memory_details.around_memory(context, memory, steps=steps)
    elif file or tag:
        around = memory_details.around_word(context, file=file, tag=tag)
    nodes = [] if around is None else [node for node in around.nodes if node.distance]
    middle = next((n.text for n in around.nodes if not n.distance), around.middle) if around else ""
    data = {
        "middle": middle,
        "nodes": nodes,
        "edges": around.edges if around else [],
        "is_cut": bool(around and around.is_cut),
    }
    extra = {
        "picture": picture(around) if around else "",
        "memory": memory,
        "file": file,
        "tag": tag,
        "steps": steps,
        "step_links": [(n, request.link(steps=n)) for n in range(1, MAX_GRAPH_STEPS + 1)] if memory else [],
        "relations": _relations(around) if around else {},
        "begin": [] if around else browse.browse(context, Filters(), limit=FIRST_OFFERED).rows,
    }
    return Page("graph.html", "Graph", data, extra)


def _relations(around: GraphAround) -> dict[str, str]:
    """Return by memory how it is related to the node that it was reached by."""
    kinds = {frozenset((edge.source, edge.target)): edge for edge in around.edges}
    relations = {}
    for node in around.nodes:
        edge = kinds.get(frozenset((node.memory_id, node.parent)))
        relations[node.memory_id] = f"{edge.edge_type.replace('_', ' ')} {edge.strength:.2f}" if edge else ""
    return relations


# -- The timeline: sessions and decisions as a strip that leads from months to days, and the sessions in it.


def show_timeline(request: ViewRequest) -> Page:
    """Show the period and the project in the query, by default all time and all projects."""
    period, project = request.word("in"), request.word("project")
    offset = (request.number("page", 1) - 1) * PAGE_ROWS
    timeline = browse.read_timeline(
        request.context, project=project, period=period, offset=offset, limit=PAGE_ROWS
    )
    data = {
        "in": period,
        "project": project,
        "total": timeline.total,
        "strip": timeline.strip,
        "sessions": [{**row, "label": timeline.labels.get(row["project_id"])} for row in timeline.sessions],
    }
    extra = {
        "sessions_chart": bar_chart(
            [_bar(request, each, each.sessions) for each in timeline.strip], "Sessions over time"
        ),
        "decisions_chart": bar_chart(
            [_bar(request, each, each.decisions) for each in timeline.strip], "Decisions over time"
        ),
        "strip_rows": [(each, _zoom(request, each)) for each in timeline.strip if each.sessions],
        "trail": _trail(request, period),
        "projects": listing.list_known_projects(request.context),
        "pager": pager(request, timeline.total, len(timeline.sessions)),
        "chosen_project": project,
        "period": period,
        "refresh_seconds": LIVE_SECONDS if request.word("live") else 0,
        "live_link": request.link(live="" if request.word("live") else "1", page=""),
    }
    return Page("timeline.html", "Timeline", data, extra)


def _bar(request: ViewRequest, bar: TimelinePeriod, value: int) -> ChartBar:
    short = bar.period[-2:] if len(bar.period) == 10 else bar.period
    return ChartBar(bar.period, value, _zoom(request, bar), short)


def _zoom(request: ViewRequest, bar: TimelinePeriod) -> str:
    return request.link(**{"in": bar.period, "page": ""})


def _trail(request: ViewRequest, period: str) -> Sequence[tuple[str, str]]:
    """Return the periods that contain the one shown, starting with all time: name and address."""
    parts = [period[:length] for length in (4, 7, 10) if len(period) >= length]
    links = [("All time", request.link(**{"in": "", "page": ""}))]
    return [*links, *((part, request.link(**{"in": part, "page": ""})) for part in parts)]
