"""`cortex cost`, the doctor's line and the choice of a language model: what it costs, before and after."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from cortex.cli.main import main
from cortex.flows.context import Context
from cortex.flows.operations.maintain.cost import budget_state
from cortex.flows.operations.maintain.setup import choose_writer, usable_writers
from cortex.flows.writers import provider_of
from cortex.storage import model_calls
from cortex.storage.model_calls import (
    DailyLimits,
    Reserved,
    Spending,
    SpendingClaim,
    Withheld,
)
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import BY_NAME
from cortex.storage.settings.settings import load_settings
from cortex.storage.settings.writer_index import WRITER_MODULES
from cortex.transforms.errors import UnknownValue, UsageError

LIMITS = DailyLimits(150_000_000, 200)
MIDDAY = datetime(2026, 11, 20, 12, tzinfo=UTC)


def spend(home: Path, name: str, at: datetime, nano: int = 4_000_000, *, is_settled: bool = True) -> None:
    claim = SpendingClaim(name, "session", "api", "claude-haiku-5-5", nano)
    reservation = Spending(home).reserve(claim, LIMITS, at)
    assert isinstance(reservation, Reserved)
    if is_settled:
        Spending(home).settle(reservation.attempt_id, nano, 30_000, 2_000, at)


def run(*words: str) -> str:
    result = CliRunner().invoke(main, words)
    assert result.exit_code in (0, 1), result.output
    return result.output


def test_cost_adds_up_by_day_purpose_model_and_project(home):
    spend(home, "a", MIDDAY)
    spend(home, "b", MIDDAY + timedelta(days=1))
    spend(home, "c", MIDDAY + timedelta(days=1), is_settled=False)
    report = json.loads(run("cost", "--json"))
    assert [(row["name"], row["requests"], row["usd"]) for row in report["by_day"]] == [
        ("2026-11-20", 1, 0.004),
        ("2026-11-21", 2, 0.008),
    ]
    total = {"name": "total", "requests": 3, "input_tokens": 60_000, "output_tokens": 4_000, "usd": 0.012}
    assert (report["total"], report["reserved_usd"]) == (total, 0.004)
    for grouping in ("by_day", "by_purpose", "by_model", "by_project"):
        assert sum(row["requests"] for row in report[grouping]) == 3
    shown = run("cost")
    assert "claude-haiku-5-5 (api)" in shown and "█" * 40 in shown and "█" * 41 not in shown


def test_with_no_ledger_nothing_was_spent_and_no_file_appears(home):
    assert "No language model has been asked anything yet" in run("cost")
    assert "none: rules alone write" in run("doctor")
    assert not Spending(home).path.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("models.writer", "gpt"),
        ("models.base_url", "example.org"),
        ("budget.daily_usd", "-1"),
        ("budget.daily_usd", "nan"),
        ("budget.daily_usd", "much"),
        ("budget.daily_requests", "1.5"),
    ],
)
def test_config_set_refuses_what_is_no_value(home, key, value):
    result = CliRunner().invoke(main, ["config", "set", key, "--", value])
    assert result.exit_code == 2, result.output


def test_a_budget_may_be_a_whole_number_of_dollars(home):
    run("config", "set", "budget.daily_usd", "2")
    assert load_settings(home).budget.daily_usd == 2.0
    ConfigFile(home).path.write_text("[budget]\ndaily_usd = 3\n")
    assert load_settings(home).budget.daily_usd == 3.0


def test_a_choice_is_kept_and_what_is_here_can_be_chosen(home, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert usable_writers(load_settings(home)) == []
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    context = Context(load_settings(home))
    assert usable_writers(context.settings) == ["api"]
    choose_writer(home, "api", lambda: context)
    assert load_settings(home).models.writer == "api"
    with pytest.raises(UsageError):
        choose_writer(home, "gpt", lambda: context)


def test_every_provider_is_a_choice_of_the_setting_and_of_setup(home):
    assert ["none", *WRITER_MODULES] == list(BY_NAME["models.writer"].words)
    assert [provider_of(name).name for name in WRITER_MODULES] == list(WRITER_MODULES)
    with pytest.raises(UnknownValue, match="Allowed: api, claude"):
        provider_of("gpt")


def test_the_day_is_utc_and_what_is_not_settled_counts(home):
    spend(home, "a", MIDDAY, 100_000_000, is_settled=False)
    claim = SpendingClaim("b", "session", "api", "claude-haiku-5-5", 60_000_000)
    assert Spending(home).reserve(claim, LIMITS, MIDDAY) == Withheld("dollars", 50_000_000)
    assert budget_state(load_settings(home), MIDDAY).left_usd == pytest.approx(0.05)
    assert isinstance(Spending(home).reserve(claim, LIMITS, MIDDAY + timedelta(hours=12)), Reserved)


def test_nobody_else_asks_what_was_just_answered(home, monkeypatch):
    spend(home, "a", MIDDAY)
    claim = SpendingClaim("a", "session", "api", "claude-haiku-5-5", 1)
    monkeypatch.setattr(model_calls, "_holder", lambda: "1@another-machine")
    assert Spending(home).reserve(claim, LIMITS, MIDDAY) == Withheld("under way", 0)
    assert isinstance(Spending(home).reserve(claim, LIMITS, MIDDAY + timedelta(hours=2)), Reserved)


def test_nobody_else_asks_what_is_under_way(home):
    claim = SpendingClaim("a", "session", "api", "claude-haiku-5-5", 1)
    assert isinstance(Spending(home).reserve(claim, LIMITS, MIDDAY), Reserved)
    assert Spending(home).reserve(claim, LIMITS, MIDDAY) == Withheld("under way", 0)
    # Long after, whoever it was does not wait for an answer any more: it counts, and may be asked again.
    assert isinstance(Spending(home).reserve(claim, LIMITS, MIDDAY + timedelta(hours=1)), Reserved)
    assert [attempt.state for attempt in Spending(home).attempts()] == ["lost", "open"]
