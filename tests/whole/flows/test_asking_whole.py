"""A language model is asked under the budget, and no failure of one request touches another."""

import dataclasses

from tests.model_server import HOSTILE, ModelServer, always
from tests.store.flows.test_asking import a_run, ask, request


def test_nothing_that_fails_tells_the_key_or_the_text(home):
    for failure in HOSTILE.values():
        quoting = dataclasses.replace(failure, message="sk-none said: We keep the readings in SQLite.")
        with ModelServer(always(quoting)) as server:
            if failure.drip_s or failure.delay_s:
                continue
            run = a_run(home, server.url)
            result, _ = ask(run, [request()])
        shown = f"{run.report.notes} {result.stopped} {result.reasons}"
        assert "sk-none" not in shown and "SQLite" not in shown
