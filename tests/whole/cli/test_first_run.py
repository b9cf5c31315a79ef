"""While the first run is at work, and after one that was stopped, nothing that was never there is missing."""

import json

import pytest

from cortex.cli.answer import ProgressBar
from cortex.flows.engines import runs
from cortex.flows.stages import embed
from cortex.flows.stages.order import INGEST
from cortex.storage.published import reports
from tests.bench import SAMPLES

LOOKS = (["list", "--all-projects"], ["today"], ["projects"], ["timeline", "--all-projects"], ["status"])


@pytest.fixture(autouse=True)
def _publishing_early(monkeypatch, cortex):
    """Publish as a user's first run does, for those who look while prose is embedded."""
    monkeypatch.setitem(runs.FLOWS, "backfill", INGEST)


def blames_the_store(answer):
    """Return whether an answer says that something is missing, or is to be rebuilt."""
    text = (answer.out + answer.err).lower()
    return "gone" in text or "rebuild" in text or "damaged" in text


def interrupt(*arguments, **more):
    raise KeyboardInterrupt


def test_everything_answers_while_the_prose_is_still_embedded(cortex, monkeypatch):
    answers, embedded = {}, embed._embed

    def look_around(*arguments, **more):
        if not answers:
            answers.update({words[0]: cortex(*words) for words in LOOKS})
        return embedded(*arguments, **more)

    monkeypatch.setattr(embed, "_embed", look_around)
    assert cortex("backfill", SAMPLES).code == 0
    assert {name: answer.code for name, answer in answers.items()} == dict.fromkeys(answers, 0)
    assert "SQLite" in answers["list"].out and "tidepool" in answers["status"].out
    assert "At work: backfill, step 1 of 2" in answers["status"].out
    assert not any(map(blames_the_store, answers.values()))


def test_before_the_first_briefs_a_look_says_how_far_the_run_is(cortex, monkeypatch):
    answers = {}

    def look_around(*arguments, **more):
        answers.update({words[0]: cortex(*words) for words in LOOKS})
        raise KeyboardInterrupt

    monkeypatch.setattr(embed, "_texts_of", look_around)
    cortex("backfill", SAMPLES)
    assert answers["list"].code == 5 and "CORTEX_E_NOT_READY" in answers["list"].err
    for name in ("list", "today", "timeline"):
        assert "the first run is at work (step 1 of 2" in answers[name].err
    assert "At work: backfill, step 1 of 2" in answers["status"].out
    assert not any(map(blames_the_store, answers.values()))


def test_after_ctrl_c_a_look_says_where_the_run_stopped_and_how_to_go_on(cortex, home, monkeypatch):
    with monkeypatch.context() as stopped:
        stopped.setattr(embed, "_texts_of", interrupt)
        assert cortex("backfill", SAMPLES).code == 130
    # The process that was stopped is gone; this one goes on.
    note = home / "runs" / "progress.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), "pid": 2**22 + 1}))
    answers = [cortex(*words) for words in LOOKS]
    assert "the first run was stopped (step 1 of 2" in answers[0].err
    assert "was stopped" in answers[-1].out and "Continue: cortex run" in answers[-1].out
    assert not any(map(blames_the_store, answers))
    assert cortex("run").code == 0
    assert "SQLite" in cortex("list", "--all-projects").out
    assert not note.exists() and "stopped" not in cortex("status").out


def test_a_published_file_that_was_there_and_is_gone_is_rebuilt(cortex, samples):
    (samples / "published" / "memories.parquet").unlink()
    answer = cortex("list", "--all-projects")
    assert answer.code == 0 and "SQLite" in answer.out and "Rebuilding it" in answer.err


def test_one_bar_with_one_total_counts_the_texts_of_all_projects(cortex, monkeypatch):
    steps: dict[str, list[tuple[int, int]]] = {}
    monkeypatch.setattr(
        ProgressBar, "__call__", lambda self, stage, *amount: steps.setdefault(stage, []).append(amount)
    )
    monkeypatch.setattr(embed, "STEP_TEXTS", 5)
    cortex("backfill", SAMPLES)
    for step in ("embed_memories", "embed"):
        done, totals = zip(*steps[step], strict=True)
        assert len(set(totals)) == 1 and len(done) > 1
        assert list(done) == sorted(done) and done[-1] == totals[0]


@pytest.mark.parametrize(
    ("cores", "load", "factor"),
    [(2, 0.0, 1.0), (2, 1.0, 1.5), (2, 2.0, 2.0), (2, 6.0, 4.0), (1, 0.0, 2.0), (1, 1.0, 4.0), (8, 4.0, 1.0)],
)
def test_what_a_busy_or_smaller_machine_takes_is_expected_of_it(monkeypatch, cores, load, factor):
    monkeypatch.setattr(reports.os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(reports.os, "cpu_count", lambda: cores)
    monkeypatch.setattr(reports.os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert reports.expected_seconds(7_000_000, 700_000) == pytest.approx(10 * factor)


def test_how_fast_it_reads_says_how_long_embedding_takes(monkeypatch):
    monkeypatch.setattr(reports, "expected_seconds", lambda count, per_second: 9 * count / per_second)
    state = reports.RunProgress("backfill", 1, 0, "extract", 0, 10, 15_000_000, 30_000_000, 30_000_000)
    assert state.seconds_left == pytest.approx(10 + 2 * 30e6 / reports.EMBEDDED_BYTES_PER_SECOND)


def test_what_was_done_before_a_step_is_no_part_of_its_speed(tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "expected_seconds", lambda count, per_second: count / per_second)
    clock = iter([0.0, 0.0, 100.0, 110.0])  # the beginning, then the notes
    monkeypatch.setattr(reports.time, "time", lambda: next(clock))
    left = []
    with reports.noted_progress(tmp_path, "backfill", lambda stage, done, total: None) as note:
        for stage, done, total in (("extract", 0, 35_000_000), ("embed", 30, 1_000), ("embed", 50, 1_000)):
            note(stage, done, total)
            left.append(reports.read_progress(tmp_path).seconds_left)
    reading, indexing = 35e6 / reports.READ_BYTES_PER_SECOND, 35e6 / reports.EMBEDDED_BYTES_PER_SECOND
    assert left == pytest.approx([reading + indexing, 0.97 * indexing, 950 * 10 / 20])
