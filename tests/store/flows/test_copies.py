"""What forgetting names: copies that it reached, and those that lie elsewhere still."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.flows.context import Context
from cortex.flows.operations.edit.forget import other_copies
from cortex.storage.copies.backup import note_copy, outside_copies
from cortex.storage.filesystem.place import begin_copy
from cortex.storage.settings.settings import Settings, ShareSettings
from tests.bench import NOW

MEMORY = {"evidence": [], "source_type": "conversation", "created_at": NOW}


@pytest.fixture
def context(tmp_path: Path) -> Context:
    (tmp_path / "home").mkdir()
    return Context(Settings(home=tmp_path / "home"), clock=lambda: NOW)


def test_copies_that_are_there_and_may_hold_it_are_named_each_once(context, tmp_path):
    old, new, gone = (tmp_path / name for name in ("old.tar.zst", "new.tar.zst", "gone.json"))
    for file in (old, new):
        file.write_bytes(b"")
        note_copy(context.home, "backup", str(file), NOW + timedelta(days=1 if file == new else -1))
    note_copy(context.home, "backup", str(new), NOW + timedelta(days=2))
    note_copy(context.home, "export", str(gone), NOW + timedelta(days=1))
    note_copy(context.home, "delta", "s3://reef/delta", NOW + timedelta(days=1))
    assert len(outside_copies(context.home)) == 4
    left = other_copies(context, MEMORY).left
    assert [str(new) in left[0], "Delta tables s3://reef/delta" in left[1], len(left)] == [True, True, 2]
    assert any(str(old) in each for each in other_copies(context).left), "a session has no day of its own"
    assert other_copies(context).reached == [each for each in other_copies(context, MEMORY).reached]


def test_a_place_and_a_bucket_are_named_with_what_keeps_versions(context, tmp_path):
    begin_copy(context.home, "s3://reef/store")
    shared = replace(context, settings=replace(context.settings, share=ShareSettings("file:///mnt/team")))
    copies = other_copies(shared, MEMORY)
    assert "s3://reef/store" in copies.reached[1] and "other machines' copies" in copies.left[0]
    assert copies.left[1].startswith("file:///mnt/team") and "by its own rules" in copies.left[1]
    keyed = replace(shared, settings=replace(shared.settings, share=ShareSettings("file:///t", (), tmp_path)))
    assert "every copy of the key is destroyed" in other_copies(keyed, MEMORY).left[1]
    assert not any(
        "file:///mnt" in each for each in other_copies(shared, MEMORY | {"source_type": "team"}).left
    )


def test_a_store_that_cannot_be_written_or_read_notes_and_names_nothing(context, tmp_path):
    note_copy(tmp_path / "nowhere", "backup", "/b", NOW)
    assert not (tmp_path / "nowhere").exists()
    (context.home / "runs").mkdir()
    (context.home / "runs" / "copies.json").write_text('[{"kind": 1}]')
    assert outside_copies(context.home) == [] and other_copies(context).left == []
