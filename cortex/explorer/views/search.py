"""Search: memories by a question or without one, narrowed by facets, a page at a time."""

from cortex.explorer.page import PAGE_ROWS, Page, ViewRequest, pager
from cortex.flows.operations.ask import browse
from cortex.flows.operations.ask.browse import MOST_MATCHES, Filters
from cortex.flows.recalling.facets import Facet

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
        "is_cut": bool(filters.question) and browsed.total >= MOST_MATCHES,
        "most": MOST_MATCHES,
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
