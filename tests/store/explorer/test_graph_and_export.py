"""The graph around a memory, a file or a tag; and all pages as files that need no server."""

import re
from html import unescape

import pytest

from cortex.explorer.export import export_pages, page_file_of
from cortex.flows import operations
from cortex.transforms.errors import UsageError
from tests.browsing import PROJECT, words_of


def related(reader) -> str:
    """Return a memory of the sample store that has relations."""
    rows = (
        reader.explorer.open_context()
        .open_catalogue()
        .read("edges", ("source_id",), order="edge_id", limit=1)
    )
    return rows[0]["source_id"]


def test_a_neighbourhood_has_each_memory_once_and_more_with_more_steps(reader):
    name, sizes = related(reader), []
    for steps in (1, 2, 3):
        data = reader.json(f"/graph?memory={name}&steps={steps}")
        ids = [node["memory_id"] for node in data["nodes"]]
        assert len(ids) == len(set(ids)) and name not in ids
        assert all(1 <= node["distance"] <= steps for node in data["nodes"])
        assert {edge[end] for edge in data["edges"] for end in ("source", "target")} <= {name, *ids}
        sizes.append(len(ids))
    assert 0 < sizes[0] <= sizes[1] <= sizes[2] <= 39


def test_the_picture_leads_from_each_memory_to_its_own_and_the_list_holds_them_all(reader):
    name = related(reader)
    html = reader.page(f"/graph?memory={name}")
    for node in reader.json(f"/graph?memory={name}")["nodes"]:
        assert f'href="/graph?memory={node["memory_id"]}"' in html
        assert f'href="/memory/{node["memory_id"]}"' in html
    assert "style=" not in html


@pytest.mark.slow
def test_a_file_has_the_memories_that_name_it(browser, tmp_path):
    path = tmp_path / "gauges.py"
    path.write_text("LEVELS = 3\n", encoding="utf-8")
    context = browser.explorer.open_context()
    indexed = operations.index_code.index_code(context, path, "Reads the gauges.", project=PROJECT)
    nodes = browser.json("/graph?file=gauges.py")["nodes"]
    assert indexed.description_id in {node["memory_id"] for node in nodes}
    assert "Nothing is related" in words_of(browser.page("/graph?file=no-such-file"))


@pytest.mark.parametrize("query", ["memory=ffff0000", "memory=xx", "steps=9&memory=abcd"])
def test_what_cannot_be_drawn_is_said(reader, query):
    assert reader.get(f"/graph?{query}").status_code in (400, 404)


@pytest.mark.slow
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


def test_an_export_overwrites_nothing(reader, tmp_path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError):
        export_pages(reader.explorer.open_context(), tmp_path)


def test_an_export_stays_within_its_limit_and_its_folder(reader, tmp_path):
    assert export_pages(reader.explorer.open_context(), tmp_path / "few", most=5).is_cut
    assert ".." not in page_file_of("/brief/..%2f..%2fx") and page_file_of("/brief/../../x").count("..") == 0
