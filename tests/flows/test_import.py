"""Export and import through whole runs: what leaves one store enters another once, with its trust."""

import json

import pytest

from cortex.commands import keeping
from cortex.commands import memories as commands
from cortex.commands.terminal import clock_at
from cortex.errors import NotFound
from tests.flows.conftest import NOW, WordEmbedder
from tests.transcripts import decisions


@pytest.fixture(autouse=True)
def _here_is_kelp(monkeypatch, tmp_path):
    monkeypatch.setattr(commands, "embedder_of", lambda settings: WordEmbedder())
    (tmp_path / "kelp").mkdir()
    monkeypatch.chdir(tmp_path / "kelp")
    with clock_at(NOW):
        yield


def test_an_export_fills_another_store_and_a_second_import_adds_nothing(bench, other, tmp_path, monkeypatch):
    decisions().write(bench.projects)
    bench.backfill()
    keeping.export(tmp_path / "all.json", form="json", project=None, as_json=True)
    monkeypatch.setenv("CORTEX_HOME", str(other.home))
    keeping.import_file(tmp_path / "all.json", project=None, as_json=True)
    assert other.texts() == bench.texts()
    assert {m["source_type"] for m in other.memories()} == {"import"}
    assert [m["trust"] for m in other.memories()] == [m["trust"] for m in bench.memories()]
    before = other.store.journal.read().num_rows
    keeping.import_file(tmp_path / "all.json", project=None, as_json=True)
    assert other.store.journal.read().num_rows == before


def test_what_comes_from_elsewhere_is_external_and_in_no_brief(bench, tmp_path):
    (tmp_path / "notes.md").write_text("- The harbour gauge is read by hand on Sundays.\n")
    keeping.import_file(tmp_path / "notes.md", project=None, as_json=True)
    [memory] = bench.memories()
    assert (memory["trust"], memory["source_type"]) == ("external", "import")
    assert "harbour" not in bench.store.published.brief(memory["project_id"])


def test_a_secret_in_a_file_is_not_imported(bench, tmp_path):
    (tmp_path / "notes.md").write_text("- The token is ghp_" + "a1B2" * 9 + "\n")
    keeping.import_file(tmp_path / "notes.md", project=None, as_json=True)
    assert "ghp_" not in json.dumps(bench.texts())


def test_an_imported_memory_can_be_forgotten(bench, tmp_path):
    (tmp_path / "notes.md").write_text("- The harbour gauge is read by hand on Sundays.\n")
    keeping.import_file(tmp_path / "notes.md", project=None, as_json=True)
    commands.forget(bench.memories()[0]["memory_id"], project=None, yes=True, as_json=True)
    assert bench.texts() == []


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFound, match="none"):
        keeping.import_file(tmp_path / "none.json", project=None, as_json=True)
