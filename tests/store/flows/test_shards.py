"""Shards: whoever reads and extracts from them, what a run commits is the same."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cortex.flows import transcript_batches
from cortex.flows.engines import runs
from cortex.flows.engines.runs import run_plain
from cortex.flows.extract_transcripts import extract
from cortex.flows.reading import shards
from cortex.flows.reading.shard_worker import RUNNERS, runner_for
from cortex.flows.reading.shards import (
    Carrier,
    ShardAnswers,
    TextShard,
    TranscriptAnswer,
    TranscriptShard,
    answer_shard,
    packed,
    unpacked,
)
from cortex.storage.settings.settings import WorkerSettings
from cortex.transforms.errors import RunnerMissing, UnknownValue
from cortex.transforms.schemas import EVENTS
from tests.bench import Bench, contents, difference
from tests.transcripts import KELP, Talk, decisions, forked

REEF = "/home/dev/reef"


class Workers:
    """ShardAnswers shards as workers do, and keeps them; every `fails`-th gets no answer."""

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.shards, self.answers = fails, list[TranscriptShard](), list[TranscriptAnswer]()

    def map(self, requests: Iterable[bytes]) -> Iterator[bytes | None]:
        for request in list(requests):  # all are planned before anything is committed
            shard = unpacked(request)
            assert isinstance(shard, TranscriptShard)
            self.shards.append(shard)
            answer = None if self.fails and len(self.shards) % self.fails == 0 else answer_shard(request)
            if answer is not None:
                self.answers.append(unpacked(answer))  # type: ignore[arg-type]
            yield answer


def take_in(bench: Bench, carrier: Carrier | None) -> None:
    """Take in what waits into the lake, with what carries the shards."""
    bench.stage()
    with runs.opened("backfill", bench.context) as run:
        run.carrier = carrier
        run_plain((extract,), run)


def session(bench: Bench, name: str, cwd: str = KELP) -> Path:
    """Return the transcript of a session of this name."""
    return Talk(name, cwd=cwd).path_in(bench.projects)


@pytest.fixture
def talked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a bench with sessions of two projects: with a subagent, forked, and with a broken line."""
    monkeypatch.setattr(transcript_batches, "MEGABYTE", 0)  # each session is a shard
    talk = decisions("s1")
    path = talk.write(bench.projects)
    assert path == session(bench, "s1")
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(path.read_bytes().replace(b'"uuid": "', b'"uuid": "a').replace(b"UTC", b"local time"))
    forked(talk.records, "f4").assistant("[MEMORY: pattern] One queue a poller.").write(bench.projects)
    decisions("s2", cwd=REEF).write(bench.projects)
    pumps = Talk("s5", cwd=REEF).user("We decided to keep the log of every pump for a year, for the audit.")
    with pumps.write(bench.projects).open("a") as file:
        file.write('{"type": "user", "broken\n')
    return bench


@pytest.mark.parametrize("fails", [1, 2])
def test_what_no_worker_answers_is_done_by_the_run(talked, other, fails):
    take_in(talked, Workers(fails))
    take_in(other, None)
    assert difference(contents(talked.home), contents(other.home)) == {}


def test_the_transcripts_of_a_session_are_in_one_shard_its_own_first(talked):
    workers = Workers()
    take_in(talked, workers)
    names = [[each.kept_at.name for each in shard.transcripts] for shard in workers.shards]
    assert [session(talked, "s1").name, "agent-a1.jsonl"] in names
    assert len(names) == 4


def test_a_run_takes_readings_and_events_from_the_answers(talked, monkeypatch):
    """Were they made again, the run would read and extract here, if nothing can."""

    def fails(*_: object) -> None:
        raise AssertionError("the run did it itself")

    class Distant(Workers):
        def map(self, requests: Iterable[bytes]) -> Iterator[bytes | None]:
            answers = list(super().map(requests))
            monkeypatch.setattr("cortex.flows.transcript_batches.read_turns", fails)
            monkeypatch.setattr("cortex.flows.reading.shards.extract_or_fault", fails)
            yield from answers

    session(talked, "f4").unlink()  # which of its turns are the origin's, only a run with both can say
    workers = Distant()
    take_in(talked, workers)
    assert talked.store.lake.read(EVENTS).num_rows


def test_a_transcript_that_changed_since_is_read_again(talked, other):
    path = session(talked, "s2", REEF)

    class Slow(Workers):
        def map(self, requests: Iterable[bytes]) -> Iterator[bytes | None]:
            answers = list(super().map(requests))
            path.write_bytes(before.replace(b"UTC", b"local time"))
            os.utime(path, (1, 1))
            yield from answers

    before = path.read_bytes()
    take_in(talked, Slow())
    take_in(other, None)
    assert difference(contents(talked.home), contents(other.home)) == {}


def test_an_answer_counts_only_for_what_the_run_would_have_asked(talked):
    workers = Workers()
    take_in(talked, workers)
    shard, answer = workers.shards[0], workers.answers[0]
    unread = shard.transcripts[0]
    reading = answer.readings[unread.kept_at]

    class Open:
        stamp = reading.stamp

    answers = ShardAnswers((shard, answer))
    assert answers.reading(unread, Open) is reading.result  # type: ignore[arg-type]
    other_limits = replace(unread, limits=replace(unread.limits, keeps_personal_data=False))
    assert answers.reading(other_limits, Open) is None  # type: ignore[arg-type]


def test_a_worker_of_another_version_gives_no_answer(monkeypatch):
    request = packed(TextShard("m", ()))
    monkeypatch.setattr(shards, "VERSION", "of tomorrow")
    with pytest.raises(ValueError, match="of tomorrow"):
        answer_shard(request)


def test_a_missing_library_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for runner, extra in (("dask", "prefect-dask"), ("ray", "prefect-ray")):
        with pytest.raises(RunnerMissing, match=rf"{extra}.*\.\[{runner}\]"):
            runner_for(runner, WorkerSettings())
    assert [runner_for(name, WorkerSettings()).is_on for name in RUNNERS[:2]] == [False, True]


def test_the_settings_choose_the_runner_and_a_parameter_has_the_last_word():
    settings = WorkerSettings("threads", 3)
    assert runner_for(None, settings).workers == 3
    assert not runner_for("none", settings).is_on
    with pytest.raises(UnknownValue, match="celery"):
        runner_for("celery", settings)
