"""Each way in which a language model's service can fail has its outcome, its price and its next step."""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex.flows.asking_model.asking import AskingResult, ask_all
from cortex.flows.writers import anthropic_api, claude_login
from cortex.storage.model_calls import (
    DailyLimits,
    Reserved,
    Spending,
    SpendingClaim,
)
from cortex.storage.model_failure import WRITER, read_failure
from cortex.storage.settings.settings import ModelBudget, ModelSettings
from tests.store.flows.test_asking import NOW, a_run, ask, request, requests


def states(home: Path) -> list[str]:
    return [attempt.state for attempt in Spending(home).attempts()]


def a_client(
    folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, *, status: str = '{"loggedIn": false}'
) -> None:
    """Put a `claude` on the PATH that does what `script` says when asked, and tells of its login `status`."""
    command = folder / "bin" / "claude"
    command.parent.mkdir(exist_ok=True)
    login = f"[ \"$1\" != auth ] || {{ echo '{status}'; exit; }}"
    command.write_text(f"#!/bin/sh\ncat > /dev/null\n{login}\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")


def result_of_client(**fields: Any) -> str:
    result = json.dumps({"type": "result", "is_error": True, **fields})
    return "printf '%s' '" + result.replace("'", "\\u0027") + "'"


USAGE = {"usage": {"input_tokens": 10, "output_tokens": 5}}

# What the client does, what becomes of two requests, what the ledger says of those sent, what a person reads.
CLIENT_FAILURES = {
    "logged out": (
        result_of_client(result="Not logged in · Please run /login"), "waiting", ["released"], "auth login",
    ),
    "a token that is no longer valid": (
        result_of_client(api_error_status=401, result="m"), "waiting", ["released"], "auth login",
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
    "plan limit": (
        result_of_client(api_error_status=429, result="m"), "waiting", ["released"], "of your Claude plan",
    ),
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
        (no_library, ".[anthropic]"),
        (no_client, "no `claude` on the PATH"),
        (no_token, "claude auth login"),
    ):
        assert result.waiting == 2 and words in result.stopped
    assert not Spending(home).path.exists()


LIMIT = "You've hit your 5-hour limit · resets 5:32pm (UTC)"  # as client 2.1.330 says it
LIMITS = {
    "by status": {"api_error_status": 429, "result": LIMIT},
    "with tokens and no status": {"result": LIMIT.replace("5-hour", "weekly"), **USAGE},
    "spending": {"result": "You've hit your monthly spend limit."},
    "by status alone": {"api_error_status": 429, "result": "API Error: slow down"},
}


@pytest.mark.parametrize("notice", LIMITS.values(), ids=list(LIMITS))
def test_the_first_notice_of_a_limit_stops_the_round_and_loses_nothing(home, tmp_path, monkeypatch, notice):
    a_client(tmp_path, monkeypatch, f'echo x >> "{tmp_path}/asked"\n{result_of_client(**notice)}')
    result, kept = ask(a_run(home, None, writer="claude"), requests(5))
    assert (result.waiting, result.refused, result.failed, kept) == (5, 0, 0, [])
    assert len((tmp_path / "asked").read_text().split()) == 1
    assert states(home) == ["released"] and "limit" in result.stopped


def test_a_limit_is_told_once_with_its_end_and_nobody_is_asked_before(home, tmp_path, monkeypatch):
    notice = result_of_client(api_error_status=429, result=LIMIT)
    a_client(tmp_path, monkeypatch, f'echo x >> "{tmp_path}/asked"\n{notice}')

    def runs(at: datetime) -> tuple[AskingResult, list[str]]:
        monkeypatch.setattr(claude_login, "_now", lambda: at)
        run = a_run(home, None, writer="claude")
        return ask_all(run, requests(3), print, clock=lambda: at, sleep=lambda s: None), run.report.notes

    result, notes = runs(NOW)
    assert "the 5-hour limit of your Claude plan is reached until 2026-11-20 17:32 UTC" in " ".join(notes)
    assert runs(NOW + timedelta(hours=5))[1] == []
    assert len((tmp_path / "asked").read_text().split()) == 1
    failure = read_failure(home, WRITER)
    assert failure and "17:32 UTC" in failure.reason and failure.failed_at == NOW
    answer = result_of_client(is_error=False, structured_output={"facts": []}, num_turns=2, **USAGE)
    a_client(tmp_path, monkeypatch, answer)
    result, notes = runs(NOW + timedelta(hours=6))
    assert (result.answered, notes, read_failure(home, WRITER)) == (3, [], None)


def test_an_answer_that_speaks_of_a_limit_is_an_answer(home, tmp_path, monkeypatch):
    facts = {"facts": ["You’ve hit your weekly limit"]}
    answer = result_of_client(is_error=False, structured_output=facts, result=json.dumps(facts), **USAGE)
    a_client(tmp_path, monkeypatch, answer)
    assert ask(a_run(home, None, writer="claude"), requests(1))[0].answered == 1


def test_the_persons_own_login_comes_first_and_the_token_stands_in(home, tmp_path, monkeypatch):
    seen = (
        f'printf "%s %s\\n" "$CLAUDE_SECURESTORAGE_CONFIG_DIR" "$CLAUDE_CODE_OAUTH_TOKEN" >> {tmp_path}/seen'
    )
    answer = result_of_client(is_error=False, structured_output={"facts": []}, num_turns=2, **USAGE)
    refused = result_of_client(api_error_status=401, result="m")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "mine"))
    for status, script, expected in (
        ('{"loggedIn": true}', answer, [f"{tmp_path}/mine"] * 2),
        ('{"loggedIn": false}', answer, ["sk-none"] * 2),
        ("no JSON", answer, ["sk-none"] * 2),
        # A login that has ended is followed by the token, once for all.
        ('{"loggedIn": true}', f'[ -n "$CLAUDE_CODE_OAUTH_TOKEN" ] || {{ {refused}; exit; }}\n{answer}',
         [f"{tmp_path}/mine", "sk-none", "sk-none"]),
    ):  # fmt: skip
        a_client(tmp_path, monkeypatch, f"{seen}\n{script}", status=status)
        store = tmp_path / f"store{len(expected)}{status}{script[:9]}".replace("/", "")
        result, _ = ask(a_run(store, None, writer="claude"), requests(2))
        assert result.answered == 2
        assert [line.strip() for line in (tmp_path / "seen").read_text().splitlines()] == expected
        (tmp_path / "seen").unlink()


