"""Backup and restore: what is written is what is read back, checked, and what was forgotten stays so."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

from cortex.flows.operations.share import exchange
from cortex.storage.copies.backup import restore_backup
from cortex.transforms.errors import NotFound, SchemaMismatch, UsageError
from tests.bench import NOW, contents, difference, here, leftovers
from tests.traces import traces
from tests.transcripts import decisions

# Whole runs, two seconds each: together too long for the quick suite.


pytestmark = pytest.mark.usefixtures("in_kelp", "at_noon")


@pytest.fixture
def file(bench, tmp_path) -> Path:
    """Return a backup of a store with one session in it."""
    decisions().write(bench.projects)
    bench.begin()
    made = tmp_path / "store.tar.zst"
    here().backup(made)
    return made


def test_a_restored_store_says_what_the_old_one_said(bench, file, tmp_path):
    here().restore(file, into=tmp_path / "again")
    assert difference(contents(bench.home), contents(tmp_path / "again")) == {}
    assert leftovers(tmp_path / "again") == []


def test_a_backup_is_for_its_owner_alone(file):
    assert file.stat().st_mode & 0o077 == 0


def test_restoring_over_a_store_leaves_that_one_beside(bench, file, tmp_path):
    before = contents(bench.home)
    remember("Levels are whole millimetres of water.")
    here().restore(file)
    assert difference(before, contents(bench.home)) == {}
    [previous] = tmp_path.glob("cortex-home.before-restore-*")
    assert traces(previous, "whole millimetres of water") != []


def test_what_was_forgotten_since_the_backup_stays_forgotten(bench, file):
    [memory] = [m for m in bench.memories() if "millimetres" in m["text"]]
    here().forget(memory["memory_id"])
    here().restore(file)
    assert traces(bench.home, "whole millimetres") == []
    assert not any("millimetres" in text for text in bench.texts())


class Killed(BaseException):
    """Stands for the end of the process."""


def restore_killed_at(monkeypatch, file, number: int) -> None:
    """Restore, and end the process before the nth rename of a whole store."""
    real, seen = Path.replace, []

    def replace(self: Path, target: Path) -> Path:
        if self.is_dir():
            seen.append(self)
            if len(seen) == number:
                raise Killed
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        patch.setattr(shutil, "rmtree", lambda *given, **more: None)  # a dead process cleans nothing up
        with pytest.raises(Killed):
            here().restore(file)


@pytest.mark.spread(2)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("next_command", ["run", "forget", "restore"])
def test_killed_at_a_rename_any_command_goes_on(bench, file, monkeypatch, number, next_command):
    [memory] = [m for m in bench.memories() if "millimetres" in m["text"]]
    here().forget(memory["memory_id"])
    restore_killed_at(monkeypatch, file, number)
    if next_command == "restore":
        here().restore(file)
    elif next_command == "forget":
        here().forget(memory["memory_id"])
    bench.run()
    assert traces(bench.home, "whole millimetres") == []
    assert any("local midnight" in text for text in bench.texts())
    assert not bench.home.with_name(f".{bench.home.name}.restoring.part").exists() or number == 1


def test_a_hook_between_the_two_renames_loses_no_ticket(bench, file, monkeypatch):
    restore_killed_at(monkeypatch, file, 2)
    path = decisions("s2").write(bench.projects)
    bench.store.staging.stage(path)
    bench.run()
    assert any("of s2" in text for text in bench.texts())


def test_restored_again_before_its_first_run_the_store_is_swapped_once(bench, file, monkeypatch):
    def dies(*given: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "run_plain", dies)
        with pytest.raises(Killed):
            here().restore(file)
    here().restore(file)
    assert len(list(bench.home.parent.glob(f"{bench.home.name}.before-restore-*"))) == 1
    assert any("local midnight" in text for text in bench.texts())
    assert leftovers(bench.home) == []


def test_what_waits_in_staging_comes_along(bench, file):
    decisions("s2").write(bench.projects)
    bench.stage()
    here().restore(file)
    assert any("of s2" in text for text in bench.texts())


@pytest.mark.parametrize("name", ["runs/surfaces.json", "engine"])
def test_what_holds_for_this_machine_alone_outlives_a_restore(bench, file, name):
    (bench.home / name).write_text('{"shown": {}, "blocks": {}}')
    restore_backup(file, bench.home, NOW)
    assert (bench.home / name).read_text() == '{"shown": {}, "blocks": {}}'


@pytest.mark.spread(2)
@pytest.mark.parametrize("cut", [0, 100, 2_000, -10])
def test_a_damaged_backup_changes_nothing(bench, file, cut):
    before = contents(bench.home)
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(SchemaMismatch, match="not a whole backup"):
        restore_backup(file, bench.home, NOW)
    assert contents(bench.home) == before
    assert list(bench.home.parent.glob("*restor*")) == []


def test_a_changed_part_is_named(bench, file):
    rewritten(file, lambda name, body: body[:-1] + b" " if name == "runs/manifest.json" else body)
    with pytest.raises(SchemaMismatch, match=r"runs/manifest\.json"):
        restore_backup(file, bench.home, NOW)


def test_a_part_outside_the_store_is_refused(bench, file, tmp_path):
    rewritten(file, lambda name, body: body, lambda name: name.replace("runs/manifest.json", "../out.json"))
    with pytest.raises(SchemaMismatch, match=r"\.\./out\.json"):
        restore_backup(file, bench.home, NOW)
    assert not (tmp_path / "out.json").exists()


def test_a_missing_file_is_said_to_be_missing(bench, tmp_path):
    with pytest.raises(NotFound):
        restore_backup(tmp_path / "none.tar.zst", bench.home, NOW)


def remember(text: str) -> None:
    here().remember(text, memory_type="decision")


def rewritten(file: Path, change, rename=lambda name: name) -> None:
    """Write the archive again with changed parts, its list of files as it was."""
    with file.open("rb") as opened, pa.CompressedInputStream(pa.PythonFile(opened), "zstd") as plain:
        raw = plain.read()
    parts = {}
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        for member in tar:
            body = tar.extractfile(member)
            assert body is not None
            parts[member.name] = body.read()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, body in parts.items():
            changed = change(name, body)
            info = tarfile.TarInfo(rename(name))
            info.size = len(changed)
            tar.addfile(info, io.BytesIO(changed))
    with file.open("wb") as opened, pa.CompressedOutputStream(pa.PythonFile(opened), "zstd") as packed:
        packed.write(out.getvalue())
    assert json.loads(parts["backup.json"])["version"] == 1


def test_a_backup_takes_the_place_of_no_device_and_no_folder(bench, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(UsageError, match="regular file"):
            here().backup(place)
    assert (tmp_path / "pipe").is_fifo()


def test_a_backup_to_a_folder_that_is_not_there_makes_it(bench, tmp_path):
    decisions().write(bench.projects)
    bench.begin()
    here().backup(tmp_path / "disk" / "notes" / "b.cortex")
    assert (tmp_path / "disk" / "notes" / "b.cortex").is_file()


def test_what_a_killed_backup_left_goes_with_the_next_and_what_another_writes_stays(bench, tmp_path):
    decisions().write(bench.projects)
    bench.begin()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, in_use, foreign = (
        tmp_path / f".kept.tar.zst.{name}.part" for name in (ended.pid, os.getppid(), "mine")
    )
    for path in (left, in_use, foreign):
        path.write_text("half")
    here().backup(tmp_path / "kept.tar.zst")
    assert [path.exists() for path in (left, in_use, foreign)] == [False, True, True]
