"""An answer that was paid for survives the run that asked for it, whatever that did when it was killed."""

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.flows.asking_model import writing
from cortex.flows.asking_model.asking import AskingRound
from cortex.flows.memory import Memory
from cortex.flows.operations.maintain.config import encrypt
from cortex.storage.lake.encryption import is_sealed
from cortex.storage.model_calls import (
    ARRIVALS_PATH,
    LOST,
    SETTLED,
    Arrival,
    Arrivals,
    DailyLimits,
    Spending,
    SpendingClaim,
    Withheld,
)
from cortex.storage.store import Store
from cortex.transforms.schemas import REPLIES
from cortex.transforms.writer.request import Reply
from tests.asking_process import read_sessions, write_up_to
from tests.bench import words_for_a_model
from tests.examples import HAS_EVERY_CASE
from tests.model_server import ModelServer, always
from tests.processes import PROCESSES
from tests.store.flows.test_asking import NOW, a_run, ask, request, requests
from tests.transcripts import START
from tests.whole.flows.test_writing import FACT, STATEMENT, WritingBench, answers, shown, talk


class Killed(BaseException):
    """Stands for the end of the process."""


def dies(*args: object) -> None:
    raise Killed


def waiting(home: Path) -> list[Arrival]:
    return Arrivals(Store(home).lake).read()


@pytest.fixture
def writing_bench(home: Path, projects: Path) -> WritingBench:
    return WritingBench(home, projects, words_for_a_model)


