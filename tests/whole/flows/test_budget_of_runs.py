"""Whole runs with a language model on loopback: the plan before, the bill after, nothing the second time."""

import dataclasses
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.writer_requests import PURPOSES, copied, played, read_in
from cortex.flows.operations.maintain.cost import read_cost, read_plan
from cortex.storage.model_calls import Spending
from cortex.storage.settings.settings import ModelBudget
from cortex.transforms.schemas import REPLIES
from tests.bench import NOW, words_for_a_model
from tests.model_server import (
    HOSTILE,
    Answer,
    Body,
    ModelServer,
    Recorded,
    always,
    noisy,
    oracle,
    turns_shown,
)
from tests.transcripts import Talk
from tests.whole.flows.test_writing import FACT, OUTCOME, WritingBench, talk

ANSWER = {"outcome": OUTCOME, "facts": [FACT]}


def know(content: str) -> dict[str, Any]:
    """Return the right answer about any session of these tests."""
    return ANSWER


def bench_of(home: Path, projects: Path, url: str, sessions: int, **chosen: Any) -> WritingBench:
    for number in range(sessions):
        session = talk(f"s{number}", cwd=f"/home/dev/p{number}")
        session.user(f"Please also note that station {number} reports every six minutes.")
        session.write(projects)
    return WritingBench(home, projects, words_for_a_model, url=url, **chosen)


def shown(bench: WritingBench) -> list[str]:
    """Return what is shown in any project."""
    tables = [bench.store.tables.open(scope, "memories").read() for scope in bench.store.tables.scopes()]
    return [row["text"] for table in tables for row in table.to_pylist() if row["status"] == "active"]


def test_the_plan_the_bill_and_the_ledger_agree_and_a_second_run_asks_nothing(home, projects):
    with ModelServer(oracle(know)) as server:
        bench = bench_of(home, projects, server.url, 3)
        off = dataclasses.replace(bench, url="")
        off.backfill()
        [planned, pairs] = read_plan(bench.context).stages
        bench.run("ingest")
        assert planned.requests == server.billed["requests"] == 3
        assert pairs.requests <= 1  # three projects: no pair came of it
        # The server counts four bytes a token and the plan three, on the safe side.
        assert 1.0 < planned.input_tokens / server.billed["input_tokens"] < 1.5
        replies = bench.store.lake.read(REPLIES).to_pylist()
        attempts = Spending(home).attempts()
        for name in ("input_tokens", "output_tokens"):
            billed = server.billed[name]
            assert (
                billed == sum(row[name] for row in replies) == sum(getattr(each, name) for each in attempts)
            )
        report = read_cost(bench.context)
        assert report.total.usd == pytest.approx(sum(row["usd"] for row in replies))
        assert len(report.by_project) == 3 and report.facts >= 3 and report.reserved_usd == 0.0
        bench.run("nightly")
        assert (server.billed["requests"], read_plan(bench.context).stages[0].requests) == (3, 0)


def test_a_backfill_sends_a_batch_and_the_night_takes_it_in(home, projects):
    with ModelServer(oracle(know)) as server:
        bench = bench_of(home, projects, server.url, 6)
        report = bench.backfill()
        assert (len(server.batches), len(server.asked)) == (1, 0)
        assert any("in a batch" in note for note in report.notes)
        assert FACT["statement"] not in shown(bench)  # what rules found stands in meanwhile
        server.end_batches()
        bench.run("nightly")
        assert FACT["statement"] in shown(bench)
    assert (len(server.batches), server.billed["requests"]) == (1, 6)
    assert read_cost(bench.context).total.output_tokens == server.billed["output_tokens"]


def test_killed_while_a_batch_is_taken_in_the_ledger_still_equals_the_bill(home, projects, monkeypatch):
    with ModelServer(oracle(know)) as server:
        bench = bench_of(home, projects, server.url, 6)
        bench.backfill()
        server.end_batches()

        def killed(*args: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Spending, "settle", killed)
            with pytest.raises(KeyboardInterrupt):
                bench.run("nightly")
        bench.run("nightly")
    assert (len(server.batches), server.billed["requests"]) == (1, 6)
    assert {attempt.state for attempt in Spending(home).attempts()} == {"settled"}
    assert read_cost(bench.context).total.output_tokens == server.billed["output_tokens"]


def test_what_does_not_fit_the_budget_waits_and_the_next_day_asks_it(home, projects):
    with ModelServer(oracle(know)) as server:
        bench = bench_of(home, projects, server.url, 3, budget=ModelBudget(daily_requests=2))
        report = bench.backfill()
        assert len(server.asked) == 2
        assert any("wait for a later run" in note for note in report.notes)
        bench = dataclasses.replace(bench, budget=ModelBudget())
        bench.run("nightly")
    assert len(server.asked) == 3


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    "failure", ["bad key", "out of credit", "refusal", "half a JSON", "hung up", "no JSON"]
)
def test_a_model_that_fails_leaves_the_facts_of_the_rules_and_the_run_goes_on(home, projects, failure):
    with ModelServer(always(HOSTILE[failure])) as server:
        bench = bench_of(home, projects, server.url, 2)
        report = bench.backfill()
    assert shown(bench) != []
    assert any("anguage model" in note for note in report.notes)


