"""The views by address; each is a function of a question that returns a page, and changes nothing."""

from collections.abc import Mapping

from cortex.explorer.page import Page, View
from cortex.explorer.views import brief, memory, search, session

_NAME = r"[A-Za-z0-9._-]+"
_MEMORY = r"/memory/(?P<memory>[0-9a-f]{4,64})"

VIEWS: Mapping[str, View] = {
    r"/": brief.show_brief,
    rf"/brief/(?P<project>{_NAME})": brief.show_brief,
    r"/search": search.show_search,
    _MEMORY: memory.show_memory,
    rf"{_MEMORY}/edit": memory.ask_edit,
    rf"{_MEMORY}/forget": memory.ask_forget,
    rf"{_MEMORY}/supersede": memory.ask_supersede,
    rf"/session/(?P<session>{_NAME})": session.show_session,
}

# What the bar lists: address and name; a view below an address belongs to it.
NAVIGATION = (
    ("/", "Brief", ("/brief",)),
    ("/search", "Search", ("/search", "/memory")),
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
