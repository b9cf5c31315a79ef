"""Claims about lakes whose manifest is lost, old or another's: nothing is swept, nothing is doubled."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.flows.engines.runs import opened
from cortex.flows.past.rebuilding import LakeRepair, rebuild
from cortex.storage.lake.lake import LAKE_TABLES, Lake
from cortex.storage.lake.lake_files import files_below
from cortex.transforms.errors import LakeUnclear
from cortex.transforms.schemas import TURNS, values
from tests.bench import NOW, Bench, contents, difference, kept
from tests.rows import entry
from tests.transcripts import decisions, forked

FORGOTTEN = "s1 writes levels as whole millimetres"
MANIFEST = Path("runs", "manifest.json")


def files(home: Path) -> dict[str, bytes]:
    """Return the lake's files with their bytes."""
    return {path: (home / "lake" / path).read_bytes() for path in files_below(home / "lake")}


def repair(bench: Bench, *, adopt: bool = True, quarantine: bool = False) -> LakeRepair:
    """Do what `cortex rebuild` does with these options."""
    prepare = LakeRepair(bench.settings, NOW, adopt=adopt, quarantine=quarantine)
    with opened("rebuild", bench.context, prepare=prepare) as run:
        rebuild(run)
    return prepare


def rows(home: Path) -> dict[str, int]:
    """Return the rows of the lake by table, repeated keys counted each time."""
    lake = Lake(home)
    return {name: lake.read(table).num_rows for name, table in LAKE_TABLES.items()}


def grow(bench: Bench) -> None:
    """Give a store a history: sessions that grew, a fork, one fact forgotten."""
    talk = decisions("s1")
    talk.write(bench.projects)
    bench.backfill()
    talk.assistant("[MEMORY: pattern] One queue for each poller.").write(bench.projects)
    forked(talk.records, "f4").assistant("[MEMORY: gotcha] The pump stops at low tide.").write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    bench.backfill()
    gone = next(m for m in bench.memories() if FORGOTTEN in m["text"])
    payload = {"turn_ids": [told["turn_id"] for told in gone["evidence"]]}
    bench.store.journal.write(
        entry("forget", gone["project_id"], payload, recorded_at=NOW, memory_id=gone["memory_id"])
    )
    bench.run()


def _lost(home: Path, older: bytes, foreign: bytes) -> None:
    (home / MANIFEST).unlink()


def _no_runs(home: Path, older: bytes, foreign: bytes) -> None:
    shutil.rmtree(home / "runs")


def _older(home: Path, older: bytes, foreign: bytes) -> None:
    (home / MANIFEST).write_bytes(older)


def _foreign(home: Path, older: bytes, foreign: bytes) -> None:
    (home / MANIFEST).write_bytes(foreign)


def _empty(home: Path, older: bytes, foreign: bytes) -> None:
    (home / MANIFEST).write_text('{"version": 1, "generation": 0, "files": {}, "cursors": {}, "stages": {}}')


CASES = [_no_runs, _older, _lost, _foreign, _empty]


@pytest.fixture
def manifests(bench: Bench, other: Bench, tmp_path: Path) -> tuple[bytes, bytes]:
    """Fill the bench; return an older manifest of it, and that of another store."""

    def fill(bench: Bench) -> tuple[bytes, bytes]:
        decisions("s0").write(bench.projects)
        bench.backfill()
        older = (bench.home / MANIFEST).read_bytes()
        elsewhere = Bench(other.home, tmp_path / "elsewhere")
        decisions("x", cwd="/home/dev/x").write(elsewhere.projects)
        elsewhere.backfill()
        grow(bench)
        return older, (other.home / MANIFEST).read_bytes()

    manifests: tuple[bytes, bytes] = kept(bench, "a lake and its manifests", fill)
    return manifests


@pytest.mark.spread(2)
@pytest.mark.parametrize("case", CASES)
def test_lake_files_that_no_manifest_names_are_refused_and_left_as_they_are(bench, manifests, case):
    case(bench.home, *manifests)
    before = files(bench.home)
    decisions("late").write(bench.projects)
    bench.stage()
    for flow in ("ingest", "nightly"):
        with pytest.raises(LakeUnclear, match="--adopt-lake"):
            bench.run(flow)
    assert files(bench.home) == before
    assert len(bench.store.staging.list_waiting()) >= 1