def test_a_noisy_model_adds_nothing_that_its_session_lacks(home, projects):
    with ModelServer(noisy(know, seed=4)) as server:
        bench = bench_of(home, projects, server.url, 4)
        bench.backfill()
    invented = [text for text in shown(bench) if "tide tables" in text.lower() and "SQLite" not in text]
    assert [text for text in invented if text not in shown(dataclasses.replace(bench, url=""))] == []


def test_recorded_answers_are_found_by_the_request_that_was_sent(home, projects, tmp_path):
    folder = tmp_path / "recorded"
    folder.mkdir()
    bodies: list[Body] = []

    def note(body: Body, number: int) -> Answer:
        bodies.append(body)
        return Answer(json.dumps(ANSWER))

    with ModelServer(note) as server:
        bench = bench_of(home, projects, server.url, 1)
        bench.backfill()
    [row] = bench.store.lake.read(REPLIES).to_pylist()
    (folder / f"{row['request_id']}.json").write_text(json.dumps({"text": json.dumps(ANSWER)}))
    answer = Recorded(folder, [("session", "session@2")])
    assert answer(bodies[0], 0).text == json.dumps(ANSWER)
    assert answer(bodies[0] | {"system": "Other words."}, 0).status == 401


def test_only_for_measuring_a_session_is_answered_by_what_was_said_of_the_same_turns(tmp_path):
    def asked(known: str, turns: str, before: str = "<about>\nnothing\n</about>") -> Body:
        content = f"{before}\n<known>\n{known}\n</known>\n<session>\n{turns}\n</session>\n\nNow write."
        return {"messages": [{"content": content}], "system": "s", "model": "m", "max_tokens": 1} | {
            "output_config": {"format": {"schema": {}}}
        }

    def shown_in(body: Body) -> str:
        return turns_shown(body["messages"][0]["content"])

    first, piece = asked("nothing yet", "[t1] person: hi"), asked("", "[t1] person: hi", "part 1")
    assert shown_in(first) == shown_in(asked("[0123456789] Tides", "[t1] person: hi"))
    assert shown_in(first) != shown_in(asked("nothing yet", "[t1] person: ho"))
    assert shown_in(piece) == "" == turns_shown("<project>\n[m1] Tides\n</project>")
    row = {"turns": shown_in(first), "text": "{}"}
    (tmp_path / "r.json").write_text(json.dumps(row))
    (tmp_path / "other.json").write_text(json.dumps({"text": "{}"}))
    again = asked("[0123456789] Tides", "[t1] person: hi")
    for is_lenient, status in ((True, 200), (False, 401)):
        answer = Recorded(tmp_path, PURPOSES, is_lenient=is_lenient)
        assert answer(again, 0).status == status
        assert answer(piece, 1).status == 401


def test_a_store_is_run_to_the_first_request_without_an_answer_in_the_order_of_reading(
    home, projects, tmp_path
):
    for number in range(5):
        session = Talk(f"s{number}", start=NOW - timedelta(hours=9 - 2 * number))
        session.user(f"Note this for the project: Keep gauge {number} in reef{number}.csv. A line a reading.")
        session.assistant("Noted: one line a reading, with the time in UTC and the level in millimetres.")
        session.write(projects)
    read_in(home, projects)
    replies = tmp_path / "replies"
    replies.mkdir()
    asked: list[str] = []
    while missing := played(
        copied(home, tmp_path / f"h{len(asked)}"), replies, embedder_of=words_for_a_model
    ):
        answer: dict[str, Any] = {"over": [], "same": [], "contradicts": [], "tell": []}
        asked.append(missing.prompt)
        if "<session>" in missing.content:
            quote = re.findall(r"Keep gauge \d in reef\d.csv", missing.content)[-1]
            asked[-1] = quote[11]
            plain = {"statement": quote.replace("Keep", "Keeps"), "quote": quote, "why": "", "instead_of": ""}
            answer = {"outcome": OUTCOME, "facts": [FACT | plain]}
        (replies / f"{missing.request_id}.json").write_text(json.dumps({"text": json.dumps(answer)}))
    assert asked == ["2", "3", "4", "0", "1", "project@1"]
    # Another store of the same transcripts, on another day and by other stages, asks exactly the same.
    recorded = Recorded(replies, PURPOSES)
    with ModelServer(recorded) as server:
        bench = WritingBench(tmp_path / "other", projects, words_for_a_model, url=server.url)
        bench.stage()
        bench.run("nightly", NOW + timedelta(days=90))
    assert (recorded.count, recorded.missing) == (len(asked), None)
