"""The laws of whole runs: twice equals once, cuts and order do not matter, copies and rewinds count once."""

import pytest

from cortex.storage.lake import lake as lake_module
from tests.bench import SAMPLES, contents, difference, fixed_state, leftovers
from tests.transcripts import Talk, decisions, forked, lines, resumed


def test_the_samples_run_twice_equal_once(bench):
    first = bench.backfill(SAMPLES)
    before, said = fixed_state(bench.home), contents(bench.home)
    again = bench.backfill(SAMPLES)
    assert (first.transcripts, again.transcripts) == (7, 0)
    assert fixed_state(bench.home) == before
    assert contents(bench.home) == said
    assert sum(again.new_rows.values()) == 0
    assert leftovers(bench.home) == []


def test_the_same_files_staged_by_hooks_again_change_nothing(bench):
    path = decisions().write(bench.projects)
    bench.backfill()  # not `begin`: the next run over a moved store writes its database again
    before = fixed_state(bench.home)
    bench.store.staging.stage(path)
    bench.run()
    assert fixed_state(bench.home) == before


def test_small_lake_files_are_joined_and_the_published_views_follow(bench, monkeypatch):
    import duckdb

    monkeypatch.setattr(lake_module, "MAXIMUM_FILES_PER_PARTITION", 2)
    for name in ("s1", "s2", "s3", "s4"):
        decisions(name).write(bench.projects)
        bench.backfill()
        with duckdb.connect(str(bench.home / "published" / "memory.duckdb"), read_only=True) as database:
            counted = database.sql("select count(*) from turns").fetchall()
        assert counted == [(len(contents(bench.home)["turns"]),)]
    assert len(list((bench.home / "lake" / "turns").rglob("*.parquet"))) <= 3
    before = fixed_state(bench.home)
    bench.run()
    assert fixed_state(bench.home) == before


@pytest.mark.parametrize("cuts", [[1, 4, 6]])
def test_a_transcript_that_grows_line_by_line_gives_what_it_gives_at_once(bench, other, cuts):
    talk = decisions()
    path = talk.path_in(bench.projects)
    path.parent.mkdir(parents=True)
    for end in [*cuts, len(talk.records)]:
        path.write_bytes(lines(talk.records[:end]))
        bench.backfill()
    other.begin()
    assert difference(contents(bench.home), contents(other.home)) == {}


@pytest.mark.spread(2)
@pytest.mark.parametrize("share", [0.33, 0.71, 0.99])
def test_a_transcript_cut_within_a_line_gives_what_it_gives_at_once(bench, other, share):
    whole = lines(decisions().records)
    path = decisions().path_in(bench.projects)
    path.parent.mkdir(parents=True)
    path.write_bytes(whole[: int(len(whole) * share)])
    bench.begin()
    path.write_bytes(whole)
    bench.backfill()
    other.begin()
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []


def test_the_order_of_files_does_not_matter(bench, other):
    paths = [decisions(name).write(bench.projects) for name in ("s1", "s2", "s3")]
    for path in paths:
        bench.backfill(path)
    for path in reversed(paths):
        other.backfill(path)
    assert difference(contents(bench.home), contents(other.home)) == {}


def test_a_resumed_copy_gives_no_second_turn_and_no_second_memory(bench, other):
    talk = decisions()
    copied = decisions()
    copied.records += resumed(talk.records)
    copied.write(bench.projects)
    bench.begin()
    turns, memories = contents(bench.home)["turns"], bench.texts()
    talk.write(other.projects)
    other.begin()
    assert (turns, memories) == (contents(other.home)["turns"], other.texts())


