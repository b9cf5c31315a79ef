"""A language model is asked under the budget, and no failure of one request touches another."""

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex.flows.asking_model import asking
from cortex.flows.asking_model.asking import AskingResult, ask_all
from cortex.flows.run.run import Run
from cortex.flows.run_report import RunReport
from cortex.flows.writers import anthropic_api
from cortex.storage.model_calls import Spending
from cortex.storage.model_failure import WRITER, read_failure
from cortex.storage.settings.reference import read_policy
from cortex.storage.settings.settings import ModelBudget, ModelSettings, Settings
from cortex.storage.store import Store
from cortex.transforms.writer.request import ModelRequest, Reply, price_of
from tests.model_server import HOSTILE, Answer, ModelServer, always, in_turn

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
FACTS = Answer(json.dumps({"facts": []}))
SCHEMA = json.dumps(
    {"additionalProperties": False, "properties": {}, "type": "object"}, separators=(",", ":")
)


def request(text: str = "We keep the readings in SQLite.", **changes: Any) -> ModelRequest:
    base = ModelRequest("session", "claude-haiku-5-5", "session@1", "You read.", text, SCHEMA, 1_000)
    return dataclasses.replace(base, **changes)


def requests(count: int) -> list[ModelRequest]:
    return [request(f"Session {number}.") for number in range(count)]


def a_run(home: Path, url: str | None, budget: ModelBudget | None = None, writer: str = "api") -> Run:
    models = ModelSettings(writer, api_key="sk-none", claude_token="sk-none", base_url=url)
    settings = Settings(home, models=models, budget=budget or ModelBudget())
    report = RunReport("ingest", "plain", NOW)
    return Run(Store(home), settings, read_policy(home), NOW, report)


def ask(run: Run, asked: list[ModelRequest]) -> tuple[AskingResult, list[Reply]]:
    kept: list[Reply] = []
    result = ask_all(run, asked, kept.append, clock=lambda: NOW, sleep=lambda seconds: None)
    return result, kept


def test_each_request_is_answered_kept_and_settled_to_the_token(home):
    with ModelServer(always(FACTS)) as server:
        result, kept = ask(a_run(home, server.url), [*requests(3), request("Session 0.")])
    assert (result.answered, len(kept), len(server.asked)) == (3, 3, 3)
    price = price_of(read_policy(None).rows["model_prices"].values(), "claude-haiku-5-5", NOW.date())
    for reply in kept:
        assert reply.usd == price.nano_usd(reply.input_tokens, reply.output_tokens) / 1e9
    attempts = Spending(home).attempts()
    assert [attempt.state for attempt in attempts] == ["settled"] * 3
    assert sum(attempt.input_tokens for attempt in attempts) == server.billed["input_tokens"]
    assert sum(attempt.output_tokens for attempt in attempts) == server.billed["output_tokens"]
    assert Spending(home).total(NOW).spent_nano == sum(round(reply.usd * 1e9) for reply in kept)


def test_what_is_sent_is_the_request_and_nothing_else(home):
    with ModelServer(always(FACTS)) as server:
        ask(a_run(home, server.url), [request()])
    assert server.asked == [
        {
            "model": "claude-haiku-5-5",
            "max_tokens": 1_000,
            "system": "You read.",
            "messages": [{"role": "user", "content": "We keep the readings in SQLite."}],
            "output_config": {"format": {"type": "json_schema", "schema": json.loads(SCHEMA)}},
            "stream": True,
        }
    ]


def test_an_endpoint_that_answers_in_one_piece_is_understood(home):
    with ModelServer(always(FACTS), streams=False) as server:
        result, kept = ask(a_run(home, server.url), [request()])
    assert (result.answered, kept[0].text, kept[0].stop_reason) == (1, FACTS.text, "end_turn")
    assert (kept[0].input_tokens, kept[0].output_tokens) == (
        server.billed["input_tokens"],
        server.billed["output_tokens"],
    )


def test_an_answer_that_is_being_written_is_waited_for_and_silence_is_not(home, monkeypatch):
    monkeypatch.setattr(anthropic_api, "SILENCE_S", 0.5)
    with ModelServer(always(dataclasses.replace(FACTS, drip_s=0.001))) as server:
        assert ask(a_run(home, server.url), [request()])[0].answered == 1
    with ModelServer(always(dataclasses.replace(FACTS, delay_s=1.0))) as server:
        result, _ = ask(a_run(home, server.url), [request("Another session.")])
    # It may have been charged: it counts in full and a later run asks again.
    assert (result.failed, Spending(home).attempts()[-1].state) == (1, "lost")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, 1.0),
        ({}, 1.0),
    ],
)
def test_a_busy_service_is_asked_again_when_it_says(home, headers, seconds):
    busy = Answer(status=429, error="rate_limit_error", headers=headers)
    pauses: list[float] = []
    with ModelServer(in_turn(busy, FACTS)) as server:
        run = a_run(home, server.url)
        result = ask_all(run, [request()], lambda reply: None, clock=lambda: NOW, sleep=pauses.append)
    assert (result.answered, pauses) == (1, [seconds])


def test_with_no_language_model_nothing_happens(home):
    result, kept = ask(a_run(home, None, writer="none"), requests(2))
    assert (result, kept) == (AskingResult(), [])
    assert not Spending(home).path.exists()


