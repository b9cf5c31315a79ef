"""The counts of the last report hold until somebody writes to the lake or to a table, whoever it is."""

import json
import os
import time
from pathlib import Path

import pytest

from cortex.storage.reports import COUNTED, tables_as_left, unchanged_counts

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


def report(home: Path, counts: object) -> None:
    # Files written in one tick of the file system's clock count as changed behind it.
    time.sleep(0.02)
    path = home / "runs/reports/20261123T000000000000Z-ingest.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"flow": "ingest", "started_at": "", "seconds": 1, "rows": counts}))
    time.sleep(0.02)


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
