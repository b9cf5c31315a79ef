"""Backups that someone else made: each is refused with a reason, and nothing on the disk is changed."""

import errno
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from cortex.storage.copies.backup import ALWAYS_BYTES, is_part, restore_backup
from cortex.storage.copies.swapping import finish_swap
from cortex.storage.lake.lake import LAKE_TABLES, each_key_once
from cortex.storage.settings.settings import load_settings
from cortex.storage.store import Store
from cortex.transforms.errors import SchemaMismatch, StoreNotWritable
from cortex.transforms.schemas import TURNS
from tests.bench import NOW, Bench, here
from tests.present import clock_at
from tests.transcripts import decisions

MANIFEST = "runs/manifest.json"


class Archive:
    """The parts of a backup, to be changed and packed again with a list of files that fits them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.members: list[tuple[tarfile.TarInfo, bytes]] = []
        with file.open("rb") as opened, pa.CompressedInputStream(pa.PythonFile(opened), "zstd") as plain:
            raw = plain.read()
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            self.parts = {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
        self.head: dict[str, Any] = json.loads(self.parts.pop("backup.json"))

    def add(self, name: str, body: bytes = b"x", **attributes: object) -> None:
        """Add a member as it is, and to the list of files as well."""
        info = tarfile.TarInfo(name)
        info.size = len(body)
        for attribute, value in attributes.items():
            setattr(info, attribute, value)
        self.members.append((info, body if info.isreg() else b""))
        self.head["files"][name] = hashlib.sha256(body).hexdigest()
        self.head["bytes"] += len(body)

    def set(self, name: str, body: bytes) -> None:
        """Change a part, its hash and the sizes."""
        self.head["bytes"] += len(body) - len(self.parts.get(name, b""))
        self.parts[name] = body
        digest = hashlib.sha256(body).hexdigest()
        self.head["files"][name] = digest
        if name.startswith("lake/"):
            self.edit_manifest(lambda manifest: manifest["digests"].update({name[len("lake/") :]: digest}))

    def edit_manifest(self, change: Callable[[dict[str, Any]], object]) -> None:
        manifest = json.loads(self.parts[MANIFEST])
        change(manifest)
        self.set(MANIFEST, json.dumps(manifest).encode())

    def pack(self) -> Path:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, body in {"backup.json": json.dumps(self.head).encode(), **self.parts}.items():
                info = tarfile.TarInfo(name)
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))
            for info, body in self.members:
                tar.addfile(info, io.BytesIO(body))
        with (
            self.file.open("wb") as opened,
            pa.CompressedOutputStream(pa.PythonFile(opened), "zstd") as packed,
        ):
            packed.write(out.getvalue())
        return self.file


@pytest.fixture(scope="module")
def _store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store of one session and a backup of it, made once: a run takes seconds."""
    folder = tmp_path_factory.mktemp("store")
    made = Bench(folder / "cortex-home", folder / "projects")
    with pytest.MonkeyPatch.context() as patch, clock_at(NOW):
        patch.setenv("CORTEX_HOME", str(made.home))
        decisions().write(made.projects)
        made.backfill()
        here().backup(folder / "store.tar.zst")
    (made.home / "engine").write_text("/opt/cortex")
    return folder


@pytest.fixture
def archive(_store: Path, bench: Bench, tmp_path: Path) -> Archive:
    shutil.copytree(_store, tmp_path, dirs_exist_ok=True)
    return Archive(tmp_path / "store.tar.zst")


def lake_of(home: Path) -> dict[str, object]:
    """Return what the lake says; what is made from it comes with the next run."""
    lake = Store(home).lake
    return {name: each_key_once(table, lake.read(table)).to_pylist() for name, table in LAKE_TABLES.items()}


def refused(archive: Archive, bench: Bench, reason: str) -> None:
    """Restore, expect the reason, and see that nothing anywhere in the test's folder changed."""
    root = archive.file.parent
    archive.pack()
    before = state_of(root)
    with pytest.raises(SchemaMismatch, match=f"not a whole backup.*{reason}.*Nothing was changed"):
        restore_backup(archive.file, bench.home, NOW)
    assert state_of(root) == before