def test_a_login_that_ended_is_said_once_with_what_to_do(home, tmp_path, monkeypatch):
    a_client(
        tmp_path, monkeypatch, result_of_client(api_error_status=401, result="m"), status='{"loggedIn": true}'
    )
    run = a_run(home, None)
    run.settings = replace(run.settings, models=ModelSettings("claude"))
    result, _ = ask(run, requests(3))
    assert (result.waiting, states(home)) == (3, ["released"])
    assert "claude auth login" in result.stopped


def test_the_ledger_counts_what_was_sent(home, tmp_path, monkeypatch):
    cut = result_of_client(result="exceeded the output token maximum", num_turns=4, **USAGE)
    answer = result_of_client(is_error=False, structured_output={"facts": []}, num_turns=2, **USAGE)
    for script, sent in ((cut, 4), (answer, 1), (result_of_client(api_error_status=400, result="m"), 4)):
        a_client(tmp_path, monkeypatch, script)
        before = Spending(home).total(NOW).requests
        ask(a_run(home, None, writer="claude"), [request(script)])
        assert Spending(home).total(NOW).requests - before == sent
    few = ModelBudget(daily_requests=Spending(home).total(NOW).requests + 3)
    assert ask(a_run(home, None, few, writer="claude"), requests(1))[0].waiting == 1


def test_a_ledger_of_before_requests_were_counted_is_read_and_goes_on(home, tmp_path, monkeypatch):
    ask(a_run(home, None, writer="api"), [])
    spending = Spending(home)
    assert isinstance(
        spending.reserve(SpendingClaim("a", "session", "api", "m", 5), DailyLimits(10, 9), NOW), Reserved
    )
    with closing(sqlite3.connect(spending.path)) as connection:
        connection.execute("alter table attempts drop column requests")
    assert (spending.total(NOW).requests, len(spending.attempts())) == (1, 1)
    assert isinstance(
        spending.reserve(SpendingClaim("b", "session", "api", "m", 5, 4), DailyLimits(10, 9), NOW), Reserved
    )
    assert spending.total(NOW).requests == 5
