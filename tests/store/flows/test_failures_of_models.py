"""Each way in which a language model's service can fail has its outcome, its price and its next step."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cortex.flows.asking_model.request_round import AskingResult
from cortex.flows.writers import anthropic_api, claude_login
from cortex.storage.model_calls.spending import Spending
from cortex.storage.settings.settings import ModelSettings
from tests.store.flows.test_asking import a_run, ask, requests


def states(home: Path) -> list[str]:
    return [attempt.state for attempt in Spending(home).attempts()]


def a_client(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a `claude` on the PATH that does what `script` says with what it is asked."""
    command = folder / "bin" / "claude"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")


def result_of_client(**fields: Any) -> str:
    return f"echo '{json.dumps({'type': 'result', 'is_error': True, **fields})}'"


USAGE = {"usage": {"input_tokens": 10, "output_tokens": 5}}

# What the client does, what becomes of two requests, what the ledger says of those sent, what a person reads.
CLIENT_FAILURES = {
    "logged out": (
        result_of_client(result="Not logged in · Please run /login"), "waiting", ["released"], "setup-token",
    ),
    "a token that is no longer valid": (
        result_of_client(api_error_status=401, result="m"), "waiting", ["released"], "setup-token",
    ),
    "out of credit": (
        result_of_client(result="Credit balance is too low"), "waiting", ["released"], "no credit left",
    ),
    "payment required": (
        result_of_client(api_error_status=402, result="m"), "waiting", ["released"], "no credit left",
    ),
    "unknown model": (
        result_of_client(api_error_status=404, result="m"), "waiting", ["released"], "does not know",
    ),
    "too old": (
        "echo \"error: unknown option '--safe-mode'\" >&2; exit 1", "waiting", ["released"], "claude update",
    ),
    "plan limit": (result_of_client(api_error_status=429, result="m"), "failed", ["released"] * 2, "limits"),
    "overloaded": (result_of_client(api_error_status=529, result="m"), "failed", ["released"] * 2, "busy"),
    "no network": (result_of_client(result="m"), "failed", ["released"] * 2, "no connection"),
    "bad request": (
        result_of_client(api_error_status=400, result="m"), "refused", ["released"] * 2, "did not accept",
    ),
    "budget used up": (
        result_of_client(total_cost_usd=0.1, result="m"), "failed", ["lost"] * 2, "used up what was reserved",
    ),
    "refusal": (
        result_of_client(stop_reason="refusal", **USAGE), "refused", ["settled"] * 2, "refusal",
    ),
    "cut off": (
        result_of_client(result="exceeded the output token maximum", **USAGE),
        "refused", ["settled"] * 2, "max_tokens",
    ),
    "not by the schema": (
        result_of_client(is_error=False, result="Of course!", **USAGE), "refused", ["settled"] * 2, "schema",
    ),
    "half a JSON": ("printf '{\"type\": \"resu'", "failed", ["lost"] * 2, "without a result"),
    "nothing": ("exit 1", "failed", ["lost"] * 2, "without a result"),
    "silence": ("sleep 30", "failed", ["lost"] * 2, "took longer"),
}  # fmt: skip


@pytest.mark.parametrize("failure", CLIENT_FAILURES)
def test_a_client_that_fails_has_an_outcome_a_price_and_a_next_step(home, tmp_path, monkeypatch, failure):
    script, outcome, expected, words = CLIENT_FAILURES[failure]
    a_client(tmp_path, monkeypatch, script)
    monkeypatch.setattr(claude_login, "CLIENT_ANSWER_S", 1.0 if failure == "silence" else 30.0)
    result, _ = ask(a_run(home, None, writer="claude"), requests(2))
    assert getattr(result, outcome) == 2
    assert states(home) == expected
    assert words in " ".join(result.notes())


def asked_with(home: Path, models: ModelSettings) -> AskingResult:
    run = a_run(home, None)
    run.settings = replace(run.settings, models=models)
    return ask(run, requests(2))[0]


def test_without_key_library_client_or_token_nothing_is_asked_and_the_report_says_what_to_do(
    home, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    no_client = asked_with(home, ModelSettings("claude", claude_token="sk-none"))
    a_client(tmp_path, monkeypatch, "exit 1")
    no_token = asked_with(home, ModelSettings("claude"))
    no_key = asked_with(home, ModelSettings("api"))
    monkeypatch.setattr(anthropic_api, "find_spec", lambda name: None)
    no_library = asked_with(home, ModelSettings("api", api_key="sk-none"))
    for result, words in (
        (no_key, "cortex config set models.api_key"),
        (no_library, "make install EXTRAS=anthropic"),
        (no_client, "no `claude` on the PATH"),
        (no_token, "claude setup-token"),
    ):
        assert result.waiting == 2 and words in result.stopped
    assert not Spending(home).path.exists()