def state_of(root: Path) -> dict[str, object]:
    return {
        str(path): (os.lstat(path).st_mode, path.read_bytes() if path.is_file() else None)
        for path in sorted(root.rglob("*"))
    }


@pytest.mark.first_is_quick
@pytest.mark.parametrize(
    "name",
    [
        "{out}/absolute",
        "../outside",
        "lake/../../outside",
        "policy/../engine.csv",
        "policy/../../outside.csv",
        "engine",
        "python",
        "./engine",
        "runs/surfaces.json",
        "client_settings.json",
        "hook_settings.json",
        "staging/new/a.json",
        "published/projects.json",
        "lake/turns/project=../00000001-0123456789ab.parquet",
        "lake/turns/project=a/../../../engine",
        "lake/turns/project=.../00000001-0123456789ab.parquet",
        "lake/others/project=a/00000001-0123456789ab.parquet",
        "lake/turns/project=a/00000001-0123456789ab.parquet/engine",
        "lake/turns/project=a/00000001-0123456789ab.parquet\n",
        "policy/a\\b.csv",
        "",
    ],
)
def test_a_part_that_no_backup_has_is_refused(archive, bench, tmp_path, name):
    archive.add(name.format(out=tmp_path))
    refused(archive, bench, "is not a part of a backup")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE],
)
def test_a_member_that_is_not_a_regular_file_is_refused(archive, bench, kind):
    archive.add("policy/thresholds.csv", b"", type=kind, linkname="/etc/hostname")
    refused(archive, bench, "not a regular file")


def test_a_sparse_member_is_refused(archive, bench):
    pax = {"GNU.sparse.major": "0", "GNU.sparse.map": "0,0", "GNU.sparse.size": str(3 * 2**30)}
    archive.add("policy/thresholds.csv", b"", pax_headers=pax)
    refused(archive, bench, "not a regular file|larger than it says")


def test_a_member_that_comes_twice_is_refused(archive, bench):
    archive.add("policy/thresholds.csv", b"a")
    archive.add("policy/thresholds.csv", b"b")
    refused(archive, bench, "appears twice")


def test_a_member_that_the_list_does_not_name_is_refused(archive, bench):
    archive.add("policy/thresholds.csv", b"a")
    del archive.head["files"]["policy/thresholds.csv"]
    refused(archive, bench, "not in its list of files")


# Sizes


def test_zeros_that_the_list_admits_to_are_not_unpacked(archive, bench):
    archive.add("policy/thresholds.csv", bytes(ALWAYS_BYTES * 4))
    refused(archive, bench, "cannot hold")


def test_zeros_that_the_list_is_silent_about_are_not_unpacked(archive, bench):
    archive.add("policy/thresholds.csv", bytes(ALWAYS_BYTES * 4))
    archive.head["bytes"] = 1_000_000
    refused(archive, bench, "larger than it says")


