"""The graph around a memory, a file or a tag; and all pages as files that need no server."""

import pytest

from cortex.explorer.server import export_pages, page_file_of
from cortex.transforms.errors import UsageError


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


@pytest.mark.parametrize("query", ["memory=ffff0000", "memory=xx", "steps=9&memory=abcd"])
def test_what_cannot_be_drawn_is_said(reader, query):
    assert reader.get(f"/graph?{query}").status_code in (400, 404)


def test_an_export_overwrites_nothing(reader, tmp_path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError):
        export_pages(reader.explorer.open_context(), tmp_path)


def test_an_export_stays_within_its_limit_and_its_folder(reader, tmp_path):
    assert export_pages(reader.explorer.open_context(), tmp_path / "few", most=5).is_cut
    assert ".." not in page_file_of("/brief/..%2f..%2fx") and page_file_of("/brief/../../x").count("..") == 0
