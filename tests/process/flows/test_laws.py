"""The laws of whole runs: twice equals once, cuts and order do not matter, copies and rewinds count once."""

import errno
import os
import sqlite3
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cortex.storage.filesystem.files import TEMPORARY, refusal_of, write_stored
from cortex.transforms.errors import StoreNotWritable
from tests.bench import NOW, fixed_state, leftovers
from tests.transcripts import decisions


def test_a_run_over_an_empty_store_makes_no_rows(bench):
    report = bench.run()
    assert not any(report.rows.values())
    before = fixed_state(bench.home)
    bench.run()
    assert fixed_state(bench.home) == before


def test_a_transcript_of_an_excluded_project_is_not_kept(bench):
    decisions().write(bench.projects)
    (bench.home).mkdir()
    (bench.home / "config.toml").write_text('[capture]\nexcluded_projects = ["/home/dev/kelp"]\n')
    from cortex.flows.engines import runs
    from cortex.storage.settings.settings import load_settings

    bench.stage()
    report = runs.execute("ingest", replace(bench.context, settings=load_settings(bench.home)))
    assert (report.transcripts, report.rows["turns"], leftovers(bench.home)) == (0, 0, [])


def test_at_most_a_hundred_reports_are_kept(bench):
    from datetime import timedelta

    from cortex.flows.run_report import RunReport
    from cortex.storage.published.reports import keep_report, last_report

    for minutes in range(130):
        keep_report(bench.store.runs, RunReport("ingest", "plain", NOW + timedelta(minutes=minutes)))
    kept = sorted((bench.store.runs / "reports").iterdir())
    assert len(kept) == 100
    newest = last_report(bench.store.runs)
    assert newest is not None and newest["started_at"] == (NOW + timedelta(minutes=129)).isoformat()


@pytest.fixture
def dead() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_the_folder_of_temporaries_is_emptied_whatever_a_library_left_there(bench, dead):
    folder = bench.home / TEMPORARY
    (folder / f"0a.{dead}.tmp.spill").mkdir(parents=True)
    for name in (f"0a.{dead}.tmp", f"0a.{dead}.tmp.wal", f"ticket.json.{dead}.tmp", "of-nobody.tmp"):
        (folder / name).write_text("words")
    bench.run()
    assert list(folder.iterdir()) == []


def test_what_a_living_writer_has_begun_stays_for_a_minute(bench):
    folder = bench.home / TEMPORARY
    folder.mkdir(parents=True)
    young, old = (folder / f"{name}.{os.getpid()}.tmp" for name in ("young", "old"))
    for path in (young, old):
        path.write_text("{")
    os.utime(old, (time.time() - 61, time.time() - 61))
    bench.run()
    assert list(folder.iterdir()) == [young]


def test_what_killed_writers_of_earlier_versions_left_beside_its_place_goes_too(bench, dead):
    left = [
        f".config.toml.{dead}.part",
        f".hook_settings.json.{dead}.part",
        f"published/.memory.duckdb.{dead}.part.wal",
        f"published/kelp/.brief.md.{dead}.part",
        f"runs/.copies.json.{dead}.part",
        f"tables/.search.sqlite.{dead}.part",
        f"staging/journal/.entry.json.{dead}.part",
        "lake/turns/project=kelp/.00000001-0123456789ab.parquet.part",
    ]
    stay = ["runs/a.part", ".own.partial", f"staging/journal/.entry.json.{os.getpid()}.part"]
    for name in (*left, *stay):
        (bench.home / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.home / name).write_text("words")
    bench.run()
    assert [name for name in (*left, *stay) if (bench.home / name).exists()] == stay


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EBUSY])
def test_a_rename_that_a_drive_elsewhere_refuses_is_a_clear_error_and_leaves_the_old_file(
    tmp_path, monkeypatch, number
):
    path = tmp_path / "runs" / "file"
    write_stored(tmp_path, path, b"old")

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(StoreNotWritable, match=os.strerror(number).lower()):
        write_stored(tmp_path, path, b"new")
    assert [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()] == [b"old"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_a_clear_error(bench, monkeypatch, number):
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(StoreNotWritable, match=os.strerror(number).lower()):
        bench.run()


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied", "/home/someone/notes"),
        TimeoutError(errno.ETIMEDOUT, "Connection timed out"),
        OSError(errno.EIO, "Input/output error"),
    ],
)
def test_what_is_refused_outside_the_store_is_not_said_of_the_store(bench, monkeypatch, error):
    def refused(*_: object) -> None:
        raise error

    monkeypatch.setattr("cortex.flows.engines.runs.run_plain", refused)
    with pytest.raises(OSError) as raised:
        bench.run()
    assert raised.value is error


@pytest.mark.parametrize(
    ("number", "has_name"), [(errno.EACCES, True), (errno.EIO, True), (errno.ENOSPC, False)]
)
def test_what_is_refused_in_the_store_is_said_of_it_wherever_a_run_meets_it(
    bench, monkeypatch, number, has_name
):
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number), *([str(bench.home / "lake")] if has_name else []))

    monkeypatch.setattr("cortex.flows.engines.runs.run_plain", refused)
    with pytest.raises(StoreNotWritable):
        bench.run()


@pytest.mark.parametrize(
    ("error", "asks_for_links"),
    [
        (OSError(errno.ENOLCK, "No locks available"), True),
        (OSError(errno.ENOTSUP, "Operation not supported"), True),
        (OSError(errno.EXDEV, "Invalid cross-device link", "a", None, "b"), True),
        (OSError(errno.EPERM, "Operation not permitted", "a", None, "b"), True),
        (OSError(errno.EPERM, "Operation not permitted", "a"), False),
        (OSError(errno.EACCES, "Permission denied", "a"), False),
        (OSError(errno.EIO, "Input/output error"), False),
    ],
)
def test_links_and_locks_are_asked_for_where_they_are_missing_alone(tmp_path, error, asks_for_links):
    refusal = refusal_of(error, tmp_path)
    assert refusal is not None
    assert ("hard links and locks" in refusal.next_step) == asks_for_links


def test_a_search_index_that_the_disk_refuses_is_a_clear_error(bench, monkeypatch):
    def refused(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("cortex.storage.tables.search_index.write_index", refused)
    with pytest.raises(StoreNotWritable, match="input/output error"):
        bench.run()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_that_cannot_be_asked_to_sync_is_written_all_the_same(bench, monkeypatch, number):
    def refused(_: int) -> None:
        raise OSError(number, os.strerror(number))

    decisions().write(bench.projects)
    monkeypatch.setattr(os, "fsync", refused)
    bench.backfill()
    assert bench.texts() and leftovers(bench.home) == []


def test_a_store_that_a_program_makes_is_its_users_alone(bench):
    before = os.umask(0o022)
    try:
        bench.run()
    finally:
        os.umask(before)
    assert bench.home.stat().st_mode & 0o077 == 0


def test_a_folder_of_the_store_may_be_a_link_to_another_disk(tmp_path, monkeypatch):
    real = Path.replace

    def replace_on_one_disk(path, target):
        if path.parent != Path(target).parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace_on_one_disk)
    write_stored(tmp_path, tmp_path / "lake" / "file", b"words")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["file"]
    assert (tmp_path / "lake" / "file").read_bytes() == b"words"
