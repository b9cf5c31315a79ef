"""A service that lies, leads elsewhere, floods or never ends costs at most what was reserved, and no run."""

import json
import resource
import time
from datetime import timedelta
from typing import Any

import pytest

from cortex.flows.writers import anthropic_api
from cortex.storage.model_calls import (
    DailyLimits,
    Reserved,
    Spending,
    SpendingClaim,
    Withheld,
)
from tests.model_server import Answer, ModelServer, always, in_turn
from tests.store.flows.test_asking import FACTS, NOW, a_run, ask, request, requests
from tests.store.flows.test_failures_of_models import a_client, result_of_client

NO_USAGE = {
    "beyond 64 bit": {"input_tokens": 10**30, "output_tokens": 1},
    "below zero": {"input_tokens": -(10**9), "output_tokens": -(10**9)},
    "words": {"input_tokens": "abc", "output_tokens": 5},
    "a fraction": {"input_tokens": 1.5, "output_tokens": 5},
    "truth": {"input_tokens": True, "output_tokens": 5},
    "a list": [1],
    "more than any model reads": {"input_tokens": 10**9, "output_tokens": 5},
    "a cache below zero": {"input_tokens": 5, "output_tokens": 5, "cache_read_input_tokens": -(10**6)},
}


@pytest.mark.parametrize("usage", NO_USAGE.values(), ids=list(NO_USAGE))
@pytest.mark.parametrize("streams", [True, False])
def test_usage_that_cannot_be_counts_as_what_was_reserved(home, usage, streams):
    with ModelServer(in_turn(Answer(FACTS.text, usage=usage), FACTS), streams=streams) as server:
        result, _ = ask(a_run(home, server.url), requests(2))
    assert (result.failed, result.answered) == (1, 1)
    first, second = Spending(home).attempts()
    assert (first.state, first.spent_nano) == ("lost", first.reserved_nano)
    assert second.state == "settled"


@pytest.mark.parametrize("usage", NO_USAGE.values(), ids=list(NO_USAGE))
def test_usage_by_the_client_that_cannot_be_counts_as_what_was_reserved(home, tmp_path, monkeypatch, usage):
    script = result_of_client(is_error=False, usage=usage, structured_output={"facts": []})
    a_client(tmp_path, monkeypatch, script)
    result, _ = ask(a_run(home, None, writer="claude"), requests(1))
    [attempt] = Spending(home).attempts()
    assert (result.failed, attempt.state, attempt.spent_nano) == (1, "lost", attempt.reserved_nano)


def test_an_answer_that_was_free_costs_what_its_text_must(home):
    free = Answer(json.dumps({"facts": ["x" * 800]}), usage={"input_tokens": 0, "output_tokens": 0})
    with ModelServer(always(free)) as server:
        _, [reply] = ask(a_run(home, server.url), [request("Tide. " * 400)])
    [attempt] = Spending(home).attempts()
    # A token has seldom more than eight bytes: 2,400 are 300 tokens at least, and 800 are 100.
    assert attempt.input_tokens == reply.input_tokens >= 300
    assert attempt.output_tokens == reply.output_tokens >= 100
    assert attempt.spent_nano > 0


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(home, status):
    with ModelServer(always(FACTS)) as elsewhere:
        location = {"location": f"{elsewhere.url}/v1/messages"}
        with ModelServer(always(Answer(status=status, headers=location))) as server:
            result, _ = ask(a_run(home, server.url), requests(3))
        assert elsewhere.asked == []
    assert result.waiting == 3 and "leads elsewhere" in result.stopped and "base_url" in result.stopped
    assert len(server.asked) == 1


@pytest.mark.first_is_quick
def test_headers_without_end_are_ended_with_the_answers_time(home, monkeypatch):
    monkeypatch.setattr(anthropic_api, "API_ANSWER_S", 1.0)
    began = time.monotonic()
    with ModelServer(in_turn(Answer(header_drip_s=0.1), FACTS)) as server:
        result, _ = ask(a_run(home, server.url), requests(2))
        assert time.monotonic() - began < 10.0
    assert (result.failed, result.answered) == (1, 1)
    assert [attempt.state for attempt in Spending(home).attempts()] == ["lost", "settled"]
    assert "longer than 1 s" in " ".join(result.notes())


def test_what_the_client_floods_is_not_held(home, tmp_path, monkeypatch):
    a_client(tmp_path, monkeypatch, "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | head -c 400000000")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result, _ = ask(a_run(home, None, writer="claude"), requests(1))
    assert (result.failed, Spending(home).attempts()[0].state) == (1, "lost")
    assert "larger than" in " ".join(result.notes())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_a_client_that_floods_its_complaints_is_heard_all_the_same(home, tmp_path, monkeypatch):
    answer = result_of_client(
        is_error=False, structured_output={"facts": []}, usage={"input_tokens": 9, "output_tokens": 5}
    )
    a_client(tmp_path, monkeypatch, f"yes complaint | head -c 3000000 >&2\n{answer}")
    assert ask(a_run(home, None, writer="claude"), requests(1))[0].answered == 1


def test_a_clock_that_is_set_back_brings_no_second_budget(home):
    spending, limits = Spending(home), DailyLimits(100, 10)

    def claim(name: str, at: Any) -> Any:
        return spending.reserve(SpendingClaim(name, "session", "api", "m", 100), limits, at)

    assert isinstance(claim("a", NOW), Reserved)
    for days in (1, 3, 7):
        assert isinstance(claim(f"b{days}", NOW - timedelta(days=days)), Withheld)
    assert isinstance(claim("c", NOW + timedelta(days=1)), Reserved)
    # A clock that was years ahead, as with a flat battery, does not silence the model until then.
    assert isinstance(claim("d", NOW - timedelta(days=400)), Reserved)
