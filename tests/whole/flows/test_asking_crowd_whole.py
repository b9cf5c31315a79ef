"""Many processes ask at once and are killed: the cap holds, and no kept answer is paid for twice."""

import random
import time
from collections import Counter

from cortex.flows.context import utc_now
from cortex.storage.model_calls import (
    LOST,
    OPEN,
    SETTLED,
    Spending,
)
from cortex.storage.settings.settings import ModelBudget
from cortex.transforms.writer.request import NANO
from tests.asking_process import ask_once, crowd_requests
from tests.model_server import ModelServer, always
from tests.whole.flows.test_asking_crowd import (
    PLENTY,
    SLOW_ANSWER,
    billed_nano,
    replies,  # noqa: F401
    requests_of,
    start,
)


def wait_for(server: ModelServer, asked: int) -> None:
    """Wait until the server was asked so often, at most ten seconds."""
    ends_at = time.monotonic() + 10.0
    while len(server.asked) < asked and time.monotonic() < ends_at:
        time.sleep(0.002)


def killed_crowds(server: ModelServer, kills: int, *args: object) -> None:
    """Start crowds of eight, and kill each while some of its requests are under way."""
    source = random.Random(kills)
    for _ in range(kills // 8):
        crowd = [start(*args) for _ in range(8)]
        wait_for(server, len(server.asked) + source.randint(1, 8))
        time.sleep(source.uniform(0.0, 0.03))
        for process in crowd:
            process.kill()
        for process in crowd:
            process.join()


def test_kills_lose_at_most_what_was_under_way_and_count_it_in_full(home, replies):
    kills = 64
    count = 20 + kills
    with ModelServer(always(SLOW_ANSWER)) as server:
        killed_crowds(server, kills, home, server.url, count, PLENTY, replies)
        ask_once(home, server.url, count, PLENTY, replies)  # the next run asks what is left
        asked = requests_of(server)
        ask_once(home, server.url, count, PLENTY, replies)
        assert requests_of(server) == asked  # and then nothing is
    attempts = Spending(home).attempts()
    unsettled = Counter(each.request_id for each in attempts if each.state in (LOST, OPEN))
    settled = Counter(each.request_id for each in attempts if each.state == SETTLED)
    assert sum(unsettled.values()) <= kills  # each process had one request under way
    for request in crowd_requests(count):
        name = request.request_id
        assert (replies / f"{name}.json").exists()
        # Each time the server was asked has a row. An answer that was kept is never asked for again.
        assert asked[request.content] <= settled[name] + unsettled[name]
        assert settled[name] <= 1
    assert billed_nano(server) <= Spending(home).total(utc_now()).spent_nano
    assert sum(settled.values()) <= server.billed["requests"] <= len(attempts)


def test_kills_do_not_pass_the_cap(home, replies):
    budget = ModelBudget(daily_usd=0.004, daily_requests=100_000, run_requests=100_000)
    with ModelServer(always(SLOW_ANSWER)) as server:
        killed_crowds(server, 16, home, server.url, 200, budget, replies)
        ask_once(home, server.url, 200, budget, replies)
    total = Spending(home).total(utc_now())
    assert 0 < billed_nano(server) <= total.spent_nano <= 0.004 * NANO
