"""The graph around a memory, a file or a tag; and all pages as files that need no server."""

import re
from html import unescape

from cortex.explorer.server import export_pages
from cortex.flows.operations.edit import remember
from tests.browsing import PROJECT, words_of


def test_a_file_has_the_memories_that_name_it(browser, tmp_path):
    path = tmp_path / "gauges.py"
    path.write_text("LEVELS = 3\n", encoding="utf-8")
    context = browser.explorer.open_context()
    indexed = remember.index_code(context, path, "Reads the gauges.", project=PROJECT)
    nodes = browser.json("/graph?file=gauges.py")["nodes"]
    assert indexed.description_id in {node["memory_id"] for node in nodes}
    assert "Nothing is related" in words_of(browser.page("/graph?file=no-such-file"))


def test_an_export_is_whole_leads_nowhere_else_and_asks_for_nothing(reader, tmp_path):
    context = reader.explorer.open_context()
    written = export_pages(context, tmp_path / "pages")
    pages = list((tmp_path / "pages").rglob("*.html"))
    assert len(pages) == written.pages > 20 and not written.is_cut
    memories = context.open_catalogue().read("memories", ("memory_id",), {"status": ["active"]})
    assert {row["memory_id"] for row in memories} <= {page.stem for page in pages}
    for page in pages:
        html = page.read_text(encoding="utf-8")
        assert "<form" not in html and "<script" not in html and 'href="/' not in html
        for link in re.findall(r'(?:href|src)="([^"#]+)"', html):
            assert (page.parent / unescape(link)).is_file(), (page, link)


def test_an_export_lists_its_own_pages_and_shows_what_stands_beside_them(reader, tmp_path):
    export_pages(reader.explorer.open_context(), tmp_path / "pages", most=12)
    html = (tmp_path / "pages" / "search.html").read_text(encoding="utf-8")
    bar = html.split("</nav>")[0]
    assert ">Review<" in bar and ">SQL<" not in bar and "aria-disabled" not in bar
    assert '<details class="narrow" open>' in html  # no script opens it
