"""The counts of the last report hold until somebody writes to the lake or to a table, whoever it is."""

import os
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex.storage.published.reports import (
    COUNTED,
    keep_report,
    kept_reports,
    last_report,
    tables_as_left,
    unchanged_counts,
)

LAKE_FILE, TABLE_FILE = "lake/turns/reef/1.parquet", "tables/reef/memories.lance/data/1.lance"
COUNTS = dict.fromkeys(COUNTED, 3)


@pytest.fixture
def reported(tmp_path: Path) -> Path:
    for name in (
        "lake/turns/reef/1.parquet",
        "tables/reef/memories.lance/data/1.lance",
        "runs/manifest.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"rows")
    report(tmp_path, COUNTS)
    return tmp_path


@dataclass
class Account:
    """A report of these counts."""

    counts: object
    flow: str = "ingest"
    started_at: datetime = datetime(2026, 11, 23, tzinfo=UTC)

    def as_dict(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {"flow": self.flow, "started_at": "", "seconds": 1, "rows": self.counts}


def report(home: Path, counts: object) -> Path:
    # Files written in one tick of the file system's clock count as changed behind it.
    time.sleep(0.02)
    path = keep_report(home / "runs", Account(counts))
    time.sleep(0.02)
    return path


def test_the_counts_hold_while_nothing_has_changed(reported: Path) -> None:
    assert tables_as_left(reported)
    assert unchanged_counts(reported) == COUNTS


@pytest.mark.parametrize("name", ["tables/search.sqlite-wal", "staging/a.json"])
def test_what_readers_and_hooks_leave_changes_none(reported: Path, name: str) -> None:
    (reported / name).parent.mkdir(exist_ok=True)
    (reported / name).touch()
    assert unchanged_counts(reported) == COUNTS


def cut(path: Path) -> None:
    """Shorten a file and set its times back, as nobody does who means well."""
    before = path.stat()
    path.write_bytes(b"r")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [cut, Path.unlink, lambda path: path.with_name("2").touch()])
@pytest.mark.parametrize("name", [LAKE_FILE, TABLE_FILE])
def test_a_file_that_is_cut_removed_or_new_ends_them(reported: Path, name: str, change) -> None:
    change(reported / name)
    assert unchanged_counts(reported) is None
    assert tables_as_left(reported) == (name == LAKE_FILE)


@pytest.mark.parametrize("counts", [None, {}, {"turns": 3}, [3]])
def test_a_report_of_another_make_counts_nothing(reported: Path, counts: object) -> None:
    report(reported, counts)
    assert unchanged_counts(reported) is None


def test_without_a_report_everything_is_looked_at(tmp_path: Path) -> None:
    assert unchanged_counts(tmp_path) is None
    assert not tables_as_left(tmp_path)


def test_a_change_by_a_clock_that_was_set_back_is_seen(reported: Path) -> None:
    (reported / TABLE_FILE).write_bytes(b"swor")
    time.sleep(0.02)
    for path in (reported / "runs" / "reports").iterdir():
        path.chmod(0o600)  # as if it had been written later than the table
    assert not tables_as_left(reported)


@pytest.mark.parametrize("folder", ["tables/reef", "tables/reef/memories.lance", "tables"])
def test_tables_that_are_gone_are_not_as_they_were_left(reported: Path, folder: str) -> None:
    shutil.rmtree(reported / folder)
    assert not tables_as_left(reported)


def test_a_copy_and_a_file_put_back_are_looked_at_once(reported: Path) -> None:
    kept = reported / "kept"
    shutil.copy2(reported / TABLE_FILE, kept)
    kept.rename(reported / TABLE_FILE)
    for path in (reported / "runs" / "reports").iterdir():
        path.chmod(0o600)
    assert not tables_as_left(reported)
    copied = shutil.copytree(reported, reported.with_name("copied"))
    assert not tables_as_left(copied)
    report(copied, COUNTS)
    assert tables_as_left(copied)


def test_what_lies_elsewhere_is_never_as_it_was_left(reported: Path) -> None:
    (reported / "elsewhere").mkdir()
    (reported / "tables" / "reef" / "edges.lance").symlink_to(reported / "elsewhere")
    report(reported, COUNTS)
    assert not tables_as_left(reported)


def test_people_see_of_a_report_what_the_run_said(reported: Path) -> None:
    account = Account(COUNTS).as_dict()
    assert last_report(reported / "runs") == account
    assert list(kept_reports(reported / "runs").values()) == [account]
