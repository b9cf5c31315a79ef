"""Backup and restore: what is written is what is read back, checked, and what was forgotten stays so."""

import io
import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

from cortex.commands import keeping
from cortex.commands import memories as commands
from cortex.commands.terminal import clock_at
from cortex.errors import NotFound, SchemaMismatch
from cortex.storage.backup import restore_backup
from tests.flows.conftest import NOW, WordEmbedder, contents, difference, leftovers
from tests.traces import traces
from tests.transcripts import decisions

# Whole runs, two seconds each: together too long for the quick suite.
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _here_is_kelp(monkeypatch, tmp_path):
    monkeypatch.setattr(commands, "embedder_of", lambda settings: WordEmbedder())
    (tmp_path / "kelp").mkdir()
    monkeypatch.chdir(tmp_path / "kelp")
    with clock_at(NOW):
        yield


@pytest.fixture
def file(bench, tmp_path) -> Path:
    """Return a backup of a store with one session in it."""
    decisions().write(bench.projects)
    bench.backfill()
    made = tmp_path / "store.tar.zst"
    keeping.backup(made, as_json=True)
    return made


def test_a_restored_store_says_what_the_old_one_said(bench, file, tmp_path):
    keeping.restore(file, into=tmp_path / "again", as_json=True)
    assert difference(contents(bench.home), contents(tmp_path / "again")) == {}
    assert leftovers(tmp_path / "again") == []


def test_a_backup_is_for_its_owner_alone(file):
    assert file.stat().st_mode & 0o077 == 0


def test_restoring_over_a_store_leaves_that_one_beside(bench, file, tmp_path):
    before = contents(bench.home)
    remember("Levels are whole millimetres of water.")
    keeping.restore(file, into=None, as_json=True)
    assert difference(before, contents(bench.home)) == {}
    [previous] = tmp_path.glob("cortex-home.before-restore-*")
    assert traces(previous, "whole millimetres of water") != []


def test_what_was_forgotten_since_the_backup_stays_forgotten(bench, file):
    [memory] = [m for m in bench.memories() if "millimetres" in m["text"]]
    commands.forget(memory["memory_id"], project=None, yes=False, as_json=True)
    keeping.restore(file, into=None, as_json=True)
    assert traces(bench.home, "whole millimetres") == []
    assert not any("millimetres" in text for text in bench.texts())


def test_killed_between_its_two_renames_a_restore_again_knows_what_was_forgotten(bench, file):
    [memory] = [m for m in bench.memories() if "millimetres" in m["text"]]
    commands.forget(memory["memory_id"], project=None, yes=False, as_json=True)
    bench.home.rename(bench.home.with_name("cortex-home.before-restore-20261101T000000"))
    bench.home.with_name(f".{bench.home.name}.restoring.part").mkdir()
    keeping.restore(file, into=None, as_json=True)
    assert traces(bench.home, "whole millimetres") == []


def test_what_waits_in_staging_comes_along(bench, file):
    decisions("s2").write(bench.projects)
    bench.stage()
    keeping.restore(file, into=None, as_json=True)
    assert any("of s2" in text for text in bench.texts())


@pytest.mark.parametrize("name", ["runs/surfaces.json", "client_settings.json", "engine"])
def test_what_holds_for_this_machine_alone_outlives_a_restore(bench, file, name):
    (bench.home / name).write_text('{"shown": {}, "blocks": {}}')
    restore_backup(file, bench.home, NOW)
    assert (bench.home / name).read_text() == '{"shown": {}, "blocks": {}}'


@pytest.mark.parametrize("cut", [0, 100, 2_000, -10])
def test_a_damaged_backup_changes_nothing(bench, file, cut):
    before = contents(bench.home)
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(SchemaMismatch, match="no whole backup"):
        restore_backup(file, bench.home, NOW)
    assert contents(bench.home) == before
    assert list(bench.home.parent.glob("*restor*")) == []


def test_a_changed_part_is_named(bench, file):
    rewritten(file, lambda name, body: body + b" " if name == "runs/manifest.json" else body)
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
    commands.remember(
        text, memory_type="decision", priority=5, is_global=False, pin=False, project=None, as_json=True
    )


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
