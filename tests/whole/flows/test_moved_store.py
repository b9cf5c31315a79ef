"""A store that was moved: the next run lets any DuckDB client ask it again, though nothing new was read."""

import duckdb

from tests.bench import NOW, Bench
from tests.transcripts import decisions


def turns_in(bench: Bench) -> int:
    with duckdb.connect(str(bench.store.published.database_path), read_only=True) as database:
        return int(database.sql("select count(*) from turns").fetchall()[0][0])


def test_the_views_of_a_moved_store_answer_again_after_a_run(bench, tmp_path):
    decisions().write(bench.projects)
    bench.backfill(now=NOW)
    count = turns_in(bench)
    moved = Bench(bench.home.rename(tmp_path / "elsewhere"), bench.projects)
    moved.run(now=NOW)
    assert turns_in(moved) == count > 0


def test_in_its_place_the_file_is_not_written_again(bench):
    decisions().write(bench.projects)
    bench.backfill(now=NOW)
    path = bench.store.published.database_path
    before = path.stat().st_ino
    bench.run(now=NOW)
    assert path.stat().st_ino == before
