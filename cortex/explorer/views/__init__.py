"""The views by address; each is a function of a request that returns a page, and changes nothing."""

from collections.abc import Mapping

from cortex.explorer.page import Page, View
from cortex.explorer.views import brief, health, memories

_NAME = r"[A-Za-z0-9._-]+"
_MEMORY = r"/memory/(?P<memory>[0-9a-f]{4,64})"

VIEWS: Mapping[str, View] = {
    r"/": brief.show_brief,
    rf"/brief/(?P<project>{_NAME})": brief.show_brief,
    r"/search": memories.show_search,
    _MEMORY: memories.show_memory,
    rf"{_MEMORY}/edit": memories.ask_edit,
    rf"{_MEMORY}/forget": memories.ask_forget,
    rf"{_MEMORY}/supersede": memories.ask_supersede,
    rf"/session/(?P<session>{_NAME})": memories.show_session,
    r"/timeline": memories.show_timeline,
    r"/graph": memories.show_graph,
    r"/review": brief.show_review,
    r"/runs": health.show_runs,
    rf"/runs/(?P<run>{_NAME})": health.show_run,
    r"/costs": health.show_costs,
    r"/health": health.show_health,
    r"/sql": health.show_sql,
    r"/sql/rows\.(?P<format>csv|parquet)": health.download,
    r"/settings": health.show_settings,
}

# What the bar lists: address and name; a view below an address belongs to it.
NAVIGATION = (
    ("/", "Brief", ("/brief",)),
    ("/search", "Search", ("/search", "/memory")),
    ("/timeline", "Timeline", ("/timeline", "/session")),
    ("/graph", "Graph", ("/graph",)),
    ("/review", "Review", ("/review",)),
    ("/runs", "Runs", ("/runs",)),
    ("/costs", "Costs", ("/costs",)),
    ("/health", "Health", ("/health",)),
    ("/sql", "SQL", ("/sql",)),
    ("/settings", "Settings", ("/settings",)),
)

STATIC_TYPES: Mapping[str, str] = {
    "style.css": "text/css",
    "keys.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


def nothing_here() -> Page:
    """Return the page of an address that there is not."""
    data = {"problem": "There is no such page.", "next_step": "The bar lists the pages.", "error": {}}
    return Page("error.html", "Not here", data, {"code": ""}, 404)
