"""Claude Code's own notes are read from their folders into the project they belong to, and not believed."""

import os
from pathlib import Path

import pytest

from cortex.flows.memory import Memory
from cortex.storage.staging.assistant_folders import MAX_NOTE_BYTES
from cortex.transforms.errors import NotFound
from tests.bench import NOW
from tests.store.flows.test_assistant_notes import INDEX, NOTE
from tests.transcripts import KELP, decisions


def notes_of(root: Path, cwd: str, **files: str) -> Path:
    folder = root / cwd.replace("/", "-") / "memory"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text)
    return folder


@pytest.fixture
def memory(bench) -> Memory:
    decisions().write(bench.projects)
    bench.begin()
    return Memory.of(bench.at(NOW))


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


def test_secrets_and_private_passages_of_notes_are_not_kept(memory, bench, tmp_path):
    key = "sk-ant-api03-" + "Ab3dE5fG7h" * 9 + "-AAAAAAAA"
    folder = notes_of(tmp_path / "p", KELP, a=f"The key of the harbour is {key} <private>hidden</private>.")
    assert memory.import_memories(folder).imported == 1
    stored = repr(bench.store.journal.read().to_pylist())
    assert key not in stored and "hidden" not in stored


def test_links_pipes_and_giants_among_notes_are_passed_over(memory, tmp_path):
    folder = notes_of(tmp_path / "p", KELP, a="Nets are blue.", giant="x" * (MAX_NOTE_BYTES + 1))
    os.mkfifo(folder / "pipe.md")
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "folder.md").mkdir()
    assert memory.import_memories(folder).imported == 1


def test_a_folder_without_notes_says_where_they_are(memory, tmp_path):
    with pytest.raises(NotFound, match="no notes"):
        memory.import_memories(tmp_path)