# The list of files


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": -1},
        {"bytes": "many"},
        {"bytes": 1e300},
        {"rows": {"turns": "1"}},
        {"rows": []},
        {"files": []},
        {"files": {}},
        {"version": 99},
        {"version": "1"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_malformed_list_is_refused(archive, bench, change):
    archive.head |= change
    refused(archive, bench, "")


def test_a_list_nested_without_end_is_refused(archive, bench):
    archive.head["made_at"] = None
    raw = json.dumps(archive.head).replace("null", "[" * 100_000 + "]" * 100_000)
    archive.head = {}
    archive.members.insert(0, (tarfile.TarInfo("backup.json"), b""))
    info, body = tarfile.TarInfo("backup.json"), raw.encode()
    info.size = len(body)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(info, io.BytesIO(body))
    with (
        archive.file.open("wb") as opened,
        pa.CompressedOutputStream(pa.PythonFile(opened), "zstd") as packed,
    ):
        packed.write(out.getvalue())
    with pytest.raises(SchemaMismatch):
        restore_backup(archive.file, bench.home, NOW)


# What the manifest and the rows say


def edited_file(**changes: object) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["files"][min(manifest["files"])] |= changes

    return change


def moved_file(path: str) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["files"][path] = manifest["files"].pop(min(manifest["files"]))

    return change


@pytest.mark.parametrize(
    "change",
    [
        moved_file("/etc/hostname"),
        moved_file("../config.toml"),
        moved_file("turns/project=a/00000001-0123456789ab.parquet"),
        edited_file(partition="../../outside"),
        edited_file(table="others"),
        edited_file(rows=7_000),
        lambda manifest: manifest["stages"].update(to_wipe='["../../outside"]'),
        lambda manifest: [c.update(project_id="../outside") for c in manifest["cursors"].values()],
        lambda manifest: manifest.pop("files"),
        lambda manifest: manifest["files"].update(a=[]),
        lambda manifest: manifest.update(stages=[]),
    ],
)
def test_a_manifest_that_leads_elsewhere_is_refused(archive, bench, change):
    archive.edit_manifest(change)
    refused(archive, bench, "")


@pytest.mark.parametrize("body", [b"[]", b"", b"null", b"7"])
def test_a_manifest_that_is_none_is_refused(archive, bench, body):
    archive.set(MANIFEST, body)
    archive.pack()
    with pytest.raises(SchemaMismatch):
        restore_backup(archive.file, bench.home, NOW)


def test_a_project_in_the_journal_whose_name_is_a_path_is_refused(archive, bench):
    [name] = [name for name in archive.parts if name.startswith("lake/journal/")]
    rows = pq.read_table(io.BytesIO(archive.parts[name]))
    position = rows.schema.get_field_index("project_id")
    field = rows.schema.field(position)
    path = pa.array(["../../outside"] * rows.num_rows, field.type)
    out = io.BytesIO()
    pq.write_table(rows.set_column(position, field, path), out)
    archive.set(name, out.getvalue())
    refused(archive, bench, "not the name of a project")


def with_payloads(archive: Archive, payload: str) -> None:
    """Give each row of the journal this payload, and the kind whose payload a restore reads."""
    [name] = [name for name in archive.parts if name.startswith("lake/journal/")]
    rows = pq.read_table(io.BytesIO(archive.parts[name]))
    for column, value in {"kind": "project", "payload": payload}.items():
        field = rows.schema.field(column)
        position = rows.schema.get_field_index(column)
        rows = rows.set_column(position, field, pa.array([value] * rows.num_rows, field.type))
    out = io.BytesIO()
    pq.write_table(rows, out, compression="zstd")
    archive.set(name, out.getvalue())


def test_a_payload_nested_without_end_is_refused(archive, bench):
    with_payloads(archive, "[" * 100_000)
    refused(archive, bench, "")


def with_one_text(archive: Archive, column: str, text: str, count: int) -> int:
    """Give `count` turns the same text, which the file holds once; return the bytes of the file."""
    [name] = [name for name in archive.parts if name.startswith("lake/turns/")]
    row = pq.read_table(io.BytesIO(archive.parts[name])).slice(0, 1).combine_chunks()
    columns = {field: row[field].take([0] * count) for field in row.schema.names}
    columns["turn_id"] = pa.array([os.urandom(8).hex() for _ in range(count)])
    columns[column] = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), [text])
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="zstd", store_schema=False)
    archive.set(name, out.getvalue())
    archive.edit_manifest(lambda manifest: manifest["files"][name[len("lake/") :]].update(rows=count))
    return len(out.getvalue())


@pytest.mark.parametrize("column", ["project_id", "text"])
def test_a_text_that_stands_once_and_that_each_row_repeats_is_not_unpacked(archive, bench, column):
    assert with_one_text(archive, column, "x" * 100_000, 20_000) < 700_000
    refused(archive, bench, "unpack to more than its bytes can hold")


