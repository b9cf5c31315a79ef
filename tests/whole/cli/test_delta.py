"""`cortex export --format delta`: Delta tables show what DuckDB shows, written where it changed."""

import builtins
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.two_writers import URI, served_bucket
from cortex.flows.context.context import Context
from cortex.flows.operations.ask.sql import query_tables
from cortex.flows.operations.share.delta import EXPORTED
from tests.bench import NOW
from tests.process.cli.test_commands import error_of
from tests.traces import traces

deltalake = pytest.importorskip("deltalake")


def _delta(place: Path, table: str) -> list[tuple[object, ...]]:
    schema = EXPORTED[table]
    rows = deltalake.DeltaTable(str(place / table)).to_pyarrow_table().to_pylist()
    return _in_order(schema, [tuple(row[name] for name in schema.arrow.names) for row in rows])


def _duckdb(table: str) -> list[tuple[object, ...]]:
    columns = ", ".join(EXPORTED[table].arrow.names)
    result = query_tables(Context(clock=lambda: NOW), f"select {columns} from {table}")
    return _in_order(EXPORTED[table], list(result.rows))


def _in_order(schema, rows):
    at = [schema.arrow.names.index(name) for name in schema.key]
    return sorted(rows, key=lambda row: [str(row[place]) for place in at])


def _versions(place: Path) -> dict[str, int]:
    return {name: deltalake.DeltaTable(str(place / name)).version() for name in EXPORTED}


def _written(answer) -> dict[str, int]:
    return {row["table"]: row["written"] for row in answer.json["tables"] if row["written"]}


def test_the_tables_hold_what_duckdb_shows_and_only_what_changed_is_written(cortex, samples, tmp_path):
    place = tmp_path / "delta"
    first = cortex("export", place, "--format", "delta", "--json")
    assert first.code == 0 and {row["table"] for row in first.json["tables"]} == EXPORTED.keys()
    for table in EXPORTED:
        assert _delta(place, table) == _duckdb(table), table
    assert len(_delta(place, "turns")) > 100

    before = _versions(place)
    assert _written(cortex("export", place, "--format", "delta", "--json")) == {}
    assert _versions(place) == before

    cortex("remember", "The harbour crane carries twelve zorbels.", "--global")
    cortex("run")
    again = _written(cortex("export", place, "--format", "delta", "--json"))
    assert again["memories"] == 1 and "turns" not in again
    for table in EXPORTED:
        assert _delta(place, table) == _duckdb(table), table

    # Forgetting reaches the bytes of every version with the next export.
    (memory,) = (row for row in _delta(place, "memories") if "zorbels" in str(row))
    assert traces(place, "zorbels")
    cortex("forget", str(memory[0]))
    cortex("export", place, "--format", "delta")
    assert not traces(place, "zorbels")
    for table in EXPORTED:
        assert _delta(place, table) == _duckdb(table), table


def test_one_project_leaves_the_others_as_they_are(cortex, samples, tmp_path):
    place = tmp_path / "delta"
    cortex("export", place, "--format", "delta")
    before = _delta(place, "memories")
    name = next(row["name"] for row in cortex("projects", "--json").json["projects"])
    shutil.rmtree(place / "edges")
    answer = cortex("export", place, "--format", "delta", "--project", name, "--table", "edges", "--json")
    assert answer.code == 0 and {row["project_id"] for row in _rows(place, "edges")} <= _scopes(answer, name)
    assert _delta(place, "memories") == before


def _rows(place: Path, table: str):
    return deltalake.DeltaTable(str(place / table)).to_pyarrow_table().to_pylist()


def _scopes(answer, name: str) -> set[str]:
    shown = query_tables(Context(clock=lambda: NOW), f"select project_id from projects where name = '{name}'")
    return {row[0] for row in shown.rows} | {"global"}


def test_tables_of_others_are_left_alone(cortex, samples, tmp_path, monkeypatch):
    import pyarrow as pa

    place = tmp_path / "delta"
    deltalake.write_deltalake(str(place / "memories"), pa.table({"theirs": [1]}))
    answer = cortex("export", place, "--format", "delta", "--json")
    assert error_of(answer)["code"] == "CORTEX_E_USAGE" and "did not make" in error_of(answer)["problem"]
    assert deltalake.DeltaTable(str(place / "memories")).version() == 0

    mine = tmp_path / "mine"
    cortex("export", mine, "--format", "delta", "--table", "projects")
    shutil.copytree(samples, tmp_path / "elsewhere")
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "elsewhere"))
    answer = cortex("export", mine, "--format", "delta", "--table", "projects", "--json")
    assert "another store" in error_of(answer)["problem"]


def test_without_the_library_it_says_what_to_install(cortex, tmp_path, monkeypatch):
    really = builtins.__import__

    def without(name, *rest, **more):
        if name == "deltalake":
            raise ImportError(name)
        return really(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    error = error_of(cortex("export", tmp_path / "delta", "--format", "delta", "--json"))
    assert error["code"] == "CORTEX_E_USAGE" and "make install EXTRAS=delta" in error["next_step"]


@pytest.mark.parametrize(
    "words",
    [
        ("--format", "delta"),
        ("place", "--format", "delta", "--as-of", "2026-10-01"),
        ("place", "--table", "memories"),
        ("https://host/place", "--format", "delta"),
        ("place", "--format", "delta", "--table", "nothing"),
    ],
)
def test_what_delta_cannot_do_is_a_usage_error(cortex, words):
    answer = cortex("export", *words, "--json")
    assert error_of(answer)["code"] in ("CORTEX_E_USAGE", "CORTEX_E_UNKNOWN_VALUE")


def test_a_bucket_is_a_place_too(samples):
    # In a process of its own: a thread of this one serves the bucket, which the library's calls hold up.
    def written(place: str) -> dict[str, int]:
        words = ["export", place, "--format", "delta", "--table", "projects", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "cortex", *words],
            env={**os.environ, **surroundings},
            capture_output=True,
            timeout=60,
        )
        return {row["table"]: row["written"] for row in json.loads(done.stdout)["tables"]}

    with served_bucket() as surroundings:
        assert written(f"{URI}/delta")["projects"] > 0
        assert written(f"{URI}/delta")["projects"] == 0
