"""Backups that someone else made: each is refused with a reason, and nothing on the disk is changed."""

import io
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from cortex.storage.copies import backup
from cortex.storage.copies.backup import restore_backup
from cortex.storage.settings.settings import load_settings
from tests.bench import NOW, here
from tests.present import clock_at
from tests.process.flows.test_hostile_backup import STRANGE, _store, archive, lake_of, refused, with_payloads  # noqa: F401


def test_the_archive_is_restored_where_nothing_is_changed(archive, bench):
    before = lake_of(bench.home)
    restore_backup(archive.pack(), bench.home, NOW)
    assert lake_of(bench.home) == before


def test_zeros_in_a_header_are_not_unpacked(archive, bench):
    archive.add("policy/thresholds.csv", b"a", pax_headers={"comment": "0" * (200 * 2**20)})
    refused(archive, bench, "unpacks to more")


def test_a_list_of_files_without_end_is_not_unpacked(archive, bench):
    archive.head["made_at"] = "0" * (100 * 2**20)
    refused(archive, bench, "unpacks to more")


def test_three_gigabytes_of_zeros_take_neither_disk_nor_memory(bench, tmp_path):
    file = tmp_path / "zeros.tar.zst"
    with file.open("wb") as opened, pa.CompressedOutputStream(pa.PythonFile(opened), "zstd") as packed:
        for _ in range(3 * 1024):
            packed.write(bytes(2**20))
    code = (
        "import resource, sys; from datetime import datetime; from pathlib import Path\n"
        "from cortex.storage.copies.backup import restore_backup\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: restore_backup(Path(sys.argv[1]), Path(sys.argv[2]), datetime(2026, 1, 1))\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file), str(tmp_path / "home")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    name, grown_mib = done.stdout.split()
    assert name == "SchemaMismatch"
    assert int(grown_mib) < 200
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_with_more_rows_than_bytes_is_refused(archive, bench):
    [name] = [name for name in archive.parts if name.startswith("lake/journal/")]
    rows = pq.read_table(io.BytesIO(archive.parts[name]))
    out = io.BytesIO()
    pq.write_table(rows.take(pa.array([0] * 3_000_000)), out, compression="zstd")
    archive.set(name, out.getvalue())
    archive.edit_manifest(
        lambda manifest: manifest["files"][name.removeprefix("lake/")].update(rows=3_000_000)
    )
    refused(archive, bench, "more rows than its bytes")


def test_a_file_that_unpacks_to_more_than_its_bytes_can_hold_is_refused(archive, bench, monkeypatch):
    monkeypatch.setattr(backup, "ALWAYS_PLAIN_BYTES", 16 * 2**20)  # 256 MB are taken whatever they are
    with_payloads(archive, '"' + "a" * (64 * 2**20) + '"')
    refused(archive, bench, "unpack to more")


def test_restored_where_nothing_was_a_store_has_the_defaults_and_says_so(archive, tmp_path):
    archive.set("config.toml", STRANGE)
    archive.set("policy/thresholds.csv", b"theirs")
    with clock_at(NOW):
        restored = here().restore(archive.pack(), into=tmp_path / "again")
    settings = load_settings(tmp_path / "again")
    assert (settings.brief_surface, settings.retention_days, settings.voyage_api_key) == ("hook", 0, None)
    assert not (tmp_path / "again" / "policy").exists()
    names = sorted(path.name for path in restored.quarantined)
    assert names == ["config.toml.from-backup", "policy.from-backup"]