@pytest.mark.parametrize("names", [("s1", "f4"), ("f4", "s1"), ("s1", "f2")])
def test_a_fork_gives_no_second_turn_whichever_is_read_first(bench, other, names):
    original = decisions("s1")
    talks = {
        name: original
        if name == "s1"
        else forked(original.records, name).assistant(
            "[MEMORY: pattern] Each poller gets a queue of its own."
        )
        for name in names
    }
    paths = [talks[name].write(bench.projects) for name in names]
    for path in paths:
        bench.backfill(path)
    other.begin()
    assert difference(contents(bench.home), contents(other.home)) == {}
    turns = contents(bench.home)["turns"]
    assert len(turns) == len(original.records) + 1
    assert len(contents(bench.home)["events"]) == len({e["event_id"] for e in contents(bench.home)["events"]})


def test_a_session_that_grows_after_its_fork_was_read_does_not_double(bench, other):
    original = decisions("s1")
    for fork in ("f1", "f4"):
        original.write(bench.projects)
        bench.backfill()
        fork_talk = forked(original.records, fork)
        fork_talk.assistant(f"[MEMORY: pattern] {fork} has a queue.").write(bench.projects)
        bench.backfill()
        original.assistant(f"[MEMORY: pattern] The original went on after {fork}.")
    original.write(bench.projects)
    bench.backfill()
    other.begin()
    assert difference(contents(bench.home), contents(other.home)) == {}


def test_a_rewind_that_arrives_later_takes_back_what_was_said_before(bench, other):
    talk = Talk().user("Where do readings go?").assistant("[MEMORY: decision] Readings stay for a year.")
    talk.user("Use files.").assistant("[MEMORY: decision] Readings go to plain CSV files for everyone.")
    talk.write(bench.projects)
    bench.begin()
    assert any("CSV" in text for text in bench.texts())
    talk.rewind().user("Use a database.").assistant("[MEMORY: decision] Readings go to SQLite alone.")
    talk.write(bench.projects)
    bench.backfill()
    assert any("SQLite" in text for text in bench.texts())
    assert not any("CSV" in text for text in bench.texts())
    other.begin()
    assert difference(contents(bench.home), contents(other.home)) == {}


def test_another_file_in_the_place_of_a_transcript_is_read_from_its_start(bench):
    path = decisions("s1").write(bench.projects)
    bench.begin()
    path.write_bytes(lines(decisions("s2").records * 2))
    bench.backfill()
    assert any("of s2" in text for text in bench.texts())


@pytest.mark.spread(2)
@pytest.mark.parametrize("kind", ["shorter", "changed", "changed, as long as before"])
def test_a_transcript_that_its_client_rewrites_in_place_loses_and_doubles_nothing(bench, kind):
    path = decisions("s1").write(bench.projects)
    bench.begin()
    before = bench.texts()
    rows = path.read_bytes()
    new = {
        "shorter": b"".join(rows.splitlines(keepends=True)[:2]),
        "changed": rows.replace(b"counts hours", b"counts whole minutes"),
        "changed, as long as before": rows.replace(b"local midnight", b"solar midnight"),
    }[kind]
    assert new != rows and (len(new) == len(rows)) == kind.endswith("before")
    path.write_bytes(new)
    for _ in range(2):
        bench.backfill()
        after = bench.texts()
        assert set(before) <= set(after) and len(after) == len(set(after))
        assert len(after) - len(before) == (kind != "shorter")
    assert leftovers(bench.home) == []


def test_transcripts_deleted_between_staging_and_run_are_read_through_the_link(bench, other):
    path = decisions().write(bench.projects)
    other.begin()
    bench.stage()
    path.unlink()
    assert bench.run().transcripts == 1
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []


def test_set_aside_lines_are_named_with_file_line_and_reason(bench):
    path = decisions().write(bench.projects)
    with path.open("ab") as file:
        file.write(b'{"type":"user","mess\n[1, 2]\n\xff\xfe\n{"type":"user","message"')
    report = bench.backfill()
    last = len(decisions().records)
    assert [(line.file, line.line, line.reason) for line in report.quarantined] == [
        (str(path), last + 1, "not JSON"),
        (str(path), last + 2, "not an object"),
        (str(path), last + 3, "not UTF-8"),
        (str(path), last + 4, "last line is not finished yet"),
    ]
