"""With a login or a key set-up offers the model: two presses of Enter, and the first brief is the model's."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex.hooks import background
from cortex.storage.model_calls import Spending
from cortex.storage.settings.settings import load_settings
from tests.bench import NOW
from tests.model_server import Answer, ModelServer
from tests.process.cli.test_installing import (  # noqa: F401
    _no_client_and_no_scheduler,
    claude,
)
from tests.shell import Cortex
from tests.transcripts import Talk
from tests.whole.flows.test_writing import FACT, OUTCOME, STATEMENT

ANSWER_S = 0.2  # in the place of 20 s


def answers(body: dict[str, Any], number: int) -> Answer:
    return Answer(json.dumps({"outcome": OUTCOME, "facts": [FACT]}), delay_s=ANSWER_S)


@pytest.fixture
def sessions(claude: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a project with five sessions, to stand in; four of another one are newer."""
    here = tmp_path / "kelp"
    here.mkdir()
    monkeypatch.chdir(here)
    for number in range(9):
        folder = here if number < 5 else tmp_path / "reef"
        start = NOW - timedelta(days=20 - number)
        talk = Talk(f"s{number}", cwd=str(folder), start=start)
        talk.user(
            "Let us keep the tide tables in SQLite at storage/tides.db, one file a year, because one file is "
            f"easy to copy, and not in Postgres. This is session {number}."
        )
        talk.assistant("Agreed: SQLite it is. We decided to use WAL mode for the tables.")
        path = talk.write(claude / "projects")
        os.utime(path, (start.timestamp(), start.timestamp()))
    return here


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return what is started in the background: noted, and not done."""
    started: list[bool] = []

    def start(home: str, now_seconds: float, *, is_due: bool = False) -> bool:
        started.append(is_due)
        return True

    monkeypatch.setattr(background, "start", start)
    return started


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.cli.start.setup.can_ask", lambda: True)


def asked_sessions(server: ModelServer) -> list[int]:
    """Return the sessions asked about, in their order; a project as a whole is asked about besides."""
    said = (content.partition("This is session ")[2] for content in server.contents())
    return [int(words[0]) for words in said if words]


def test_two_presses_of_enter_bring_a_brief_by_the_model(
    cortex: Cortex, sessions, started, terminal, monkeypatch, tmp_path
):
    with ModelServer(answers) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
        monkeypatch.setenv("CORTEX_MODELS_BASE_URL", server.url)
        answer = cortex("setup", stdin="\n\n")
        assert answer.code == 0, answer.err
        # The newest three of the project that one stands in; the rest waits for the background.
        assert asked_sessions(server) == [2, 3, 4]
    before, _, after = answer.out.partition("Let it write?")
    assert "9 sessions: 3 now" in before and "6 in the background" in before
    assert "at most $0.15 a day" in before and "cortex config set models.writer none" in before
    assert answer.out.count("Let it write?") == answer.out.count("Go ahead?") == 1
    assert "written by claude-haiku-5-5" in after and STATEMENT in after.partition("Read: ")[0]
    assert "Facts a model noted" in after
    assert load_settings(tmp_path / "store").models.writer == "api"
    assert started == [True]
    status = cortex("status")
    assert "Written by claude-haiku-5-5 (api): 3 of 9 sessions read" in status.out
    assert "the newest first, in the background and at night" in status.out
    assert "not answered" not in status.out
    assert cortex("status", "--json").json["writing"]["read"] == 3


def test_the_background_goes_on_with_all_projects_and_asks_nothing_twice(
    cortex: Cortex, sessions, started, terminal, monkeypatch
):
    with ModelServer(answers) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
        monkeypatch.setenv("CORTEX_MODELS_BASE_URL", server.url)
        cortex("setup", stdin="\n\n")
        cortex("run", "--engine", "plain")
        # Projects take turns, each in its own order: the newest three, then the older ones.
        assert asked_sessions(server)[3:] == [6, 0, 7, 1, 8, 5]
        cortex("setup", "--yes")
        cortex("run", "--engine", "plain")
        assert len(asked_sessions(server)) == 9
    assert "9 of 9 sessions read." in cortex("status").out


def test_no_is_taken_for_an_answer_and_yes_prints_the_one_command(
    cortex: Cortex, sessions, started, monkeypatch, tmp_path
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    with ModelServer(answers) as server:
        monkeypatch.setenv("CORTEX_MODELS_BASE_URL", server.url)
        answer = cortex("setup", "--yes")
        assert "let a language model write: cortex setup --writer api" in answer.out
        assert load_settings(tmp_path / "store").models.writer == "none"
        assert "written by rules" in answer.out and started == [] and server.asked == []
        assert "Written by rules alone." in cortex("status").out
        # The command turns it on: the sessions that rules have read are read again, these first.
        again = cortex("setup", "--writer", "api")
        assert asked_sessions(server) == [2, 3, 4]
        assert "written by claude-haiku-5-5" in again.out and started == [True]
        monkeypatch.setattr("cortex.cli.start.setup.can_ask", lambda: True)
        cortex("config", "set", "models.writer", "none")
        assert "Let it write?" in cortex("setup", stdin="n\n").out
        assert load_settings(tmp_path / "store").models.writer == "none" and len(asked_sessions(server)) == 3


@pytest.mark.parametrize("failure", ["limit", "network"])
def test_where_the_model_does_not_answer_the_brief_of_the_rules_is_there(
    cortex: Cortex, sessions, started, terminal, monkeypatch, failure
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    busy = Answer(status=429, error="rate_limit_error", headers={"retry-after": "3600"})
    with ModelServer(lambda body, number: busy if failure == "limit" else Answer(drops=True)) as server:
        monkeypatch.setenv("CORTEX_MODELS_BASE_URL", server.url)
        answer = cortex("setup", stdin="\n\n")
        assert answer.code == 0 and "written by rules" in answer.out and "anguage model" in answer.err
    with ModelServer(answers) as server:
        monkeypatch.setenv("CORTEX_MODELS_BASE_URL", server.url)
        assert "has not answered since" in cortex("status").out
        cortex("run", "--engine", "plain")
        assert len(asked_sessions(server)) == 9  # nothing is lost
        assert "not answered" not in cortex("status").out


def test_the_clients_login_is_offered_with_its_share_of_the_plan(
    cortex: Cortex, sessions, started, terminal, monkeypatch, tmp_path
):
    command = tmp_path / "client" / "claude"
    command.parent.mkdir()
    result = {
        "type": "result",
        "is_error": False,
        "num_turns": 2,
        "usage": {"input_tokens": 4_000, "output_tokens": 300},
        "structured_output": {"outcome": OUTCOME, "facts": [FACT]},
    }
    status = json.dumps({"loggedIn": True, "planTier": "max_5x"})
    command.write_text(
        f"#!/bin/sh\ncase \"$1\" in auth) echo '{status}';; "
        f"-p) cat >/dev/null; sleep {ANSWER_S}; printf '%s' '{json.dumps(result)}';; *) exit 1;; esac\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
    began = time.monotonic()
    answer = cortex("setup", stdin="\n\n")
    assert answer.code == 0, answer.err
    assert "your Claude Code login (max_5x)" in answer.out
    assert "about 4 % of one five-hour window of your plan" in answer.out  # 9 of 225
    assert "written by claude-haiku-5-5" in answer.out and time.monotonic() - began < 120
    attempts = Spending(tmp_path / "store").attempts()
    assert [(each.provider, each.state, each.requests) for each in attempts] == [("claude", "settled", 1)] * 3
    doctor = cortex("doctor", "--json").json
    [check] = [check for check in doctor["checks"] if check["check"] == "language model"]
    assert "claude writes, 3 of 9 sessions read" in check["finding"]
