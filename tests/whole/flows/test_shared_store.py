"""Two machines on one store elsewhere, in whole runs: what either reads, forgets and seals holds for both."""

from pathlib import Path

import pytest

from cortex.flows.operations.ask import recall
from cortex.flows.operations.edit import forget
from cortex.flows.operations.maintain.config import encrypt
from cortex.storage.filesystem.place import begin_copy
from cortex.transforms.errors import KeyUnavailable
from tests.bench import Bench, contents, difference
from tests.store.storage.test_remote_index import index_of
from tests.transcripts import decisions

CANARY = "whole millimetres"


@pytest.fixture
def benches(tmp_path) -> tuple[Bench, Bench]:
    both = [Bench(tmp_path / name / "home", tmp_path / name / "projects") for name in ("one", "two")]
    for bench in both:
        begin_copy(bench.home, (tmp_path / "bucket").as_uri())
    return both[0], both[1]


def answers(bench: Bench, question: str) -> list[str]:
    return [each.text for each in recall.recall(bench.context, question, all_projects=True).matches]


def bytes_below(folder: Path, word: str) -> list[str]:
    """Return the files below a folder that hold a word in clear."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files if word.encode() in path.read_bytes())


def test_what_one_machine_read_the_other_answers_from_goes_on_from_and_forgets(benches, tmp_path):
    one, two = benches
    decisions("s1").write(one.projects)
    one.backfill()
    assert any(CANARY in text for text in answers(two, "Are levels whole millimetres?"))
    two.store.check_projections()
    decisions("s2").write(two.projects)
    two.backfill()
    one.context.open_store()
    assert difference(contents(one.home), contents(two.home)) == {} and index_of(one.home) == index_of(
        two.home
    )
    assert not bytes_below(tmp_path / "bucket", "postings"), "the search index stays here"
    for row in [row for row in two.memories() if CANARY in row["text"]]:
        planned = forget.plan_forget(two.context, row["memory_id"])
        forget.forget(two.context, planned)
    assert not any(CANARY in text for text in answers(one, "Are levels whole millimetres?"))
    assert index_of(one.home) == index_of(two.home)
    assert bytes_below(tmp_path / "bucket", CANARY) == []
    assert bytes_below(one.home / "tables", CANARY) == bytes_below(two.home / "tables", CANARY) == []


def test_sealed_on_one_machine_it_is_sealed_in_between_and_read_on_the_other(benches, tmp_path, monkeypatch):
    one, two = benches
    decisions("s1").write(one.projects)
    one.backfill()
    encrypt(one.context, tmp_path / "key")
    assert bytes_below(tmp_path / "bucket", CANARY) == []
    with pytest.raises(KeyUnavailable):
        answers(two, "Are levels whole millimetres?")
    monkeypatch.setenv("CORTEX_ENCRYPTION_KEY_FILE", str(tmp_path / "key"))
    assert any(CANARY in text for text in answers(two, "Are levels whole millimetres?"))
    assert index_of(one.home) == index_of(two.home)