def test_an_honest_prompt_that_a_script_sends_two_thousand_times_is_restored(archive, bench):
    prompt = os.urandom(10_000).hex()
    assert with_one_text(archive, "text", prompt, 2_000) < 2_000 * len(prompt) / 100
    restore_backup(archive.pack(), bench.home, NOW)
    assert pc.max(pc.utf8_length(bench.store.lake.read(TURNS)["text"])).as_py() == len(prompt)


def test_files_of_a_backup_that_are_small_each_are_counted_together(archive, bench, monkeypatch):
    monkeypatch.setattr("cortex.storage.copies.backup.ALWAYS_PLAIN_BYTES", 1_000)
    monkeypatch.setattr("cortex.storage.copies.backup.MAX_TIMES_PLAIN", 0)
    refused(archive, bench, "unpack to more than its bytes can hold")


def test_a_full_disk_is_not_taken_for_a_damaged_backup(archive, bench, monkeypatch):
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = state_of(archive.file.parent)
    monkeypatch.setattr("cortex.storage.copies.backup.sync_file", refuse)
    with pytest.raises(StoreNotWritable, match="no space is left"):
        restore_backup(archive.file, bench.home, NOW)
    assert state_of(archive.file.parent) == before


def test_a_backup_that_may_not_be_read_is_not_taken_for_a_store_that_cannot_be_written(
    archive, bench, monkeypatch
):
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/home/someone/backups")

    monkeypatch.setattr("cortex.storage.copies.backup.sha256_of", refuse)
    monkeypatch.setattr("cortex.storage.copies.backup._unpacked", lambda *_: None)
    before = state_of(archive.file.parent)
    with pytest.raises(PermissionError):
        restore_backup(archive.file, bench.home, NOW)
    assert state_of(archive.file.parent) == before


def test_a_file_that_is_not_parquet_is_refused(archive, bench):
    [name] = [name for name in archive.parts if name.startswith("lake/journal/")]
    archive.set(name, b"no parquet")
    refused(archive, bench, "")


# Settings

STRANGE = (
    b'[brief]\nsurface = "fish/config.fish"\n[retention]\ndays = 1\n[embed]\nvoyage_api_key = "theirs"\n'
)


def test_settings_and_policy_of_a_backup_are_set_aside_and_the_stores_own_stay(archive, bench, capsys):
    (bench.home / "config.toml").write_text("[retention]\ndays = 400\n")
    (bench.home / "policy").mkdir()
    (bench.home / "policy" / "mine.csv").write_text("mine")
    archive.set("config.toml", STRANGE)
    archive.set("policy/thresholds.csv", b"theirs")
    restore_backup(archive.pack(), bench.home, NOW)
    assert load_settings(bench.home).retention_days == 400
    assert [path.name for path in (bench.home / "policy").iterdir()] == ["mine.csv"]
    assert (bench.home / "config.toml.from-backup").read_bytes() == STRANGE
    assert (bench.home / "policy.from-backup" / "thresholds.csv").read_bytes() == b"theirs"


def test_settings_that_are_the_stores_own_leave_nothing_beside(archive, bench):
    (bench.home / "config.toml").write_bytes(STRANGE)
    archive.set("config.toml", STRANGE)
    restore_backup(archive.pack(), bench.home, NOW)
    assert (bench.home / "config.toml").read_bytes() == STRANGE
    assert not list(bench.home.glob("*.from-backup"))


# The place


def test_a_ticket_between_the_two_renames_costs_neither_store_nor_ticket(archive, bench, monkeypatch):
    real, renamed = Path.replace, []

    def replace(self: Path, target: Path) -> Path:
        result = real(self, target)
        if self == bench.home and not renamed:
            renamed.append(target)
            (target / "staging" / "new" / "late.json").write_text("{}")  # a hook that had the folder open
            new = bench.home / "staging" / "new"
            new.mkdir(parents=True)
            (new / "between.json").write_text("{}")
        return result

    before = lake_of(bench.home)
    monkeypatch.setattr(Path, "replace", replace)
    _, previous = restore_backup(archive.pack(), bench.home, NOW)
    assert renamed == [previous]
    assert lake_of(bench.home) == before
    tickets = {path.name for path in (bench.home / "staging" / "new").iterdir()}
    assert {"late.json", "between.json"} <= tickets