# What becomes of the first of three requests, and of the rest, when the service does this to the first.
OUTCOMES = {
    "bad key": ("waiting", 0),
    "no permission": ("waiting", 0),
    "out of credit": ("waiting", 0),
    "unknown model": ("waiting", 0),
    "too long": ("refused", 2),
    "bad request": ("refused", 2),
    "rate limit": ("answered", 2),
    "overloaded": ("answered", 2),
    "server fault": ("answered", 2),
    "refusal": ("refused", 2),
    "cut off": ("refused", 2),
    "context exceeded": ("refused", 2),
    "half a JSON": ("refused", 2),
    "no JSON": ("refused", 2),
    "a list": ("refused", 2),
    "10 MB": ("failed", 2),
    "half a message": ("failed", 2),
    "no message": ("failed", 2),
    "hung up": ("failed", 2),
    "broken off": ("failed", 2),
    "slow drip": ("failed", 2),
    "late": ("failed", 2),
}


@pytest.mark.first_is_quick
@pytest.mark.parametrize("failure", HOSTILE)
def test_one_failure_stops_no_other_request_unless_it_would_meet_all(home, failure, monkeypatch):
    # A busy machine takes over a second to the first answer; only what never ends is cut short.
    monkeypatch.setattr(anthropic_api, "API_ANSWER_S", 1.0 if OUTCOMES[failure][0] == "failed" else 20.0)
    with ModelServer(in_turn(HOSTILE[failure], FACTS)) as server:
        run = a_run(home, server.url)
        result, kept = ask(run, requests(3))
    outcome, others = OUTCOMES[failure]
    expected = AskingResult(answered=others)
    setattr(expected, outcome, getattr(expected, outcome) + 3 - others)
    names = ("answered", "refused", "failed", "waiting", "elsewhere")
    assert {name: getattr(result, name) for name in names} == {
        name: getattr(expected, name) for name in names
    }
    assert bool(result.stopped) == (outcome == "waiting")
    assert bool(run.report.notes) == (outcome != "answered")
    # What was billed is in the ledger, to the token where it arrived, and in full where it did not.
    attempts = Spending(home).attempts()
    settled = [attempt for attempt in attempts if attempt.state == "settled"]
    assert sum(attempt.output_tokens for attempt in settled) == sum(reply.output_tokens for reply in kept)
    assert len(attempts) == len(server.asked)
    lost = [attempt for attempt in attempts if attempt.state == "lost"]
    assert len(settled) + len(lost) == server.billed["requests"]
    assert all(attempt.spent_nano > 0 for attempt in lost)


def test_a_service_that_is_down_is_not_asked_for_everything(home):
    with ModelServer(always(HOSTILE["overloaded"])) as server:
        result, kept = ask(a_run(home, server.url), requests(20))
    assert len(server.asked) == asking.TRIES * asking.FAILURES_IN_A_ROW
    assert (result.failed, result.waiting, kept) == (4, 16, [])
    assert Spending(home).total(NOW).spent_nano == 0


def test_since_when_nothing_is_answered_is_noted_until_something_is(home):
    broke, rich = ModelBudget(daily_usd=0), ModelBudget()
    with ModelServer(always(FACTS)) as server:
        ask(a_run(home, server.url, broke), requests(2))
        first = read_failure(home, WRITER)
        ask_all(a_run(home, server.url, broke), requests(2), print, clock=lambda: NOW + timedelta(days=2))
        assert first == read_failure(home, WRITER) and first.failed_at == NOW
        assert "sk-none" not in (home / WRITER).read_text()
        ask(a_run(home, server.url, rich), requests(2))
    assert read_failure(home, WRITER) is None


def test_what_does_not_fit_the_days_dollars_waits(home):
    with ModelServer(always(FACTS)) as server:
        run = a_run(home, server.url, ModelBudget(daily_usd=0.0011))
        result, kept = ask(run, requests(3))
        # 1,000 tokens out reserve $.0005 each; what is not used is given back when the answer is settled.
        assert (result.answered, result.waiting) == (3, 0)
        run = a_run(home, server.url, ModelBudget(daily_usd=0.0005))
        result, kept = ask(run, requests(3))
    assert (result.answered, result.waiting, kept) == (0, 3, [])
    assert any("wait for a later run" in note for note in run.report.notes)


def test_a_request_that_fits_by_the_providers_count_is_asked(home):
    text = "The tide gauge reports every six minutes. " * 2_000
    # 84,000 bytes: at most so many tokens ($.0084), 21,000 by the count ($.0021), and $.0005 for the answer.
    with ModelServer(always(FACTS)) as server:
        result, _ = ask(a_run(home, server.url, ModelBudget(daily_usd=0.003)), [request(text)])
    assert result.answered == 1
    with ModelServer(always(FACTS), counts_tokens=False) as server:
        result, _ = ask(a_run(home, server.url, ModelBudget(daily_usd=0.003)), [request(text + "!")])
    assert (result.answered, result.waiting, server.asked) == (0, 1, [])


@pytest.mark.parametrize("budget", [ModelBudget(daily_requests=2), ModelBudget(run_requests=2)])
def test_requests_are_capped_by_day_and_by_run(home, budget):
    with ModelServer(always(FACTS)) as server:
        result, _ = ask(a_run(home, server.url, budget), requests(5))
        assert (result.answered, result.waiting, len(server.asked)) == (2, 3, 2)
        again, _ = ask(a_run(home, server.url, budget), requests(5)[2:])
    assert again.answered == (0 if budget.daily_requests == 2 else 2)
