"""A sealed store goes through everything that a store in clear goes through, and says the same."""

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.flows.engines import runs
from cortex.flows.operations.ask.sql import query_tables
from cortex.flows.operations.maintain import config as encrypting
from cortex.flows.operations.maintain.config import decrypt, encrypt
from cortex.flows.operations.maintain.rebuild import rebuild_tables
from cortex.flows.past.rebuilding import compare
from cortex.storage.copies.backup import restore_backup
from cortex.storage.lake import lake
from cortex.storage.published.shown_lines import ShownLinesRegister
from cortex.storage.store import Store
from cortex.transforms.errors import FileDamaged, KeyUnavailable, UsageError
from tests.bench import NOW, Bench, contents, difference, here, leftovers
from tests.rows import entry
from tests.traces import traces
from tests.transcripts import decisions, forked
from tests.whole.flows.test_kills import Killed, _die_at

# Whole runs, two seconds each: together too long for the quick suite.

CANARY = "whole millimetres"


pytestmark = pytest.mark.usefixtures("in_kelp", "at_noon")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "key"


@pytest.fixture
def sealed(bench: Bench, key: Path) -> Bench:
    """Return a bench with one session in its store, which is sealed."""
    decisions().write(bench.projects)
    bench.begin()
    encrypt(bench.context, key)
    return bench


def lake_files(home: Path) -> list[Path]:
    return sorted(path for path in (home / "lake").rglob("*") if path.is_file())


def all_sealed(home: Path) -> bool:
    found = lake_files(home)
    return bool(found) and all(path.suffix == ".aes" and b"PAR1" not in path.read_bytes() for path in found)


def test_sealed_from_now_on_and_the_same_as_in_clear(sealed, other):
    talk = decisions("s2")
    talk.write(sealed.projects)
    forked(talk.records, "f3").assistant("[MEMORY: pattern] One queue a poller.").write(sealed.projects)
    sealed.backfill()
    sealed.run("nightly", NOW + timedelta(days=1))
    other.begin()
    other.run("nightly", NOW + timedelta(days=1))
    assert difference(contents(sealed.home), contents(other.home)) == {}
    assert all_sealed(sealed.home)
    assert traces(other.home / "lake", CANARY) != []
    assert traces(sealed.home / "lake", CANARY) == []
    assert leftovers(sealed.home) == []


def test_rebuilt_compacted_and_compared_it_is_clean(sealed, monkeypatch, capsys):
    monkeypatch.setattr(lake, "MAXIMUM_FILES_PER_PARTITION", 1)
    decisions("s2").write(sealed.projects)
    sealed.backfill()
    rebuild_tables(sealed.context)
    with runs.opened("rebuild", sealed.context) as run:
        assert compare(run).differences == []
    assert all_sealed(sealed.home)


def test_what_is_forgotten_leaves_no_byte(sealed):
    [memory] = [m for m in sealed.memories() if CANARY in m["text"]]
    here().forget(memory["memory_id"])
    assert traces(sealed.home, CANARY) == []
    decrypt(sealed.context)
    assert traces(sealed.home, CANARY) == []


def test_a_backup_is_sealed_too_and_needs_the_key(sealed, key, tmp_path):
    file = tmp_path / "store.tar.zst"
    here().backup(file)
    locked = key.rename(tmp_path / "elsewhere")
    with pytest.raises(KeyUnavailable, match=re.escape(str(key))):
        here().restore(file, into=tmp_path / "again")
    assert not (tmp_path / "again").exists()
    locked.rename(key)
    here().restore(file, into=tmp_path / "again")
    assert difference(contents(sealed.home), contents(tmp_path / "again")) == {}
    assert all_sealed(tmp_path / "again")


def test_on_another_machine_a_sealed_backup_needs_the_key_files_name_alone(
    sealed, key, tmp_path, monkeypatch
):
    file = tmp_path / "store.tar.zst"
    here().backup(file)
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "new"))
    with pytest.raises(KeyUnavailable, match="CORTEX_ENCRYPTION_KEY_FILE"):
        here().restore(file)
    monkeypatch.setenv("CORTEX_ENCRYPTION_KEY_FILE", str(key))
    here().restore(file)
    assert difference(contents(sealed.home), contents(tmp_path / "new")) == {}


def test_restoring_carries_what_was_told_since_and_publishes_again(sealed, tmp_path):
    file = tmp_path / "store.tar.zst"
    here().backup(file)
    here().remember("Buoys are counted twice.", memory_type="decision")  # fmt: skip
    told = json.loads((sealed.home / "runs" / "told.json").read_text())
    shutil.rmtree(sealed.home / "published")
    here().restore(file)
    after = json.loads((sealed.home / "runs" / "told.json").read_text())
    assert {p: set(marks) for p, marks in told.items()} == {p: set(marks) for p, marks in after.items()}
    assert "millimetres" in "".join(sealed.store.published.brief(s) for s in sealed.store.tables.scopes())