def test_a_restored_store_that_cannot_be_put_in_place_is_kept_for_the_next_command(
    archive, bench, monkeypatch
):
    real, fresh = Path.replace, bench.home.with_name(f".{bench.home.name}.restoring.part")

    def replace(self: Path, target: Path) -> Path:
        if self == fresh:
            raise PermissionError(errno.EACCES, "denied")
        return real(self, target)

    before = lake_of(bench.home)
    with monkeypatch.context() as patch, pytest.raises(StoreNotWritable):
        patch.setattr(Path, "replace", replace)
        restore_backup(archive.pack(), bench.home, NOW)
    assert not bench.home.exists()
    finish_swap(bench.home)
    assert lake_of(bench.home) == before


def test_restored_again_the_backup_replaces_a_store_that_has_gone_on(archive, bench):
    file = archive.pack()
    restore_backup(file, bench.home, NOW)
    _, again = restore_backup(file, bench.home, NOW)
    manifest = json.loads((bench.home / MANIFEST).read_text())
    manifest["generation"] += 1
    (bench.home / MANIFEST).write_text(json.dumps(manifest))
    _, replaced = restore_backup(file, bench.home, NOW)
    assert replaced != again
    assert json.loads((bench.home / MANIFEST).read_text())["generation"] == manifest["generation"] - 1


def test_a_store_behind_a_link_is_restored_and_the_link_stays(archive, bench, tmp_path):
    real = tmp_path / "disk" / "store"
    real.parent.mkdir()
    bench.home.rename(real)
    bench.home.symlink_to(real)
    before = lake_of(bench.home)
    _, previous = restore_backup(archive.pack(), bench.home, NOW)
    assert bench.home.is_symlink() and bench.home.resolve() == real
    assert previous is not None and previous.parent == real.parent
    assert lake_of(bench.home) == before


def test_a_link_that_names_nothing_yet_is_followed(archive, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "disk" / "store")
    restore_backup(archive.pack(), link, NOW)
    assert link.is_symlink() and (tmp_path / "disk" / "store" / MANIFEST).is_file()


def test_a_link_where_the_new_store_is_checked_is_not_followed(archive, bench, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    bench.home.with_name(f".{bench.home.name}.restoring.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="cannot be written"):
        restore_backup(archive.pack(), bench.home, NOW)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_pipe_in_staging_does_not_hold_a_restore(archive, bench):
    os.mkfifo(bench.home / "staging" / "new" / "pipe.json")
    restore_backup(archive.pack(), bench.home, NOW)
    assert not (bench.home / "staging" / "new" / "pipe.json").exists()


def test_a_linked_setting_is_backed_up_as_its_text(bench, tmp_path, archive):
    (tmp_path / "dotfiles.toml").write_text("[capture]\nmin_chars = 51\n")
    (bench.home / "config.toml").symlink_to(tmp_path / "dotfiles.toml")
    with clock_at(NOW):
        here().backup(tmp_path / "linked.tar.zst")
    restore_backup(tmp_path / "linked.tar.zst", tmp_path / "again", NOW)
    text = (tmp_path / "again" / "config.toml.from-backup").read_text()
    assert text == "[capture]\nmin_chars = 51\n"


def test_a_pipe_is_not_a_backup(bench, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SchemaMismatch, match="not a regular file"):
        restore_backup(tmp_path / "pipe", bench.home, NOW)


def test_every_name_that_a_backup_writes_may_come_back(archive):
    assert archive.parts
    assert all(is_part(name) for name in archive.parts)
