"""Migrations: each once, checked before it counts; a kill leaves the version before or after."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cortex.storage.lake import migrations
from cortex.storage.lake.lake import Lake
from cortex.storage.lake.manifest import Output, read_manifest
from cortex.storage.lake.migrations import Migration, migrate
from cortex.storage.store import Store
from cortex.transforms.errors import SchemaMismatch
from cortex.transforms.schemas import TURNS
from tests.rows import turn, turns

KEYS = {"turns": ("turn_id",)}


def louder(table: str, rows: pa.Table) -> pa.Table:
    """Put the text of turns in capitals."""
    if table != "turns":
        return rows
    position = rows.schema.get_field_index("text")
    return rows.set_column(position, rows.schema.field("text"), pc.utf8_upper(rows["text"]))


LOUDER = Migration(2, "louder turns", louder, KEYS)


@pytest.fixture
def store(home) -> Store:
    made = Store(home)
    with made.lake.change() as change:
        change.append(TURNS, "reef-1", turns(turn(1, "one"), turn(2, "two")))
        change.append(TURNS, "kelp-1", turns(turn(1, "three", project_id="kelp-1")))
        change.notes = change.notes.with_output(Output("decay", "reef-1"), "x")
    return made


def manifest_of(home: Path) -> dict[str, object]:
    told = json.loads((home / "runs" / "manifest.json").read_bytes())
    assert isinstance(told, dict)
    return told


def texts(home: Path) -> list[str]:
    manifest = read_manifest(home / "runs" / "manifest.json", any_version=True)
    lake = Lake.__new__(Lake)
    lake.home, lake.root, lake.manifest = home, home / "lake", manifest
    return sorted(lake.read(TURNS)["text"].to_pylist())


def test_a_step_is_taken_once_and_noted(store, home):
    assert migrate(home, [LOUDER], version=2) == ["louder turns"]
    assert (texts(home), manifest_of(home)["version"]) == (["ONE", "THREE", "TWO"], 2)
    assert migrate(home, [LOUDER], version=2) == []


def test_projections_are_made_again_after_a_step(store, home):
    migrate(home, [LOUDER], version=2)
    assert manifest_of(home)["stages"] == {}


def test_steps_are_taken_in_the_order_of_their_numbers(store, home):
    def shorter(table: str, rows: pa.Table) -> pa.Table:
        position = rows.schema.get_field_index("text")
        short = pc.utf8_slice_codeunits(rows["text"], 0, 2)
        return rows.set_column(position, rows.schema.field("text"), short)

    assert migrate(home, [Migration(3, "shorter", shorter, KEYS), LOUDER], version=3) == [
        "louder turns",
        "shorter",
    ]
    assert texts(home) == ["ON", "TH", "TW"]


def test_the_files_of_the_version_before_stay_until_they_are_swept(store, home):
    before = set((home / "lake").rglob("*.parquet"))
    migrate(home, [LOUDER], version=2)
    assert before <= set((home / "lake").rglob("*.parquet"))


@pytest.mark.parametrize(
    "harm",
    [
        lambda table, rows: rows.slice(1),
        lambda table, rows: pa.concat_tables([rows, rows]),
        lambda table, rows: rows.set_column(0, "turn_id", pc.utf8_upper(rows["turn_id"])),
    ],
    ids=["loses a row", "doubles rows", "changes keys"],
)
def test_a_step_that_does_harm_changes_nothing(store, home, harm):
    before = manifest_of(home)
    with pytest.raises(SchemaMismatch, match="Nothing was changed"):
        migrate(home, [Migration(2, "harm", harm, KEYS)], version=2)
    assert manifest_of(home) == before
    assert texts(home) == ["one", "three", "two"]


@pytest.mark.parametrize("files_written", [0, 1, 2])
def test_killed_within_a_step_the_store_has_the_version_before(store, home, monkeypatch, files_written):
    real, calls = migrations._rewritten, 0

    def dies(*args: object) -> object:
        nonlocal calls
        if calls == files_written:
            raise KeyboardInterrupt
        calls += 1
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "_rewritten", dies)
        patch.setattr(migrations, "write_manifest", dies)
        with pytest.raises(KeyboardInterrupt):
            migrate(home, [LOUDER], version=2)
    assert (texts(home), manifest_of(home)["version"]) == (["one", "three", "two"], 1)
    migrate(home, [LOUDER], version=2)
    assert texts(home) == ["ONE", "THREE", "TWO"]


def test_a_store_of_a_newer_version_is_refused_with_what_to_do(store, home):
    told = manifest_of(home) | {"version": 9}
    (home / "runs" / "manifest.json").write_text(json.dumps(told))
    for opens in (lambda: Store(home), lambda: migrate(home)):
        with pytest.raises(SchemaMismatch, match=r"version 9.*Install the version"):
            opens()


def test_an_older_store_is_brought_up_by_the_next_run(store, home):
    told = manifest_of(home) | {"version": 0}
    (home / "runs" / "manifest.json").write_text(json.dumps(told))
    with pytest.raises(SchemaMismatch, match="cortex run"):
        Store(home)


def test_an_empty_store_needs_no_step(home):
    assert migrate(home, [LOUDER], version=2) == []
