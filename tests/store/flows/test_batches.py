"""Batches over several runs: each answer is taken in once, whatever a kill left behind."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex.flows.asking_model.asking import AskingResult, ask_all
from cortex.flows.run.run import Run
from cortex.storage import model_calls
from cortex.storage.model_calls import Spending
from cortex.storage.settings.settings import ModelBudget
from cortex.transforms.writer.request import ModelRequest, Reply
from tests.model_server import Answer, ModelServer, always
from tests.store.flows.test_asking import FACTS, a_run, requests

BUDGET = ModelBudget(daily_usd=1.0)


def a_nightly(home: Path, url: str, budget: ModelBudget = BUDGET) -> Run:
    run = a_run(home, url, budget)
    run.report.flow = "nightly"
    return run


class Nights:
    """Runs over one store, each asking what no reply is kept to."""

    def __init__(self, home: Path, server: ModelServer, budget: ModelBudget = BUDGET) -> None:
        self.home, self.server, self.budget = home, server, budget
        self.kept: dict[str, Reply] = {}

    def run(self, asked: list[ModelRequest], clock: Any = None) -> AskingResult:
        def keep(reply: Reply) -> None:
            assert reply.request_id not in self.kept
            self.kept[reply.request_id] = reply

        pending = [request for request in asked if request.request_id not in self.kept]
        run = a_nightly(self.home, self.server.url, self.budget)
        return ask_all(run, pending, keep, clock=clock or (lambda: datetime.now(UTC)))

    def states(self) -> Counter[str]:
        return Counter(attempt.state for attempt in Spending(self.home).attempts())


def test_a_batch_is_sent_by_one_run_and_taken_in_by_a_later_one_at_half_the_price(home):
    with ModelServer(always(FACTS)) as server:
        nights = Nights(home, server)
        first = nights.run(requests(8))
        assert (first.in_batch, first.answered, len(server.batches)) == (8, 0, 1)
        again = nights.run(requests(8))  # nothing has come yet, and nothing is asked twice
        assert (again.in_batch, len(server.batches), nights.kept) == (8, 1, {})
        server.end_batches()
        last = nights.run(requests(8))
        assert (last.answered, last.in_batch, len(nights.kept), len(server.asked)) == (8, 0, 8, 8)
        for index, request in enumerate(requests(8)):
            assert nights.kept[request.request_id].request_id == requests(8)[index].request_id
    attempts = Spending(home).attempts()
    assert sum(each.input_tokens for each in attempts) == server.billed["input_tokens"]
    assert sum(each.output_tokens for each in attempts) == server.billed["output_tokens"]
    # $.10 in and $.50 out a million, half of it: 50 and 250 nano-dollars a token.
    for each in attempts:
        assert each.spent_nano == 50 * each.input_tokens + 250 * each.output_tokens


def test_what_expires_or_fails_is_asked_again_and_costs_nothing(home):
    asked = requests(6)
    with ModelServer(always(FACTS)) as server:
        nights = Nights(home, server)
        nights.run(asked)
        server.end_batches(but=[asked[0].request_id, asked[1].request_id])
        result = nights.run(asked)  # two are left, which are asked directly
    assert (result.answered, len(nights.kept)) == (6, 6)
    assert nights.states() == {"settled": 6, "released": 2}


def test_a_kill_between_create_and_the_id_pays_nothing_twice(home, monkeypatch):
    asked = requests(6)
    with ModelServer(always(FACTS)) as server:
        nights = Nights(home, server)
        server.drops_batches = True
        nights.run(asked)
        assert len(server.batches) == 1 and nights.states() == {"batched": 6}
        server.drops_batches = False
        # The process that sent it is gone.
        monkeypatch.setattr(model_calls, "_is_alive", lambda holder, since, now: False)
        result = nights.run(asked)
        assert (result.in_batch, len(server.batches)) == (6, 1)  # one that goes on may be it
        server.end_batches()
        result = nights.run(asked)
    assert (result.answered, len(server.batches), len(server.asked)) == (6, 1, 6)


def test_a_kill_before_create_leaves_nothing_reserved(home, monkeypatch):
    asked = requests(6)
    with ModelServer(always(FACTS)) as server:
        nights = Nights(home, server)
        claims_sent = monkeypatch.setattr
        claims_sent("cortex.flows.asking_model.asking.submit", killed)
        with pytest.raises(KeyboardInterrupt):
            nights.run(asked)
        assert nights.states() == {"batched": 6} and not server.batches
        monkeypatch.undo()
        # As long as the process may live, its intent stands; later there is no such batch.
        assert nights.run(asked).in_batch == 6
        later = datetime.now(UTC) + timedelta(hours=1)
        result = nights.run(asked, lambda: later)
    assert (result.in_batch, len(server.batches)) == (6, 1)
    assert nights.states() == {"released": 6, "batched": 6}


def killed(*args: object) -> str:
    raise KeyboardInterrupt


def test_an_answer_waits_until_its_request_is_asked_again_and_is_settled_after_a_week(home):
    with ModelServer(always(FACTS)) as server:
        nights = Nights(home, server)
        nights.run(requests(6))
        server.end_batches()
        grown = [replace(request, content=f"{request.content} And on.") for request in requests(6)]
        result = nights.run(grown)
        assert (result.in_batch, nights.kept, nights.states()) == (6, {}, {"batched": 12})
        assert nights.run(requests(2)).answered == 2  # what a run had no room for before
        assert nights.states() == {"settled": 2, "batched": 10}
        later = datetime.now(UTC) + timedelta(days=8)
        nights.run(grown, lambda: later)
    assert nights.states() == {"settled": 6, "batched": 6}
    assert len(server.batches) == 2


def test_a_batch_holds_what_fits_the_budget_and_the_rest_waits(home):
    with ModelServer(always(FACTS)) as server:
        # Counted, a request reserves $.00025 and a little.
        nights = Nights(home, server, ModelBudget(daily_usd=0.0008))
        result = nights.run(requests(8))
        assert (result.in_batch, result.waiting) == (3, 5)
        nights = Nights(home, server, ModelBudget(daily_usd=1.0, run_requests=2))
        assert (nights.run(requests(8)).in_batch, len(server.batches)) == (3 + 2, 2)


def test_an_endpoint_without_batches_is_asked_directly(home):
    with ModelServer(always(FACTS), takes_batches=False) as server:
        result = Nights(home, server).run(requests(6))
    assert (result.answered, result.in_batch, len(server.asked)) == (6, 0, 6)


def test_what_is_refused_in_a_batch_is_refused_and_charged(home):
    with ModelServer(always(Answer("", stop_reason="refusal"))) as server:
        nights = Nights(home, server)
        nights.run(requests(6))
        server.end_batches()
        result = nights.run(requests(6))
    assert (result.refused, nights.states()) == (6, {"settled": 6})


def test_a_session_that_has_just_ended_is_asked_directly(home):
    with ModelServer(always(FACTS)) as server:
        run = a_run(home, server.url, BUDGET)
        run.report.flow = "ingest"
        result = ask_all(run, requests(6), lambda reply: None)
    assert (result.answered, server.batches) == (6, {})
    assert json.dumps(result.notes()) == "[]"
