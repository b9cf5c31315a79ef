"""Claude Code's own notes are read from their folders into the project they belong to, and not believed."""

import os
from pathlib import Path

import pytest

from cortex.flows.memory import Memory
from cortex.storage.assistant_notes import MAX_NOTE_BYTES
from cortex.transforms.errors import NotFound
from cortex.transforms.files.assistant_notes import LONGEST_NOTE_CHARS, facts_in, note_in
from tests.bench import NOW
from tests.transcripts import KELP, decisions

NOTE = """---
name: nets-are-blue
description: Which nets are used
metadata:
  type: feedback
---
Nets are blue, since red ones frighten the fish. See [[harbour]].
"""
INDEX = "# Memory\n\n- [Nets](nets.md) — which nets are used\n- Boats leave at seven.\n"


def notes_of(root: Path, cwd: str, **files: str) -> Path:
    folder = root / cwd.replace("/", "-") / "memory"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text)
    return folder


@pytest.fixture
def memory(bench) -> Memory:
    decisions().write(bench.projects)
    bench.backfill(now=NOW)
    return Memory.of(bench.at(NOW))


def test_a_note_is_its_words_with_the_type_that_its_head_names():
    fact = note_in(NOTE)
    assert fact is not None
    assert fact.text == "Nets are blue, since red ones frighten the fish. See harbour."
    assert (fact.memory_type, fact.trust) == ("pattern", "external")


@pytest.mark.parametrize("text", ["", "---\n---\n", "---\nname: x\n---\n   \n"])
def test_a_note_without_words_is_none(text):
    assert note_in(text) is None
    assert facts_in({"a.md": text}) == ([], 1)


def test_a_note_without_a_head_and_one_whose_head_never_ends_are_read_whole():
    assert note_in("Nets are blue.").text == "Nets are blue."
    assert note_in("---\nname: x\nNets are blue.").text.endswith("Nets are blue.")
    assert len(note_in("Nets.\n" * 5_000).text) <= LONGEST_NOTE_CHARS


def test_of_the_index_only_what_points_to_no_file_is_a_fact():
    facts, _ = facts_in({"MEMORY.md": INDEX, "nets.md": NOTE})
    assert [each.text.split(".")[0] for each in facts] == [
        "Boats leave at seven",
        "Nets are blue, since red ones frighten the fish",
    ]


@pytest.mark.slow
def test_notes_go_to_the_project_of_their_transcripts_though_its_folder_is_gone(memory, bench, tmp_path):
    root = tmp_path / "projects-of-the-client"
    notes_of(root, KELP, MEMORY=INDEX, nets=NOTE)
    notes_of(root, "/home/dev/unknown", boats="Boats are green.")
    result = memory.import_memories(root)
    assert (result.imported, result.homeless, result.is_own) == (2, 1, False)
    rows = [row for row in bench.memories() if row["source_type"] == "import"]
    assert {row["trust"] for row in rows} == {"external"} and len(rows) == 2
    [scope] = [name for name in bench.store.tables.scopes() if name != "global"]
    assert "Nets are blue" not in bench.store.published.brief(scope)
    assert memory.import_memories(root).known == 2


@pytest.mark.slow
def test_secrets_and_private_passages_of_notes_are_not_kept(memory, bench, tmp_path):
    key = "sk-ant-api03-" + "Ab3dE5fG7h" * 9 + "-AAAAAAAA"
    folder = notes_of(tmp_path / "p", KELP, a=f"The key of the harbour is {key} <private>hidden</private>.")
    assert memory.import_memories(folder).imported == 1
    stored = repr(bench.store.journal.read().to_pylist())
    assert key not in stored and "hidden" not in stored


@pytest.mark.slow
def test_links_pipes_and_giants_among_notes_are_passed_over(memory, tmp_path):
    folder = notes_of(tmp_path / "p", KELP, a="Nets are blue.", giant="x" * (MAX_NOTE_BYTES + 1))
    os.mkfifo(folder / "pipe.md")
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "folder.md").mkdir()
    assert memory.import_memories(folder).imported == 1


@pytest.mark.slow
def test_a_folder_without_notes_says_where_they_are(memory, tmp_path):
    with pytest.raises(NotFound, match="no notes"):
        memory.import_memories(tmp_path)
