"""Each page says what the operation behind it says, as HTML and as JSON, and leads on."""

import pytest

from cortex.explorer.drawing import (
    ChartBar,
    ChartPoint,
    bar_chart,
    line_chart,
)
from cortex.explorer.views import NAVIGATION
from cortex.flows.operations.ask import recall
from tests.bench import NOW
from tests.browsing import words_of

PAGES = [address for address, _, _ in NAVIGATION]


@pytest.mark.first_is_quick
@pytest.mark.parametrize("address", PAGES)
def test_every_page_of_the_bar_has_a_heading_a_json_twin_and_one_current_entry(reader, address):
    html = reader.page(address)
    assert html.startswith("<!doctype html>") and html.count("<h1") == 1
    assert html.count('aria-current="page"') == 1
    assert isinstance(reader.json(address), dict)


def test_a_search_answers_as_recall_does_and_notes_nothing(reader):
    words = "why SQLite and not Postgres?"
    context = reader.explorer.open_context()
    matches = recall.search_only(context, words, all_projects=True, limit=100)
    data = reader.json(f"/search?q={words}")
    assert [row["memory_id"] for row in data["memories"]] == [match.id for match in matches[:25]]
    first, match = data["memories"][0], matches[0]
    assert match.why and first["why"] == match.why and first["nearby"]
    text = words_of(reader.page(f"/search?q={words}"))
    assert "Why:" in text and " ".join(first["nearby"][0]["statement"].split())[:60] in text
    assert "recall" not in {row["kind"] for row in context.open_store().journal.read().to_pylist()}


def test_a_filter_keeps_a_memory_that_stands_near_an_answer_which_it_leaves_out(reader):
    words = "why SQLite and not Postgres?"
    context = reader.explorer.open_context()
    matches = recall.search_only(context, words, all_projects=True, limit=100)
    near = [name for match in matches for name in match.memory_ids if name != match.id]
    types = {row["memory_id"]: row["memory_type"] for row in reader.json("/search")["memories"]}
    everything = reader.json(f"/search?q={words}")
    kept = {
        row["memory_id"]
        for kind in {types.get(name, "decision") for name in near}
        for row in reader.json(f"/search?q={words}&type={kind}")["memories"]
    }
    below = {each["id"] for row in everything["memories"] for each in row["nearby"]}
    assert near and below.isdisjoint(row["memory_id"] for row in everything["memories"])
    assert everything["total"] == len(matches) and kept


def test_facets_count_and_narrow(reader):
    data = reader.json("/search")
    facets = {facet["name"]: {v["value"]: v["count"] for v in facet["values"]} for facet in data["facets"]}
    assert sum(facets["type"].values()) == data["total"]
    kind, count = next(iter(facets["type"].items()))
    narrowed = reader.json(f"/search?type={kind}")
    assert narrowed["total"] == count and {row["memory_type"] for row in narrowed["memories"]} == {kind}
    branch, count = next(iter(facets["branch"].items()))
    of_branch = reader.json(f"/search?branch={branch}")
    assert 0 < of_branch["total"] <= count
    assert all(branch in {p["git_branch"] for p in row["evidence"]} for row in of_branch["memories"])


@pytest.mark.parametrize(
    ("query", "is_kept"),
    [
        ("since=2026-10-20", lambda row: row["updated_at"] >= "2026-10-20"),
        ("until=2026-10-10", lambda row: row["updated_at"][:10] <= "2026-10-10"),
        ("trust=user", lambda row: row["trust"] == "user"),
        ("month=2026-10", lambda row: row["updated_at"][:7] == "2026-10"),
    ],
    ids=["since", "until", "trust", "month"],
)
def test_each_filter_keeps_what_it_says(reader, query, is_kept):
    data = reader.json(f"/search?{query}")
    assert 0 < data["total"] < reader.json("/search")["total"]
    assert all(is_kept(row) for row in data["memories"])


@pytest.mark.parametrize(
    "query",
    [
        "type=idea",
        "status=gone",
        "since=lately",
        "month=2026-13",
        "month=9999-12-1",
        "page=0",
        "page=x",
        "page=" + "9" * 40,
        "page=１",
    ],
)
def test_a_value_that_there_is_not_is_a_page_that_says_so(reader, query):
    answer = reader.get(f"/search?{query}")
    assert answer.status_code == 400 and "CORTEX_E_USAGE" in answer.text


def test_pages_of_a_list_hold_each_row_once(reader):
    total, seen, number = reader.json("/search")["total"], [], 1
    while len(seen) < total:
        rows = reader.json(f"/search?page={number}")["memories"]
        assert rows and (number > 1 or len(rows) == min(25, total))
        seen += [row["memory_id"] for row in rows]
        number += 1
    assert len(seen) == len(set(seen)) == total
    assert ('rel="next"' in reader.page("/search")) == (total > 25)
    assert 'rel="next"' not in reader.page(f"/search?page={number - 1}")


def test_a_memory_shows_the_turns_that_it_rests_on(reader):
    row = next(r for r in reader.json("/search?type=decision")["memories"] if r["evidence"])
    data = reader.json(f"/memory/{row['memory_id'][:8]}")
    cited = [turn for place in data["places"] for turn in place["turns"] if turn["is_cited"]]
    assert data["memory"]["memory_id"] == row["memory_id"] and cited
    text = words_of(reader.page(f"/memory/{row['memory_id']}"))
    assert "the memory rests on this" in text and row["evidence"][0]["session_id"][:8] in text


def test_a_session_leads_to_the_memories_that_rest_on_it(reader):
    row = next(r for r in reader.json("/search")["memories"] if r["evidence"])
    data = reader.json(f"/session/{row['evidence'][0]['session_id']}")
    assert row["memory_id"] in {memory["memory_id"] for memory in data["memories"]}


@pytest.mark.parametrize("address", ["/memory/0000ffff", "/session/nonsense", "/brief/nowhere", "/nothing"])
def test_what_there_is_not_is_a_page_with_the_next_step(reader, address):
    answer = reader.get(address)
    assert answer.status_code == 404 and "<h1>" in answer.text


def test_a_chart_has_a_name_and_no_colour_of_its_own():
    points = [ChartPoint(NOW.replace(day=day), day / 30) for day in range(1, 20)]
    for image in (line_chart(points, "a & b"), bar_chart([ChartBar("<x>", 3), ChartBar("y", 40)], "a & b")):
        assert image.startswith("<svg") and 'aria-label="a &amp; b"' in image
        assert "style=" not in image and "fill=" not in image and "<x>" not in image
    assert line_chart(points[:1], "one") == bar_chart([], "none") == ""
