"""Each page says what the operation behind it says, as HTML and as JSON, and leads on."""

import re

import pytest

from cortex.flows.operations.ask import brief as brief_operation
from cortex.flows.operations.edit import remember
from tests.browsing import PROJECT
from tests.store.explorer.test_pages import PAGES


def test_every_link_of_a_page_leads_somewhere(reader):
    pages = {}  # by link: many are on every page, and each is followed once
    for address in PAGES:
        for link in sorted(set(re.findall(r'href="(/[^"#]*)"', reader.page(address))))[:40]:
            pages.setdefault(link, address)
    wrong = {
        f"{link} on {page}": status
        for link, page in pages.items()
        if (status := reader.get(link.replace("&amp;", "&")).status_code) != 200
    }
    assert wrong == {} and len(pages) > len(PAGES)


def test_the_brief_has_each_line_with_its_memory_and_its_reason(reader):
    context = reader.explorer.open_context()
    [text] = [brief.text for brief in brief_operation.read_briefs(context, PROJECT) if brief.text]
    data = reader.json("/")
    assert data["text"] == text and data["project"] == PROJECT
    lines = [line for section in data["sections"] for line in section["lines"]]
    shown = reader.page("/")
    for line in lines:
        assert line["reason"] and line["text"] in text
        assert line["memory_id"] is None or f'href="/memory/{line["memory_id"]}"' in shown
    assert any(line["memory_id"] for line in lines)


def test_the_brief_of_an_earlier_day_knows_only_what_was_known_then(reader):
    now, earlier = reader.json("/"), reader.json("/?as_of=2026-10-05")
    assert earlier["as_of"] == "2026-10-05" and earlier["candidates"] < now["candidates"]


def test_a_part_of_a_path_finds_what_names_the_file(browser, tmp_path):
    path = tmp_path / "gauges.py"
    path.write_text("LEVELS = 3\n", encoding="utf-8")
    context = browser.explorer.open_context()
    description = "Reads the gauges of each berth."
    indexed = remember.index_code(context, path, description, project=PROJECT)
    rows = browser.json("/search?file=GAUGES.py&type=code_description")["memories"]
    assert [row["memory_id"] for row in rows] == [indexed.description_id]
    assert browser.json("/search?file=no-such-file")["total"] == 0


def test_how_sure_it_is_over_time_ends_with_today(reader):
    for row in reader.json("/search?type=gotcha")["memories"][:5]:
        data = reader.json(f"/memory/{row['memory_id']}")
        curve = [point["confidence"] for point in data["confidence"]]
        assert curve[-1] == pytest.approx(data["memory"]["confidence"], abs=0.01)
        assert all(0 <= value <= 1 for value in curve)
