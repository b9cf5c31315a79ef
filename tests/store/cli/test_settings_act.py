"""A setting acts at once or says when it will, and `cortex brief` prints what holds now."""

import pytest

from cortex.storage.lease import lease
from cortex.transforms.words.tokens import tokens_in


@pytest.mark.slow
def test_a_budget_set_now_is_that_of_the_brief_handed_over_next(cortex, samples):
    published = next((samples / "published").glob("tidepool-*/brief.md"))
    before = published.read_text()
    answer = cortex("config", "set", "brief.tokens", "300")
    assert answer.out == "brief.tokens is now 300; takes effect at once.\n"
    after = published.read_text()
    assert tokens_in(after) <= 300 < tokens_in(before)
    assert cortex("config", "unset", "brief.tokens").out.endswith("; takes effect at once.\n")
    assert tokens_in(published.read_text()) > 300


def test_while_another_run_writes_a_setting_says_that_it_waits(cortex, samples):
    with lease(samples):
        answer = cortex("config", "set", "brief.tokens", "300", "--json")
    assert answer.code == 0 and answer.json["acts"] == "with the next run"


@pytest.mark.parametrize(
    "words, acts",
    [
        (["retention.days", "90"], "with the next nightly run"),
        (["capture.min_chars", "80"], "with the next run"),
        (["recall.at_prompt", "false"], "at once"),
    ],
)
def test_a_setting_says_when_it_acts(cortex, home, words, acts):
    assert cortex("config", "set", *words).out == f"{words[0]} is now {words[1]}; takes effect {acts}.\n"


@pytest.mark.slow
def test_brief_prints_what_a_run_would_publish_now(cortex, samples, monkeypatch):
    published = cortex("brief", "--project", "tidepool").out
    monkeypatch.setenv("CORTEX_BRIEF_TOKENS", "300")
    shown = cortex("brief", "--project", "tidepool").out
    assert tokens_in(shown) <= 300 < tokens_in(published)
    assert next((samples / "published").glob("tidepool-*/brief.md")).read_text() == published
    cortex("run", "--engine", "plain")
    assert next((samples / "published").glob("tidepool-*/brief.md")).read_text() == shown


def test_status_says_what_goes_by_its_age(cortex, home):
    assert cortex("status", "--json").json["retention"] == []
    cortex("config", "set", "retention.days", "400")
    cortex("config", "set", "retention.types", "gotcha=90", "progress=30", "--project", "/home/ada/kiln")
    assert cortex("status", "--json").json["retention"] == [
        "every project: everything after 400 days",
        "/home/ada/kiln: everything after 400 days, gotcha after 90 days, progress after 30 days",
    ]
    assert "Erased by age: every project: everything after 400 days" in cortex("status").out
