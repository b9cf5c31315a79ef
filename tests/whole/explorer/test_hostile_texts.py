"""No text of a transcript, a repository, a model or a setting becomes a part of a page."""

import re
import shutil
from html.parser import HTMLParser

import pytest

from cortex.explorer.views import NAVIGATION
from tests.browsing import Browser, explorer_of
from tests.planted import HOSTILE, MARK, plant

# Everything that the explorer's own templates and pictures are made of.
ELEMENT_NAMES = """
    html head meta title link script body a header nav ul ol li form label input img main footer div span kbd
    h1 h2 h3 p details summary aside section article dl dt dd small time code pre strong table thead tbody tr
    th td button select option textarea svg g path rect circle line text br
"""
ELEMENTS = frozenset(ELEMENT_NAMES.split())
ACTING = ("style", "srcdoc", "autofocus", "http-equiv")
ADDRESSES = ("href", "src", "action", "formaction")
ASKED = {
    "/search": ("q", "project", "type", "file", "branch", "month", "since", "page"),
    "/graph": ("memory", "file", "tag", "steps"),
    "/timeline": ("in", "project"),
    "/review": ("project",),
    "/settings": ("project",),
    "/sql": ("q",),
    "/": ("as_of", "done"),
}


class Parts(HTMLParser):
    """Collects what a page is made of: elements, and attributes that act."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.acting: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append(tag)
        for name, value in attrs:
            leads_out = name in ADDRESSES and not (value or "").startswith(("/", "#"))
            if name.startswith("on") or name in ACTING or leads_out:
                self.acting.append((name, value or ""))


@pytest.fixture(scope="module")
def planted_reader(sample_store, tmp_path_factory):
    """Return a browser at a store with the hostile text in every field."""
    home = tmp_path_factory.mktemp("planted") / "home"
    shutil.copytree(sample_store, home)
    explorer = explorer_of(home, home.parent)
    plant(explorer.open_context())
    return Browser(explorer).enter()


def planted_pages(browser: Browser) -> list[str]:
    """Return an address of each kind of page, about what the text was planted in."""
    catalogue = browser.explorer.open_context().open_catalogue()
    edge = catalogue.read("edges", ("source_id",), limit=1)[0]["source_id"]
    cited = next(row for row in catalogue.read("memories") if row["evidence"])
    memories = [f"/memory/{name}" for name in (edge, cited["memory_id"])]
    run = browser.json("/runs")["runs"][0]["name"]
    return [
        *(address for address, _, _ in NAVIGATION),
        *memories,
        *(f"{memories[0]}/{way}" for way in ("edit", "forget", "supersede")),
        f"/session/{cited['evidence'][0]['session_id']}",
        f"/graph?memory={edge}&steps=3",
        f"/graph?file={MARK}",
        f"/search?q={MARK}&file={MARK}",
        f"/settings?project={cited['project_id']}",
        f"/runs/{run}",
        "/sql?q=select * from memories",
        f"/sql?q=select '{MARK}<script>' as \"{MARK}<img src=x onerror=hit()>\"",
    ]


def test_a_hostile_text_stays_a_text_on_every_page(planted_reader):
    shown = set()
    for address in planted_pages(planted_reader):
        answer = planted_reader.get(address)
        assert answer.status_code == 200, (address, answer.text[-400:])
        parts = Parts()
        parts.feed(answer.text)
        assert set(parts.elements) <= ELEMENTS and parts.acting == [], address
        assert parts.elements.count("script") == 1, address
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", answer.text), address
        if MARK in answer.text:
            shown.add(address.partition("?")[0].split("/")[1])
    assert shown >= {
        "",
        "search",
        "memory",
        "session",
        "timeline",
        "graph",
        "runs",
        "costs",
        "sql",
        "settings",
    }


@pytest.mark.parametrize("path", ASKED)
def test_a_hostile_address_is_a_page_that_says_no(planted_reader, path):
    for name in ASKED[path]:
        answer = planted_reader.client.get(path, params={name: HOSTILE})
        assert answer.status_code in (200, 400, 404), name
        parts = Parts()
        parts.feed(answer.text)
        assert set(parts.elements) <= ELEMENTS and parts.acting == [], name


def test_a_hostile_text_in_json_is_json(planted_reader):
    for address in planted_pages(planted_reader):
        path, _, query = address.partition("?")
        answer = planted_reader.get(f"{path}.json?{query}")
        assert answer.headers["content-type"].startswith("application/json") and answer.json() is not None
        assert "\u202e" not in answer.text and "\x1b" not in answer.text
