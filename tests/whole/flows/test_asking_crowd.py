"""Many processes ask at once and are killed: the cap holds, and no kept answer is paid for twice."""

import json
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from cortex.flows.context import utc_now
from cortex.storage.model_calls import SETTLED, Spending
from cortex.storage.settings.reference import read_policy
from cortex.storage.settings.settings import ModelBudget
from cortex.transforms.writer.request import NANO, price_of
from tests.asking_process import ask_once, crowd_requests
from tests.model_server import Answer, ModelServer, always
from tests.processes import PROCESSES

SLOW_ANSWER = Answer(json.dumps({"facts": []}), delay_s=0.02)
PLENTY = ModelBudget(daily_usd=10.0, daily_requests=100_000, run_requests=100_000)


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    folder = tmp_path / "replies"
    folder.mkdir()
    return folder


def start(*args: object) -> BaseProcess:
    process = PROCESSES.Process(target=ask_once, args=args, daemon=True)
    process.start()
    return process


def billed_nano(server: ModelServer) -> int:
    price = price_of(read_policy(None).rows["model_prices"].values(), "claude-haiku-5-5", utc_now().date())
    return price.nano_usd(server.billed["input_tokens"], server.billed["output_tokens"])


def requests_of(server: ModelServer) -> Counter[str]:
    """Return content → how often the server was asked it."""
    return Counter(server.contents())


def test_eight_processes_ask_each_request_once_and_the_ledger_equals_the_bill(home, replies):
    with ModelServer(always(SLOW_ANSWER)) as server:
        processes = [start(home, server.url, 24, PLENTY, replies) for _ in range(8)]
        for process in processes:
            process.join(120)
    assert requests_of(server) == Counter(request.content for request in crowd_requests(24))
    attempts = Spending(home).attempts()
    assert {attempt.state for attempt in attempts} == {SETTLED}
    for name in ("input_tokens", "output_tokens"):
        assert sum(getattr(attempt, name) for attempt in attempts) == server.billed[name]
    assert sum(attempt.spent_nano for attempt in attempts) == billed_nano(server)


def test_eight_processes_do_not_pass_the_cap(home, replies):
    # A request reserves $.00062 (1,120 tokens in at most, and 1,000 out) and costs $.000005.
    budget = ModelBudget(daily_usd=0.001, daily_requests=10)
    with ModelServer(always(SLOW_ANSWER)) as server:
        processes = [start(home, server.url, 24, budget, replies) for _ in range(8)]
        for process in processes:
            process.join(120)
    total = Spending(home).total(utc_now())
    assert 0 < server.billed["requests"] <= 10
    assert billed_nano(server) <= total.spent_nano <= 0.001 * NANO