@pytest.mark.spread(2)
@pytest.mark.parametrize("case", CASES)
def test_an_adopted_lake_says_what_it_said_and_no_forgotten_word(bench, manifests, case):
    expected, counted = contents(bench.home), rows(bench.home)
    case(bench.home, *manifests)
    repair(bench)
    assert difference(contents(bench.home), expected) == {}
    assert rows(bench.home) == counted
    shutil.rmtree(bench.home / "staging")
    bench.backfill()  # every transcript again, for no cursor is known
    assert difference(contents(bench.home), expected) == {}
    said = values(bench.store.lake.read(TURNS), "text")
    assert any("s2 writes levels" in text for text in said)
    assert not any(FORGOTTEN in text for text in said)


def test_replaced_files_that_were_not_swept_yet_do_not_come_back(bench, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "sweep", lambda lake: 0)
        grow(bench)
    expected, counted = contents(bench.home), rows(bench.home)
    assert len(files(bench.home)) > len(bench.store.lake.manifest.files)
    (bench.home / MANIFEST).unlink()
    repair(bench)
    assert difference(contents(bench.home), expected) == {}
    assert rows(bench.home) == counted
    assert set(files(bench.home)) == set(bench.store.lake.manifest.files)


def test_turns_of_a_killed_commit_get_their_events_when_they_are_adopted(bench, other):
    decisions("s1").write(bench.projects)
    bench.begin()
    other.begin()
    for path in files_below(bench.home / "lake"):
        if path.startswith("events/"):
            (bench.home / "lake" / path).unlink()
    (bench.home / MANIFEST).unlink()
    repair(bench)
    assert difference(contents(bench.home), contents(other.home)) == {}


def test_a_foreign_file_in_the_lake_is_neither_read_nor_removed(bench):
    decisions("s1").write(bench.projects)
    bench.begin()
    foreign = ["notes.txt", "turns/notes.txt", ".DS_Store", "turns/project=x/copy.parquet", "download.part"]
    for name in foreign:
        path = bench.home / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a person's own")
    decisions("s2").write(bench.projects)
    bench.backfill()
    bench.run("nightly", NOW + timedelta(days=1))
    assert [name for name in foreign if not (bench.home / "lake" / name).is_file()] == []


def test_foreign_files_beside_tables_published_files_and_reports_stay(bench):
    decisions("s1").write(bench.projects)
    bench.begin()
    [scope] = [name for name in bench.store.tables.scopes() if name.startswith("kelp")]
    foreign = [
        *("tables/notes/a.txt", f"tables/{scope}/a.txt", "published/notes/a.txt", f"published/{scope}/a.txt"),
        *("runs/a.part", "runs/reports/a.json", "published/download.part"),
    ]
    for name in foreign:
        (bench.home / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.home / name).write_text("a person's own")
    bench.run("nightly", NOW + timedelta(days=1))
    repair(bench, adopt=False)
    assert [name for name in foreign if not (bench.home / name).is_file()] == []


def test_a_lake_file_copied_in_beside_an_intact_manifest_is_refused_not_swept(bench, other, tmp_path):
    decisions("s1").write(bench.projects)
    bench.begin()
    elsewhere = Bench(other.home, tmp_path / "elsewhere")
    decisions("s9", cwd="/home/dev/other").write(elsewhere.projects)
    elsewhere.backfill()
    shutil.copytree(other.home / "lake", bench.home / "lake", dirs_exist_ok=True)
    before = files(bench.home)
    with pytest.raises(LakeUnclear, match="does not name"):
        bench.run()
    assert files(bench.home) == before
    done = repair(bench, adopt=False, quarantine=True).done
    assert done.folder is not None and not done.folder.is_relative_to(bench.home)
    moved = {p.relative_to(done.folder / "lake").as_posix() for p in done.folder.rglob("*.parquet")}
    assert moved == set(done.left_out) == set(before) - set(files(bench.home))
    bench.run()


def test_a_manifest_that_names_files_outside_the_lake_is_refused(bench):
    decisions("s1").write(bench.projects)
    bench.begin()
    victim = bench.home / "victim"
    victim.write_text("a person's own")
    text = (bench.home / MANIFEST).read_text()
    (bench.home / MANIFEST).write_text(text.replace('"replaced": []', '"replaced": ["../victim"]'))
    with pytest.raises(Exception, match="damaged"):
        bench.run()
    assert victim.is_file()