def killed_while_keeping(bench: WritingBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run until the answer has arrived and its facts are being made."""
    with monkeypatch.context() as patch:
        patch.setattr("cortex.flows.asking_model.writing.events_of", dies)
        patch.setattr(Spending, "settle", dies)
        with pytest.raises(Killed):
            bench.run()


def test_an_answer_that_arrived_before_a_kill_is_kept_by_the_next_run_and_not_asked_for_again(
    writing_bench, monkeypatch
):
    talk().write(writing_bench.projects)
    with ModelServer(always(answers(FACT))) as server:
        bench = replace(writing_bench, url=server.url)
        bench.stage()
        killed_while_keeping(bench, monkeypatch)
        assert [each.state for each in Spending(bench.home).attempts()] == ["open"]
        bench.run()
        assert (len(server.asked), STATEMENT in shown(bench), waiting(bench.home)) == (1, True, [])
        [attempt] = Spending(bench.home).attempts()
        assert (attempt.state, attempt.input_tokens) == (SETTLED, server.billed["input_tokens"])


def test_it_is_found_although_more_is_known_of_the_project_by_then(writing_bench, monkeypatch):
    # The session that ends last is read first; what it settled at its beginning is then known to the other.
    long = talk().user("And which harbour comes first?").assistant("The one with the pilots.")
    for record in long.records[:2]:
        record["timestamp"] = "2026-08-01T09:00:00.000Z"
    long.write(writing_bench.projects)
    talk("s2", start=START - timedelta(days=9)).user("The buoys are painted each May.").write(
        writing_bench.projects
    )
    with ModelServer(lambda body, number: answers(*([] if number else [FACT]))) as server:
        bench = replace(writing_bench, url=server.url)
        bench.stage()
        real, calls = writing.events_of, []

        def second_dies(*args: object) -> object:
            calls.append(args)
            return real(*args) if len(calls) == 1 else dies()  # type: ignore[arg-type,func-returns-value]

        with monkeypatch.context() as patch:
            patch.setattr(writing, "events_of", second_dies)
            with pytest.raises(Killed):
                bench.run()
        bench.run()
        assert (len(server.asked), len(bench.store.lake.read(REPLIES)), waiting(bench.home)) == (2, 2, [])


def test_an_answer_is_written_down_redacted_and_before_anything_else(home, monkeypatch):
    secret = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"
    answer = answers(FACT | {"statement": f"The token of the tide service is {secret}."})
    with ModelServer(always(answer)) as server, monkeypatch.context() as patch:
        patch.setattr(AskingRound, "_settle", dies)
        run = a_run(home, server.url)
        with pytest.raises(Killed):
            ask(run, [request()])
    assert "[REDACTED" in waiting(home)[0].reply.text
    assert not any(secret.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_where_an_answer_waits_the_same_is_not_asked(home):
    reply = Reply(request().request_id, "api", "claude-haiku-5-5", "{}", "end_turn", 5, 5, 0.0)
    Arrivals(Store(home).lake).write(Arrival(1, 7, NOW, reply))
    claim = SpendingClaim(reply.request_id, "session", "api", "claude-haiku-5-5", 10)
    assert Spending(home).reserve(claim, DailyLimits(1_000, 10), NOW) == Withheld("under way", 0)


def test_an_answer_that_nobody_asks_for_is_settled_and_waits_a_week(home):
    reply = Reply(request().request_id, "api", "claude-haiku-5-5", "{}", "end_turn", 5, 5, 0.0)
    with ModelServer(always(answers())) as server:
        run = a_run(home, server.url)
        Arrivals(run.store.lake).write(Arrival(1, 7, NOW, reply))
        ask(run, requests(1))
        assert len(waiting(home)) == 1
        Arrivals(run.store.lake).write(Arrival(1, 7, NOW - timedelta(days=8), reply))
        ask(run, requests(1))
    assert waiting(home) == []


def test_what_is_forgotten_takes_the_answers_that_wait_with_it(writing_bench, monkeypatch):
    talk().write(writing_bench.projects)
    with ModelServer(always(answers(FACT))) as server:
        bench = replace(writing_bench, url=server.url)
        bench.stage()
        killed_while_keeping(bench, monkeypatch)
        assert len(waiting(bench.home)) == 1
    Memory.of(bench.context).forget_session(talk().session_id)
    assert waiting(bench.home) == []
    assert not any(b"tides.db" in path.read_bytes() for path in bench.home.rglob("*") if path.is_file())


def test_in_an_encrypted_store_an_answer_waits_encrypted(writing_bench, monkeypatch, tmp_path):
    talk().write(writing_bench.projects)
    with ModelServer(always(answers(FACT))) as server:
        bench = replace(writing_bench, url=server.url)
        bench.stage()
        killed_while_keeping(bench, monkeypatch)
        encrypt(bench.context, tmp_path / "key")
        [path] = (bench.home / ARRIVALS_PATH).iterdir()
        assert is_sealed(path.read_bytes()) and b"SQLite" not in path.read_bytes()


def test_a_request_that_was_under_way_at_a_kill_is_counted_in_full_and_the_report_says_so(home, monkeypatch):
    with ModelServer(always(answers())) as server:
        with monkeypatch.context() as patch:
            patch.setattr("cortex.flows.writers.anthropic_api.AnthropicApi.ask", dies)
            with pytest.raises(Killed):
                ask(a_run(home, server.url), [request()])
        monkeypatch.setattr("cortex.storage.model_calls._is_alive", lambda holder, since, now: False)
        run = a_run(home, server.url)
        result, _ = ask(run, [request()])
    assert (result.lost, result.answered) == (1, 1)
    assert any("counted in full, and asked again" in note for note in run.report.notes)
    lost, settled = Spending(home).attempts()
    assert (lost.state, lost.spent_nano, settled.state) == (LOST, lost.reserved_nano, SETTLED)


# What is done with an answer first.
WRITING_DOWN = (
    "os.mkdir runs/arrivals",
    "os.mkdir staging/tmp",
    "open staging/tmp/",
    "os.rename staging/tmp/",
)
NEVER = 100_000


def operations_of(bench: WritingBench, operation: int, log: Path) -> list[str]:
    """Read the sessions in a process that is killed before an operation; return what it began to do."""
    log.unlink(missing_ok=True)
    child = PROCESSES.Process(
        target=write_up_to, args=(bench.home, bench.projects, bench.url, operation, log)
    )
    child.start()
    child.join(120)
    return log.read_text().splitlines()


def test_killed_at_any_file_operation_it_is_paid_twice_only_while_it_is_being_written_down(
    writing_bench, tmp_path
):
    talk().write(writing_bench.projects)
    WritingBench(writing_bench.home, writing_bench.projects).backfill()
    before, log = tmp_path / "before", tmp_path / "log"
    shutil.copytree(writing_bench.home, before)
    with ModelServer(always(answers(FACT))) as server:
        undisturbed = operations_of(replace(writing_bench, url=server.url), NEVER, log)
    begin = undisturbed.index("sqlite3.connect runs/spending.sqlite")
    asked_twice = []
    for operation in range(begin, len(undisturbed), 1 if HAS_EVERY_CASE else 5):
        shutil.rmtree(writing_bench.home)
        shutil.copytree(before, writing_bench.home)
        with ModelServer(always(answers(FACT))) as server:
            bench = replace(writing_bench, url=server.url)
            last = operations_of(bench, operation, log)[-1]
            read_sessions(bench)
            attempts = Spending(bench.home).attempts()
            assert (bench.store.lake.read(REPLIES).num_rows, waiting(bench.home)) == (1, [])
            # Each time the service was asked has a row, and what nothing is known of counts in full.
            assert len(server.asked) <= len(attempts) <= 2
            assert [each.state for each in attempts].count(SETTLED) == 1
            asked_twice += [last] * (len(server.asked) > 1)
    assert all(name.startswith(WRITING_DOWN) for name in asked_twice), asked_twice