def test_resetting_a_project_drops_what_it_was_told(sealed):
    [scope] = {m["project_id"] for m in sealed.memories()}
    before = ShownLinesRegister(sealed.home).spans(scope)
    here().reset("kelp")
    assert before.keys() and not before.keys() & ShownLinesRegister(sealed.home).spans(scope).keys()


@pytest.mark.spread(3)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [
        (lake, "write_stored", 1),
        (lake, "write_stored", 3),
        (lake, "write_manifest", 1),
        (lake.Lake, "sweep", 1),
        (encrypting, "make_key_file", 1),
    ],
)
def test_killed_while_sealing_nothing_is_lost_and_the_next_run_mends(
    bench, key, monkeypatch, owner, name, number, moment
):
    decisions().write(bench.projects)
    bench.begin()
    before = contents(bench.home)
    with monkeypatch.context() as patch:
        _die_at(patch, owner, name, number, moment)
        with pytest.raises(Killed):
            encrypt(bench.context, key)
    bench.run()
    assert difference(contents(bench.home), before) == {}
    encrypt(bench.context, key)
    assert difference(contents(bench.home), before) == {}
    assert all_sealed(bench.home)
    assert leftovers(bench.home) == []


def test_taken_back_the_store_is_as_it_was(sealed):
    before = contents(sealed.home)
    decrypt(sealed.context)
    assert {path.suffix for path in lake_files(sealed.home)} == {".parquet"}
    assert difference(contents(sealed.home), before) == {}


def test_another_key_for_a_sealed_store_is_refused(sealed, tmp_path):
    with pytest.raises(UsageError, match="cortex decrypt, then cortex encrypt"):
        encrypt(sealed.context, tmp_path / "new")


def test_a_run_without_the_key_fails_and_what_waits_goes_on_waiting(sealed, key, tmp_path):
    decisions("s2").write(sealed.projects)
    locked = key.rename(tmp_path / "elsewhere")
    assert Store(sealed.home).staging.stage(decisions("s2").path_in(sealed.projects))
    waiting = sorted((sealed.home / "staging" / "new").iterdir())
    for _ in range(2):
        with pytest.raises(KeyUnavailable):
            sealed.run()
    assert sorted((sealed.home / "staging" / "new").iterdir()) == waiting
    locked.rename(key)
    sealed.run()
    assert any("of s2" in text for text in sealed.texts())


def test_a_changed_file_stops_its_project_which_goes_on_once_the_file_is_back(sealed):
    [turns] = (sealed.home / "lake" / "turns").rglob("*.aes")
    [scope] = {row["project_id"] for row in sealed.memories()}
    whole = turns.read_bytes()
    turns.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    decisions("s2").write(sealed.projects)
    before = known_of(sealed, scope)
    sealed.stage()
    waiting = leftovers(sealed.home)
    for _ in range(2):
        with pytest.raises(FileDamaged):
            sealed.run()
        assert known_of(sealed, scope) == before
    turns.write_bytes(whole)
    sealed.run()
    assert any("of s2" in text for text in sealed.texts())
    assert waiting and leftovers(sealed.home) == []


def known_of(bench: Bench, scope: str) -> dict[str, object]:
    """Return what the manifest says of a project, with the lake's files and how far transcripts are read."""
    manifest = bench.store.lake.manifest
    notes = {name: note for name, note in manifest.notes.as_texts().items() if scope in name}
    return {
        "files": manifest.files,
        "cursors": manifest.cursors,
        "notes": notes,
        "brief": bench.store.published.brief(scope),
        "lake": {path.name: path.read_bytes() for path in lake_files(bench.home)},
        "memories": bench.memories(),
    }


def test_sql_answers_from_the_sealed_lake_and_the_file_itself_does_not(sealed):
    import duckdb

    joined = "select count(*) as n from turns join events using (session_id)"
    [[count]] = query_tables(sealed.context, joined).rows
    assert isinstance(count, int) and count > 0
    with duckdb.connect(str(sealed.store.published.database_path), read_only=True) as database:
        assert database.sql("select count(*) from memories").fetchall()[0][0] > 0
        with pytest.raises(duckdb.CatalogException):
            database.sql("from turns")


def test_an_older_backup_in_clear_restores_what_waits_sealed_in_the_journal(bench, key, tmp_path):
    decisions().write(bench.projects)
    bench.begin()
    here().backup(tmp_path / "clear.tar.zst")
    encrypt(bench.context, key)
    told = {"text": "Buoys are painted on Fridays.", "memory_type": "context", "category": "project"}
    bench.store.journal.write(entry("remember", "kelp", told, recorded_at=NOW, memory_id="mine"))
    restore_backup(tmp_path / "clear.tar.zst", bench.home, NOW)
    assert [json.loads(row["payload"])["text"] for row in bench.store.journal.waiting()] == [
        "Buoys are painted on Fridays."
    ]
